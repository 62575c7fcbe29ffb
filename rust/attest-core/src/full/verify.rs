//! Verify: one proof, or the proofs of many clients at once.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use p3_air::symbolic::SymbolicAirBuilder;
use p3_air::{Air, BaseAir};
use p3_field::PrimeCharacteristicRing;
use p3_maybe_rayon::prelude::*;
use p3_uni_stark::{Proof, VerifierConstraintFolder};

use super::air::FullAir;
use super::chain::{self, Chain};
use super::columns::F;
use super::digest::MASKS;
use super::moments::Bound;
use super::parameters::{self, Config, LOG_CAP};
use super::public::{Budgets, Public};
use super::seam;
use super::stark::Circuit;
use super::{Malformed, ORDER};

/// Why a proof was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invalid {
    /// It has not the shape that the circuit demands.
    Shape(String),
    /// It does not hold.
    Fails(String),
}

/// A proof and what it is to show: that the committed batch of so many rows satisfies the statement
/// within these budgets.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The budgets.
    pub budgets: &'a Budgets,
    /// The rows of the batch.
    pub rows: usize,
    /// The commitment to it.
    pub commitment: &'a [u8; 32],
    /// What else the proof is bound to.
    pub context: &'a [u8; 32],
    /// The statistic that is claimed of the batch, where the statement has one.
    pub statistic: Option<&'a [u8]>,
    /// The proof.
    pub proof: &'a [u8],
}

impl Circuit {
    /// Verify a proof.
    ///
    /// # Errors
    /// [`Invalid`] where the proof does not show what is claimed.
    pub fn verify(&self, claim: &Claim) -> Result<(), Invalid> {
        self.check(claim, &self.public(claim))
    }

    /// Verify many proofs, on as many threads as there are: an answer for each, whatever the others
    /// are. What depends on rows and budgets alone is worked out once.
    #[must_use]
    pub fn verify_many(&self, claims: &[Claim]) -> Vec<Result<(), Invalid>> {
        let mut firsts: Vec<&Claim> = Vec::new();
        let same = |claim: &Claim, first: &Claim| {
            let shape = |proof| chain::log_rows(self.body(proof));
            (claim.rows, claim.budgets, shape(claim.proof))
                == (first.rows, first.budgets, shape(first.proof))
        };
        for claim in claims {
            if !firsts.iter().any(|first| same(claim, first)) {
                firsts.push(claim);
            }
        }
        let known: Vec<_> = firsts.par_iter().map(|first| self.public(first)).collect();
        let answer = |claim: &Claim| {
            let found = firsts.iter().position(|first| same(claim, first));
            self.check(
                claim,
                &known[found.expect("every claim is like some first one")],
            )
        };
        claims.par_iter().map(answer).collect()
    }

    fn public(&self, claim: &Claim) -> Result<Arc<Public>, Invalid> {
        let public = match chain::log_rows(self.body(claim.proof)) {
            None => Public::new(&self.layout, claim.rows, claim.budgets),
            Some(_) => Public::whole(&self.layout, claim.rows, claim.budgets),
        };
        public
            .map(Arc::new)
            .map_err(|error| Invalid::Shape(error.0))
    }

    /// Answer, even if a verifier that is not ours should panic on what it is given.
    fn check(&self, claim: &Claim, public: &Result<Arc<Public>, Invalid>) -> Result<(), Invalid> {
        let public = public.clone()?;
        catch_unwind(AssertUnwindSafe(|| self.holds(claim, public))).unwrap_or_else(|_| {
            Err(Invalid::Shape(
                "the verifier could not make anything of the proof".into(),
            ))
        })
    }

    fn holds(&self, claim: &Claim, public: Arc<Public>) -> Result<(), Invalid> {
        let digest = self
            .digest(claim.commitment, claim.rows)
            .ok_or_else(|| Invalid::Shape("the commitment is not canonical".into()))?;
        let (shown, proof) = self.split(claim.proof)?;
        let bound = claim.statistic.map(|statistic| Bound {
            statistic,
            context: claim.context,
        });
        let drawn = self
            .form(claim.commitment, bound.as_ref(), claim.rows)
            .map_err(|error| Invalid::Shape(error.0))?;
        let (form, claimed) = drawn.map_or((None, None), |(form, totals)| (Some(form), totals));
        let totals = claimed.unwrap_or(shown);
        let hash = claim.statistic.map(|bytes| blake3::hash(bytes).into());
        if let Some(log_rows) = chain::log_rows(proof) {
            let base = self.base(
                &public,
                claim.commitment,
                claim.context,
                hash.as_ref(),
                log_rows,
            );
            let chain = Chain {
                circuit: self,
                public: &public,
                form: form.map(Arc::new),
                values: [&digest[..], &totals].concat(),
                base,
            };
            return chain.verify(proof, log_rows);
        }
        let most = self.largest_proof(public.height);
        let proof = Self::read(proof, public.height, most)?;
        let seed = self.seed(&public, claim.commitment, claim.context, hash.as_ref());
        let values = [&digest[..], &totals].concat();
        let air = FullAir {
            layout: self.layout.clone(),
            public,
            form: form.map(Arc::new),
            seam: None,
        };
        self.judge(&air, &parameters::config(&seed, [0; 32]), &proof, &values)
    }

