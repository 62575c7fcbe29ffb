//! Commit and prove.

use std::sync::{Arc, OnceLock};

use p3_air::check_all_constraints;
use p3_field::{PrimeCharacteristicRing, PrimeField64};
use p3_matrix::dense::RowMajorMatrix;
use p3_maybe_rayon::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::air::FullAir;
use super::chain::Chained;
use super::columns::F;
use super::digest::{CHAIN, MASKS};
use super::identity;
use super::layout::Layout;
use super::moments::{self, Bound, Form};
use super::parameters::{self, LEAST_HEIGHT, MOST_HEIGHT};
use super::prover::Held;
use super::public::{Budgets, Public, height};
use super::statement::Statement;
use super::witness::{self, Batch, Manner, Trace};
use super::{Malformed, ORDER, Refused};

const DOMAIN: &str = "sluice full proof 1";

/// The weights of a form, and what it must come to where no masks hide it.
pub(super) type Drawn = (Form, Option<Vec<F>>);

/// Why no commitment or no proof was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unproven {
    /// What was given is not what the circuit takes.
    Malformed(Malformed),
    /// The batch does not satisfy the statement.
    Refused(Refused),
    /// The proof system failed.
    Failed(String),
}

impl From<Malformed> for Unproven {
    fn from(error: Malformed) -> Self {
        Self::Malformed(error)
    }
}

impl From<Refused> for Unproven {
    fn from(error: Refused) -> Self {
        Self::Refused(error)
    }
}

/// A filled trace, with the constraints and the public values it is to satisfy.
#[derive(Debug)]
pub struct Traced {
    /// The constraints.
    pub air: FullAir,
    /// The trace.
    pub trace: RowMajorMatrix<F>,
    /// The public values: the digest, and
    pub digest: [F; CHAIN],
    /// what each repetition of a statistic's form must come to.
    pub totals: Vec<F>,
    /// The hash of the statistic.
    bound: Option<[u8; 32]>,
}

impl Traced {
    /// The constraints that do not hold, each with the row on which it does not.
    #[must_use]
    pub fn broken(&self) -> Vec<(usize, usize)> {
        let report = check_all_constraints(&self.air, &self.trace, &self.values(), None);
        let broken = report.failures.iter();
        broken
            .map(|failure| (failure.constraint, failure.row))
            .collect()
    }

    /// The public values, in their order.
    #[must_use]
    pub fn values(&self) -> Vec<F> {
        [&self.digest[..], &self.totals].concat()
    }
}

/// One statement, ready for batches of any length.
#[derive(Debug, Clone)]
pub struct Circuit {
    pub(super) layout: Arc<Layout>,
    pub(super) degree: usize,
    pub(super) identity: [u8; 32],
    packing: [u8; 32],
    pub(super) chained: Arc<OnceLock<Chained>>,
}

impl Circuit {
    /// Read a statement and lay out its circuit.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong with the statement.
    pub fn new(statement: &[u8]) -> Result<Self, Malformed> {
        let read = Statement::read(statement)?;
        let layout = Arc::new(Layout::new(&read));
        let public = Arc::new(Public::unbudgeted(&layout, LEAST_HEIGHT));
        let air = unbound(layout.clone(), public);
        Ok(Self {
            layout,
            degree: identity::degree(&air),
            identity: identity::identity(statement, &air),
            packing: read.packing(),
            chained: Arc::default(),
        })
    }

    /// What identifies statement, parameters and constraints.
    #[must_use]
    pub fn identity(&self) -> [u8; 32] {
        self.identity
    }

    /// How many constraints a row has.
    #[must_use]
    pub fn constraints(&self) -> usize {
        identity::constraints(&self.unbudgeted(LEAST_HEIGHT))
    }

    /// The largest degree of a constraint for batches of so many rows.
    #[must_use]
    pub fn degree(&self, rows: usize) -> usize {
        identity::degree(&self.unbudgeted(height(rows)))
    }

    /// Bits of soundness that are proven for batches of so many rows, as one proof or as any chain.
    #[must_use]
    pub fn proven_bits(&self, rows: usize) -> usize {
        let heights = [LEAST_HEIGHT, height(rows).min(MOST_HEIGHT)];
        let most = rows.div_ceil(LEAST_HEIGHT - 1); // segments share rows
        let of = |height| identity::proven_bits(&self.unbudgeted(height), most);
        let proof = heights.map(of).into_iter().min();
        proof
            .into_iter()
            .chain(self.statistic_bits())
            .min()
            .unwrap_or(0)
    }

    pub(super) fn unbudgeted(&self, height: usize) -> FullAir {
        let public = Arc::new(Public::unbudgeted(&self.layout, height));
        unbound(self.layout.clone(), public)
    }

    /// Bits of soundness of the statistic by itself, where the statement has one.
    #[must_use]
    pub fn statistic_bits(&self) -> Option<usize> {
        self.layout.moments.as_ref().map(|_| moments::bits())
    }

    /// How many columns the trace has.
    #[must_use]
    pub fn width(&self) -> usize {
        self.layout.width
    }

