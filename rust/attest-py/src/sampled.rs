//! The `sampled` system: bytes in, bytes out, but for the proving key, which is a file. Long work lets
//! go of the interpreter.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use attest_core::full::Invalid;
use attest_core::sampled::{Batch, Circuit, Draw, Trapdoor, Verifying, keys};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::full::{entropy, exactly, guarded, malformed, unproven, verdict};

/// One statement: samples, tree and rules.
#[pyclass(frozen, module = "sluice._attest")]
pub struct SampledCircuit(Arc<Circuit>);

/// A batch: biased readings little-endian, row after row; places of codes a byte each.
#[pyclass(frozen, module = "sluice._attest")]
pub struct SampledBatch {
    rows: usize,
    readings: Vec<u32>,
    codes: Vec<u8>,
}

#[pymethods]
impl SampledBatch {
    #[new]
    fn new(rows: usize, readings: &[u8], codes: &[u8]) -> Self {
        let readings = readings.as_chunks().0.iter().copied();
        Self {
            rows,
            readings: readings.map(u32::from_le_bytes).collect(),
            codes: codes.to_vec(),
        }
    }
}

impl SampledBatch {
    fn batch(&self) -> Batch<'_> {
        Batch {
            rows: self.rows,
            readings: &self.readings,
            codes: &self.codes,
        }
    }
}

/// What is claimed of a committed batch: the public inputs besides its root.
#[pyclass(frozen, module = "sluice._attest")]
pub struct SampledClaim {
    rows: usize,
    sampled: Vec<usize>,
    violating: u64,
    inapplicable: Vec<u64>,
    context: [u8; 32],
}

#[pymethods]
impl SampledClaim {
    #[new]
    fn new(
        rows: usize,
        sampled: Vec<usize>,
        violating: u64,
        inapplicable: Vec<u64>,
        context: &[u8],
    ) -> PyResult<Self> {
        let context = exactly(context, "context")?;
        Ok(Self {
            rows,
            sampled,
            violating,
            inapplicable,
            context,
        })
    }
}

impl SampledClaim {
    fn draw(&self) -> Draw<'_> {
        Draw {
            rows: self.rows,
            sampled: &self.sampled,
            violating: self.violating,
            inapplicable: &self.inapplicable,
            context: self.context,
        }
    }
}

#[pymethods]
impl SampledCircuit {
    #[new]
    fn new(py: Python<'_>, statement: &[u8]) -> PyResult<Self> {
        guarded(py, || Circuit::new(statement))?
            .map(|circuit| Self(Arc::new(circuit)))
            .map_err(malformed)
    }

    /// What identifies statement and constraints: 32 bytes.
    #[getter]
    fn identity<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.identity())
    }

    /// How many constraints each part has, by name.
    fn costs(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, usize)>> {
        let costs = guarded(py, || self.0.costs())?;
        Ok(costs
            .into_iter()
            .map(|(part, cost)| (part.name(), cost))
            .collect())
    }

    /// Make a proving key and a verifying key from the operating system's randomness.
    fn make_keys<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let trapdoor = Trapdoor::draw(&entropy()?);
        let made = guarded(py, || keys::make(&self.0, &trapdoor))?.map_err(malformed)?;
        Ok((
            PyBytes::new(py, &made.proving),
            PyBytes::new(py, &made.verifying),
        ))
    }

    /// The salted root of a batch.
    fn commit<'py>(
        &self,
        py: Python<'py>,
        batch: &SampledBatch,
        salt: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let salt = exactly(salt, "salt")?;
        guarded(py, || self.0.commit(&batch.batch(), &salt))?
            .map(|root| PyBytes::new(py, &root))
            .map_err(malformed)
    }

    /// The salted leaves of a batch, as decimals.
    fn leaves(&self, py: Python<'_>, batch: &SampledBatch, salt: &[u8]) -> PyResult<Vec<String>> {
        let salt = exactly(salt, "salt")?;
        let leaves = guarded(py, || self.0.leaves(&batch.batch(), &salt))?.map_err(malformed)?;
        Ok(leaves.into_iter().map(crate::to_decimal).collect())
    }

    /// Which of some rows violate, and on how many of them each coupling is inapplicable.
    fn measure(
        &self,
        py: Python<'_>,
        batch: &SampledBatch,
        rows: Vec<usize>,
    ) -> PyResult<(Vec<bool>, Vec<u64>)> {
        guarded(py, || self.0.measure(&batch.batch(), &rows))?.map_err(malformed)
    }
}

/// A verifying key, ready for many proofs.
#[pyclass(frozen, module = "sluice._attest")]
pub struct SampledVerifier {
    circuit: Arc<Circuit>,
    key: Verifying,
}

#[pymethods]
impl SampledVerifier {
    #[new]
    fn new(py: Python<'_>, circuit: &SampledCircuit, key: &[u8]) -> PyResult<Self> {
        let circuit = Arc::clone(&circuit.0);
        let key = guarded(py, || Verifying::read(&circuit, key))?.map_err(malformed)?;
        Ok(Self { circuit, key })
    }

    /// Prove a claim about the batch in the commitment under this salt; the proving key is a file.
    fn prove<'py>(
        &self,
        py: Python<'py>,
        proving_key: PathBuf,
        batch: &SampledBatch,
        salt: &[u8],
        claim: &SampledClaim,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (salt, entropy) = (exactly(salt, "salt")?, entropy()?);
        let proving_key = File::open(proving_key)?;
        let proof = guarded(py, || {
            let (batch, draw) = (batch.batch(), claim.draw());
            self.circuit
                .prove(&self.key, proving_key, &batch, &salt, &draw, &entropy)
        })?;
        proof
            .map(|bytes| PyBytes::new(py, &bytes))
            .map_err(unproven)
    }

    /// Raise unless the proof shows the claim of the committed batch.
    fn verify(
        &self,
        py: Python<'_>,
        commitment: &[u8],
        claim: &SampledClaim,
        proof: &[u8],
    ) -> PyResult<()> {
        let commitment = exactly(commitment, "commitment")?;
        let verified = catch_unwind(AssertUnwindSafe(|| {
            let draw = claim.draw();
            py.detach(|| self.circuit.verify(&self.key, &commitment, &draw, proof))
        }));
        let unread = "the verifier could not make anything of the proof";
        verdict(verified.unwrap_or_else(|_| Err(Invalid::Shape(unread.into()))))
    }
}