    pub(super) fn judge(
        &self,
        air: &FullAir,
        config: &Config,
        proof: &Proof<Config>,
        values: &[F],
    ) -> Result<(), Invalid> {
        let air = Weighed {
            air,
            degree: self.degree,
        };
        p3_uni_stark::verify(config, &air, proof, values)
            .map_err(|error| Invalid::Fails(format!("{error:?}")))
    }

    /// Split a proof of hidden sums into what the form comes to, masks included, and the rest.
    fn split<'a>(&self, bytes: &'a [u8]) -> Result<(Vec<F>, &'a [u8]), Invalid> {
        if !self.masked() {
            return Ok((vec![], bytes));
        }
        let (totals, proof) = bytes
            .split_at_checked(8 * MASKS)
            .ok_or_else(|| Invalid::Shape("the proof shows no totals".into()))?;
        let word = |bytes: &[u8; 8]| {
            let word = u64::from_le_bytes(*bytes);
            (word < ORDER).then(|| F::from_u64(word))
        };
        let totals: Option<Vec<F>> = totals.as_chunks().0.iter().map(word).collect();
        let totals = totals.ok_or_else(|| Invalid::Shape("a total is not canonical".into()))?;
        Ok((totals, proof))
    }

    /// A proof without the totals that a proof of hidden sums begins with.
    fn body<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        self.split(bytes).map_or(&[], |(_, proof)| proof)
    }

    pub(super) fn read(bytes: &[u8], height: usize, most: usize) -> Result<Proof<Config>, Invalid> {
        if bytes.len() > most {
            return Err(Invalid::Shape(format!(
                "the proof has {} bytes; none of this circuit has more than {most}",
                bytes.len()
            )));
        }
        let proof: Proof<Config> = postcard::from_bytes(bytes)
            .map_err(|error| Invalid::Shape(format!("the proof cannot be read: {error}")))?;
        let again =
            postcard::to_allocvec(&proof).map_err(|error| Invalid::Shape(error.to_string()))?;
        if again != bytes {
            return Err(Invalid::Shape(
                "the proof is not in its canonical encoding".into(),
            ));
        }
        let commitments = &proof.commitments;
        let committed = [&commitments.trace, &commitments.quotient_chunks].into_iter();
        let committed = committed
            .chain(&commitments.random)
            .chain(&proof.opening_proof.1.commit_phase_commits);
        if committed.into_iter().any(|tree| tree.height() != LOG_CAP) {
            return Err(Invalid::Shape(
                "a commitment of the proof has more roots than its tree".into(),
            ));
        }
        if commitments.random.as_ref() != Some(&commitments.quotient_chunks) {
            return Err(Invalid::Shape(
                "the random polynomial is not under the tree of the quotient".into(),
            ));
        }
        let masked = height.ilog2() as usize + 1;
        if proof.degree_bits != masked {
            return Err(Invalid::Shape(format!(
                "the proof is of 2^{} rows, not of 2^{masked}",
                proof.degree_bits
            )));
        }
        Ok(proof)
    }

    /// No proof about a trace of this height has more bytes.
    #[must_use]
    pub fn largest_proof(&self, height: usize) -> usize {
        self.largest_of(self.layout.width, height)
    }

    /// No chain about so many rows in segments of `2^log_rows` has more bytes.
    ///
    /// # Errors
    /// [`Malformed`] where there is no such chain.
    pub fn largest_chain(&self, rows: usize, log_rows: usize) -> Result<usize, Malformed> {
        let plan = chain::plan(rows, log_rows)?;
        let segments = plan.len() * self.largest_segment(1 << log_rows);
        Ok(chain::around(plan.len()) + 8 * MASKS + segments)
    }

    /// No proof about a segment of this height has more bytes: its trace has the masks of a seam.
    pub(super) fn largest_segment(&self, height: usize) -> usize {
        self.largest_of(self.layout.width + seam::REPETITIONS, height)
    }

    fn largest_of(&self, width: usize, height: usize) -> usize {
        let quotients = 2 * self.degree.next_power_of_two();
        parameters::largest_proof(width, quotients, height)
    }
}

/// The constraints as a verifier needs them: evaluated at a point. Their degree is known since the
/// circuit was laid out, and is not worked out again from formulas for every proof.
struct Weighed<'a> {
    air: &'a FullAir,
    degree: usize,
}

impl BaseAir<F> for Weighed<'_> {
    fn width(&self) -> usize {
        self.air.width()
    }

    fn num_public_values(&self) -> usize {
        self.air.num_public_values()
    }

    fn num_periodic_columns(&self) -> usize {
        self.air.num_periodic_columns()
    }

    fn periodic_columns(&self) -> Cow<'_, [Vec<F>]> {
        self.air.periodic_columns()
    }

    fn max_constraint_degree(&self) -> Option<usize> {
        Some(self.degree)
    }
}

impl Air<SymbolicAirBuilder<F>> for Weighed<'_> {
    fn eval(&self, _builder: &mut SymbolicAirBuilder<F>) {}
}

impl<'a> Air<VerifierConstraintFolder<'a, Config>> for Weighed<'_> {
    fn eval(&self, builder: &mut VerifierConstraintFolder<'a, Config>) {
        self.air.eval(builder);
    }
}