    /// The salted digest of a batch: 32 bytes.
    ///
    /// # Errors
    /// [`Unproven::Malformed`] where the batch is not one of this circuit, and [`Unproven::Refused`]
    /// where a row shows what none can: no proof would speak of it.
    pub fn commit(&self, batch: &Batch, salt: &[u8; 32]) -> Result<[u8; 32], Unproven> {
        batch.check(&self.layout)?;
        batch.fits(&self.layout)?;
        let digest = witness::digest(&self.layout, batch, salt_elements(salt));
        Ok(self.commitment(&digest, batch.rows))
    }

    /// Prove that the batch in `commit(batch, salt)` satisfies the statement.
    ///
    /// # Errors
    /// [`Unproven`] where it does not, or the inputs are not this circuit's.
    pub fn prove(
        &self,
        budgets: &Budgets,
        batch: &Batch,
        salt: &[u8; 32],
        context: &[u8; 32],
        entropy: [u8; 32],
    ) -> Result<Vec<u8>, Unproven> {
        let traced = self.trace(budgets, batch, salt, Manner::default())?;
        self.seal(traced, context, entropy)
    }

    /// Prove the same of a batch, and that the statistic is that of its rows.
    ///
    /// # Errors
    /// [`Unproven`] where it is not, or the inputs are not this circuit's.
    pub fn prove_bound(
        &self,
        budgets: &Budgets,
        batch: &Batch,
        salt: &[u8; 32],
        bound: &Bound,
        entropy: [u8; 32],
    ) -> Result<Vec<u8>, Unproven> {
        let traced = self.trace_bound(budgets, batch, salt, Some(bound), Manner::default())?;
        self.seal(traced, bound.context, entropy)
    }

    /// Prove a filled trace. Whether it holds is for the verifier to find out.
    ///
    /// The masks come from `entropy` and what is proven, so that entropy which is used twice by
    /// mistake still masks two batches differently.
    ///
    /// # Errors
    /// [`Unproven::Failed`] where the proof system fails.
    pub fn seal(
        &self,
        traced: Traced,
        context: &[u8; 32],
        entropy: [u8; 32],
    ) -> Result<Vec<u8>, Unproven> {
        let values = traced.values();
        let commitment = self.commitment(&traced.digest, traced.air.public.rows);
        let seed = self.seed(
            &traced.air.public,
            &commitment,
            context,
            traced.bound.as_ref(),
        );
        let mut shown = self.shown(&traced.totals);
        let Traced { air, trace, .. } = traced;
        let mut masks = blake3::Hasher::new_keyed(&entropy);
        masks.update(&seed);
        for cell in trace.values.iter().take(air.layout.width) {
            masks.update(&cell.as_canonical_u64().to_le_bytes());
        }
        let source = StdRng::from_seed(masks.finalize().into());
        let failed = |error: String| Unproven::Failed(error);
        let held = Held::commit(&trace, source).map_err(failed)?;
        drop(trace);
        let transcript = parameters::transcript(&seed);
        let proof = held.prove(&air, self.degree, &values, transcript);
        let proof = proof.map_err(failed)?;
        let proof = postcard::to_allocvec(&proof).map_err(|error| failed(error.to_string()))?;
        shown.extend(proof);
        Ok(shown)
    }

    /// What a proof begins with: the totals of hidden sums, and nothing of others.
    pub(super) fn shown(&self, totals: &[F]) -> Vec<u8> {
        let shown = totals.iter().filter(|_| self.masked());
        shown
            .flat_map(|total| total.as_canonical_u64().to_le_bytes())
            .collect()
    }

    /// Whether the statement has a statistic whose sums stay hidden. Its proofs begin with what each
    /// repetition of the form comes to, masks included.
    #[must_use]
    pub fn masked(&self) -> bool {
        self.layout
            .moments
            .as_ref()
            .is_some_and(|moments| moments.masked)
    }

    /// What the form of a hidden statistic begins at, for a batch and a salt.
    ///
    /// # Errors
    /// [`Malformed`] where the batch is not one of this circuit, or nothing is masked.
    pub fn masks(&self, batch: &Batch, salt: &[u8; 32]) -> Result<[u64; MASKS], Malformed> {
        batch.check(&self.layout)?;
        if !self.masked() {
            return Err(Malformed("the statement masks no statistic".into()));
        }
        let masks = witness::masks(&self.layout, batch, salt_elements(salt));
        Ok(masks.map(|mask| mask.as_canonical_u64()))
    }

    /// Fill the trace of a batch.
    ///
    /// # Errors
    /// [`Unproven`] where the batch does not satisfy the statement, or is not this circuit's.
    pub fn trace(
        &self,
        budgets: &Budgets,
        batch: &Batch,
        salt: &[u8; 32],
        manner: Manner,
    ) -> Result<Traced, Unproven> {
        self.trace_bound(budgets, batch, salt, None, manner)
    }

