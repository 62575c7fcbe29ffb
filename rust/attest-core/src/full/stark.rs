//! Commit, prove, verify.

use std::sync::Arc;

use p3_air::check_all_constraints;
use p3_field::{PrimeCharacteristicRing, PrimeField64};
use p3_matrix::dense::RowMajorMatrix;
use p3_uni_stark::Proof;

use super::air::FullAir;
use super::columns::F;
use super::digest::CHAIN;
use super::identity;
use super::layout::Layout;
use super::parameters::{self, Config, LEAST_HEIGHT};
use super::public::{Budgets, Public, height};
use super::statement::Statement;
use super::witness::{self, Batch, Manner, Trace};
use super::{Malformed, ORDER, Refused};

const DOMAIN: &str = "sluice full proof 1";

/// Why a proof was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invalid {
    /// It has not the shape that the circuit demands.
    Shape(String),
    /// It does not hold.
    Fails(String),
}

/// Why no proof was made.
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
    /// The public values.
    pub digest: [F; CHAIN],
}

impl Traced {
    /// The constraints that do not hold, each with the row on which it does not.
    #[must_use]
    pub fn broken(&self) -> Vec<(usize, usize)> {
        let report = check_all_constraints(&self.air, &self.trace, &self.digest, None);
        let broken = report.failures.iter();
        broken
            .map(|failure| (failure.constraint, failure.row))
            .collect()
    }
}

/// One statement, ready for batches of any length.
#[derive(Debug, Clone)]
pub struct Circuit {
    layout: Arc<Layout>,
    identity: [u8; 32],
    packing: [u8; 32],
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
        let identity = identity::identity(
            statement,
            &FullAir {
                layout: layout.clone(),
                public,
            },
        );
        Ok(Self {
            layout,
            identity,
            packing: read.packing(),
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

    /// Bits of soundness that are proven for batches of so many rows.
    #[must_use]
    pub fn proven_bits(&self, rows: usize) -> usize {
        identity::proven_bits(&self.unbudgeted(height(rows)))
    }

    fn unbudgeted(&self, height: usize) -> FullAir {
        let public = Arc::new(Public::unbudgeted(&self.layout, height));
        FullAir {
            layout: self.layout.clone(),
            public,
        }
    }

    /// How many columns the trace has.
    #[must_use]
    pub fn width(&self) -> usize {
        self.layout.width
    }

    /// The salted digest of a batch: 32 bytes.
    ///
    /// # Errors
    /// [`Malformed`] where the batch is not one of this circuit.
    pub fn commit(&self, batch: &Batch, salt: &[u8; 32]) -> Result<[u8; 32], Malformed> {
        batch.check(&self.layout)?;
        let digest = witness::digest(&self.layout, batch, salt_elements(salt));
        let tweak = self.tweak(batch.rows);
        let mut bytes = [0; 32];
        for (out, (value, added)) in bytes.chunks_mut(8).zip(digest.into_iter().zip(tweak)) {
            out.copy_from_slice(&(value + added).as_canonical_u64().to_le_bytes());
        }
        Ok(bytes)
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
        let commitment = self.commit(batch, salt)?;
        let Traced { air, trace, digest } = self.trace(budgets, batch, salt, Manner::default())?;
        let config = parameters::config(&self.seed(&air.public, &commitment, context), entropy);
        let proof = p3_uni_stark::prove(&config, &air, trace, &digest)
            .map_err(|error| Unproven::Failed(error.to_string()))?;
        postcard::to_allocvec(&proof).map_err(|error| Unproven::Failed(error.to_string()))
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
        batch.check(&self.layout)?;
        let salt = salt_elements(salt);
        let digest = witness::digest(&self.layout, batch, salt);
        let public = Arc::new(Public::new(&self.layout, batch.rows, budgets)?);
        let trace = Trace::fill(&self.layout, &public, batch, salt, manner)?.matrix();
        Ok(Traced {
            air: FullAir {
                layout: self.layout.clone(),
                public,
            },
            trace,
            digest,
        })
    }

    /// Verify that the committed batch of so many rows satisfies the statement.
    ///
    /// # Errors
    /// [`Invalid`] where the proof does not show it.
    pub fn verify(
        &self,
        budgets: &Budgets,
        rows: usize,
        commitment: &[u8; 32],
        context: &[u8; 32],
        proof: &[u8],
    ) -> Result<(), Invalid> {
        let shape = |error: Malformed| Invalid::Shape(error.0);
        let public = Public::new(&self.layout, rows, budgets).map_err(shape)?;
        let digest = self
            .digest(commitment, rows)
            .ok_or_else(|| Invalid::Shape("the commitment is not canonical".into()))?;
        let read: Proof<Config> = postcard::from_bytes(proof)
            .map_err(|error| Invalid::Shape(format!("the proof cannot be read: {error}")))?;
        let again =
            postcard::to_allocvec(&read).map_err(|error| Invalid::Shape(error.to_string()))?;
        if again != proof {
            return Err(Invalid::Shape(
                "the proof is not in its canonical encoding".into(),
            ));
        }
        let height = public.height.ilog2() as usize + 1;
        if read.degree_bits != height {
            return Err(Invalid::Shape(format!(
                "the proof is of 2^{} rows, not of 2^{height}",
                read.degree_bits
            )));
        }
        let config = parameters::config(&self.seed(&public, commitment, context), [0; 32]);
        let air = FullAir {
            layout: self.layout.clone(),
            public: Arc::new(public),
        };
        p3_uni_stark::verify(&config, &air, &read, &digest)
            .map_err(|error| Invalid::Fails(format!("{error:?}")))
    }

    fn seed(&self, public: &Public, commitment: &[u8; 32], context: &[u8; 32]) -> Vec<u8> {
        let mut hasher = blake3::Hasher::new_derive_key(DOMAIN);
        hasher
            .update(&self.identity)
            .update(commitment)
            .update(context);
        hasher.update(&(public.rows as u64).to_le_bytes());
        for total in &public.totals {
            hasher.update(&total.as_canonical_u64().to_le_bytes());
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

    fn digest(&self, commitment: &[u8; 32], rows: usize) -> Option<[F; CHAIN]> {
        let tweak = self.tweak(rows);
        let mut digest = [F::ZERO; CHAIN];
        for ((out, bytes), tweak) in digest.iter_mut().zip(commitment.chunks(8)).zip(tweak) {
            let value = u64::from_le_bytes(bytes.try_into().ok()?);
            *out = (value < ORDER).then(|| F::from_u64(value) - tweak)?;
        }
        Some(digest)
    }
}

/// Four field elements, all but uniform where the bytes are.
fn salt_elements(bytes: &[u8; 32]) -> [F; CHAIN] {
    std::array::from_fn(|at| {
        let word: [u8; 8] = std::array::from_fn(|byte| bytes[8 * at + byte]);
        F::from_u64(u64::from_le_bytes(word))
    })
}