    /// Fill the trace of a batch and of the form that ties a statistic to it. A statement has a
    /// statistic or has none, and a batch must be given accordingly.
    ///
    /// # Errors
    /// [`Unproven`] where the batch does not satisfy the statement, or is not this circuit's.
    pub fn trace_bound(
        &self,
        budgets: &Budgets,
        batch: &Batch,
        salt: &[u8; 32],
        bound: Option<&Bound>,
        manner: Manner,
    ) -> Result<Traced, Unproven> {
        batch.check(&self.layout)?;
        let salt = salt_elements(salt);
        let public = Arc::new(Public::new(&self.layout, batch.rows, budgets)?);
        let (digest, filled) = join(
            || witness::digest(&self.layout, batch, salt),
            || Trace::fill(&self.layout, &public, batch, salt, manner),
        );
        let commitment = self.commitment(&digest, batch.rows);
        let drawn = self.form(&commitment, bound, batch.rows)?;
        let (form, claimed) = drawn.map_or((None, None), |(form, totals)| (Some(form), totals));
        let mut trace = filled?;
        trace.bind(form.as_ref());
        let totals = trace.totals(form.as_ref(), claimed.as_deref())?;
        let trace = trace.matrix();
        Ok(Traced {
            air: FullAir {
                layout: self.layout.clone(),
                public,
                form: form.map(Arc::new),
                seam: None,
            },
            trace,
            digest,
            totals,
            bound: bound.map(|bound| blake3::hash(bound.statistic).into()),
        })
    }

    /// Draw the weights of a statistic's form and work out what it must come to, unless masks hide it.
    pub(super) fn form(
        &self,
        commitment: &[u8; 32],
        bound: Option<&Bound>,
        rows: usize,
    ) -> Result<Option<Drawn>, Malformed> {
        match (&self.layout.moments, bound) {
            (None, None) => Ok(None),
            (Some(moments), Some(bound)) => {
                let form = moments.form(&self.identity, commitment, bound);
                if moments.masked {
                    moments.check_sealed(bound.statistic, rows)?;
                    return Ok(Some((form, None)));
                }
                let totals = form.totals(&moments.read(bound.statistic, rows)?);
                Ok(Some((form, Some(totals))))
            }
            (Some(_), None) => Err(Malformed("the statistic is missing".into())),
            (None, Some(_)) => Err(Malformed("the statement has no statistic".into())),
        }
    }

    pub(super) fn seed(
        &self,
        public: &Public,
        commitment: &[u8; 32],
        context: &[u8; 32],
        statistic: Option<&[u8; 32]>,
    ) -> Vec<u8> {
        let mut hasher = blake3::Hasher::new_derive_key(DOMAIN);
        hasher
            .update(&self.identity)
            .update(commitment)
            .update(context);
        hasher.update(&(public.rows as u64).to_le_bytes());
        for total in &public.totals {
            hasher.update(&total.as_canonical_u64().to_le_bytes());
        }
        if let Some(hash) = statistic {
            hasher.update(hash);
        }
        hasher.finalize().as_bytes().to_vec()
    }

    /// What is added to a digest, so that one commitment speaks of one packing and one length only.
    fn tweak(&self, rows: usize) -> [F; CHAIN] {
        let mut hasher = blake3::Hasher::new_derive_key("sluice full commitment 1");
        hasher
            .update(&self.packing)
            .update(&(rows as u64).to_le_bytes());
        salt_elements(hasher.finalize().as_bytes())
    }

    pub(super) fn commitment(&self, digest: &[F; CHAIN], rows: usize) -> [u8; 32] {
        let mut bytes = [0; 32];
        for ((out, value), added) in bytes.chunks_mut(8).zip(digest).zip(self.tweak(rows)) {
            out.copy_from_slice(&(*value + added).as_canonical_u64().to_le_bytes());
        }
        bytes
    }

    pub(super) fn digest(&self, commitment: &[u8; 32], rows: usize) -> Option<[F; CHAIN]> {
        let tweak = self.tweak(rows);
        let mut digest = [F::ZERO; CHAIN];
        for ((out, bytes), tweak) in digest.iter_mut().zip(commitment.chunks(8)).zip(tweak) {
            let value = u64::from_le_bytes(bytes.try_into().ok()?);
            *out = (value < ORDER).then(|| F::from_u64(value) - tweak)?;
        }
        Some(digest)
    }
}

/// The constraints before any weights are drawn: some weights stand for them.
fn unbound(layout: Arc<Layout>, public: Arc<Public>) -> FullAir {
    let form = layout.moments.as_ref().map(|moments| moments.unbound(&[]));
    FullAir {
        layout,
        public,
        form: form.map(Arc::new),
        seam: None,
    }
}

/// Four field elements, all but uniform where the bytes are.
pub(super) fn salt_elements(bytes: &[u8; 32]) -> [F; CHAIN] {
    std::array::from_fn(|at| {
        let word: [u8; 8] = std::array::from_fn(|byte| bytes[8 * at + byte]);
        F::from_u64(u64::from_le_bytes(word))
    })
}
