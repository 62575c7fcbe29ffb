//! The `full` system: bytes in, bytes out. Long work lets go of the interpreter, and a panic of the
//! core becomes an exception here.

use std::panic::{AssertUnwindSafe, catch_unwind};

use attest_core::full::chain::{Record, joined};
use attest_core::full::witness::Manner;
use attest_core::full::{
    self, Batch, Bound as Tied, Budgets, Circuit, Claim, Invalid, Malformed, Unproven,
};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

create_exception!(
    _attest,
    RefusedBatchError,
    PyException,
    "The batch does not satisfy the statement."
);
create_exception!(
    _attest,
    InvalidProofError,
    PyException,
    "The proof is not accepted: step and why."
);

/// One statement, ready for batches of any length.
#[pyclass(frozen, module = "sluice._attest")]
pub struct FullCircuit(Circuit);

/// A batch: registers little-endian, row after row; codes, starts and flags a byte each.
#[pyclass(frozen, module = "sluice._attest")]
pub struct FullBatch {
    rows: usize,
    registers: Vec<u16>,
    codes: Vec<u8>,
    starts: Vec<u8>,
    flagged: Vec<u8>,
}

#[pymethods]
impl FullBatch {
    #[new]
    fn new(rows: usize, registers: &[u8], codes: &[u8], starts: &[u8], flagged: &[u8]) -> Self {
        let registers = registers
            .as_chunks()
            .0
            .iter()
            .copied()
            .map(u16::from_le_bytes);
        Self {
            rows,
            registers: registers.collect(),
            codes: codes.to_vec(),
            starts: starts.to_vec(),
            flagged: flagged.to_vec(),
        }
    }
}

impl FullBatch {
    fn batch(&self) -> Batch<'_> {
        Batch {
            rows: self.rows,
            registers: &self.registers,
            codes: &self.codes,
            starts: &self.starts,
            flagged: &self.flagged,
        }
    }
}

#[pymethods]
impl FullCircuit {
    #[new]
    fn new(py: Python<'_>, statement: &[u8]) -> PyResult<Self> {
        guarded(py, || Circuit::new(statement))?
            .map(Self)
            .map_err(malformed)
    }

    /// What identifies statement, parameters and constraints: 32 bytes.
    #[getter]
    fn identity<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.identity())
    }

    /// How many columns a row has.
    #[getter]
    fn columns(&self) -> usize {
        self.0.width()
    }

    /// How many constraints a row has.
    #[getter]
    fn constraints(&self, py: Python<'_>) -> PyResult<usize> {
        guarded(py, || self.0.constraints())
    }

    /// Bits of soundness that are proven for batches of so many rows.
    fn proven_bits(&self, py: Python<'_>, rows: usize) -> PyResult<usize> {
        guarded(py, || self.0.proven_bits(rows))
    }

    /// Bits of soundness of the statistic by itself; none where the statement has no statistic.
    #[getter]
    fn statistic_bits(&self) -> Option<usize> {
        self.0.statistic_bits()
    }

    /// The salted digest of a batch, if every row shows what a row can.
    fn commit<'py>(
        &self,
        py: Python<'py>,
        batch: &FullBatch,
        salt: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let salt = exactly(salt, "salt")?;
        let commitment = guarded(py, || self.0.commit(&batch.batch(), &salt))?;
        commitment
            .map(|bytes| PyBytes::new(py, &bytes))
            .map_err(unproven)
    }

    /// What the form of a hidden statistic begins at, for a batch and a salt: one mask a repetition.
    fn masks(&self, py: Python<'_>, batch: &FullBatch, salt: &[u8]) -> PyResult<Vec<u64>> {
        let salt = exactly(salt, "salt")?;
        let masks = guarded(py, || self.0.masks(&batch.batch(), &salt))?;
        masks.map(|masks| masks.to_vec()).map_err(malformed)
    }

    /// Fill a trace and try every constraint on every row, without a proof.
    #[pyo3(signature = (budgets, batch, statistic=None))]
    fn examine(
        &self,
        py: Python<'_>,
        budgets: &[u8],
        batch: &FullBatch,
        statistic: Option<&[u8]>,
    ) -> PyResult<()> {
        let budgets = Budgets::read(budgets).map_err(malformed)?;
        let bound = tied(statistic, &[0; 32]);
        let broken = guarded(py, || {
            let traced = self.0.trace_bound(
                &budgets,
                &batch.batch(),
                &[0; 32],
                bound.as_ref(),
                Manner::default(),
            )?;
            Ok(traced.broken())
        })?;
        match broken.map_err(unproven)?.first() {
            None => Ok(()),
            Some((constraint, row)) => Err(PyRuntimeError::new_err(format!(
                "constraint {constraint} does not hold on row {row}; this is a bug in Sluice"
            ))),
        }
    }

    /// Fill a trace as a prover that lies would, whatever the batch shows, and count the constraints
    /// that break.
    #[pyo3(signature = (budgets, batch, statistic=None))]
    fn forced(
        &self,
        py: Python<'_>,
        budgets: &[u8],
        batch: &FullBatch,
        statistic: Option<&[u8]>,
    ) -> PyResult<usize> {
        let budgets = Budgets::read(budgets).map_err(malformed)?;
        let bound = tied(statistic, &[0; 32]);
        let manner = Manner {
            forced: true,
            ..Manner::default()
        };
        let broken = guarded(py, || {
            let traced =
                self.0
                    .trace_bound(&budgets, &batch.batch(), &[0; 32], bound.as_ref(), manner)?;
            Ok(traced.broken().len())
        })?;
        broken.map_err(unproven)
    }

    /// Prove that the batch in the commitment under this salt satisfies the statement, and that the
    /// statistic is that of its rows, where the statement has one.
    ///
    /// With `log_rows`, the proof is a chain of segments of `2^log_rows` rows.
    #[pyo3(signature = (budgets, batch, salt, context, statistic=None, log_rows=None))]
    #[allow(clippy::too_many_arguments)]
    fn prove<'py>(
        &self,
        py: Python<'py>,
        budgets: &[u8],
        batch: &FullBatch,
        salt: &[u8],
        context: &[u8],
        statistic: Option<&[u8]>,
        log_rows: Option<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let budgets = Budgets::read(budgets).map_err(malformed)?;
        let (salt, context) = (exactly(salt, "salt")?, exactly(context, "context")?);
        let entropy = entropy()?;
        let bound = tied(statistic, &context);
        let proof = guarded(py, || match (&bound, log_rows) {
            (_, Some(log_rows)) => self.0.prove_chain(
                &budgets,
                &batch.batch(),
                &salt,
                &context,
                statistic,
                entropy,
                log_rows,
            ),
            (None, None) => self
                .0
                .prove(&budgets, &batch.batch(), &salt, &context, entropy),
            (Some(bound), None) => {
                self.0
                    .prove_bound(&budgets, &batch.batch(), &salt, bound, entropy)
            }
        })?;
        proof
            .map(|bytes| PyBytes::new(py, &bytes))
            .map_err(unproven)
    }

    /// Prove the same as a chain of segments of `2^log_rows` rows, one after the other. `proven` is
    /// called with the record of each segment and may raise to stop. `done` are the records of the
    /// segments that were proven before, with the same entropy and from the same batch. Return what
    /// the proof begins with, before the chain of all records.
    #[pyo3(signature = (budgets, batch, salt, context, entropy, log_rows, done, proven, statistic=None))]
    #[allow(clippy::too_many_arguments)]
    fn prove_segments<'py>(
        &self,
        py: Python<'py>,
        budgets: &[u8],
        batch: &FullBatch,
        salt: &[u8],
        context: &[u8],
        entropy: &[u8],
        log_rows: usize,
        done: Vec<PyBackedBytes>,
        proven: Py<PyAny>,
        statistic: Option<&[u8]>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let budgets = Budgets::read(budgets).map_err(malformed)?;
        let (salt, context) = (exactly(salt, "salt")?, exactly(context, "context")?);
        let entropy = exactly(entropy, "seed")?;
        let done = records(&done)?;
        let bound = tied(statistic, &context);
        let mut stopped = None;
        let head = guarded(py, || {
            let (batch, manner) = (batch.batch(), Manner::default());
            let traced =
                self.0
                    .trace_chain(&budgets, &batch, &salt, bound.as_ref(), log_rows, manner)?;
            let mut report = |record: Record| {
                let answer = Python::attach(|py| {
                    proven.call1(py, (PyBytes::new(py, &record.bytes()),))?;
                    Ok(())
                });
                answer.map_err(|error| {
                    stopped = Some(error);
                    Unproven::Failed("the proof was stopped".into())
                })
            };
            let unchanged = &mut |_, _: &mut _| {};
            self.0
                .seal_segments(&traced, &context, entropy, &done, unchanged, &mut report)?;
            Ok(self.0.chain_head(&traced))
        })?;
        if let Some(error) = stopped {
            return Err(error);
        }
        head.map(|bytes| PyBytes::new(py, &bytes)).map_err(unproven)
    }

    /// No proof of a batch of so many rows, as a chain of segments of `2^log_rows` rows, has more
    /// bytes.
    fn largest_chain(&self, rows: usize, log_rows: usize) -> PyResult<usize> {
        self.0.largest_chain(rows, log_rows).map_err(malformed)
    }

    /// Raise unless the proof shows that the committed batch satisfies the statement, and that the
    /// statistic is that of its rows, where the statement has one.
    #[pyo3(signature = (budgets, rows, commitment, context, proof, statistic=None))]
    #[allow(clippy::too_many_arguments)]
    fn verify(
        &self,
        py: Python<'_>,
        budgets: &[u8],
        rows: usize,
        commitment: &[u8],
        context: &[u8],
        proof: &[u8],
        statistic: Option<&[u8]>,
    ) -> PyResult<()> {
        let budgets = Budgets::read(budgets).map_err(malformed)?;
        let commitment = exactly(commitment, "commitment")?;
        let context = exactly(context, "context")?;
        let claim = Claim {
            budgets: &budgets,
            rows,
            commitment: &commitment,
            context: &context,
            statistic,
            proof,
        };
        verdict(guarded(py, || self.0.verify(&claim))?)
    }

    /// Verify many proofs at once: for each none, or the step and why.
    fn verify_many(&self, py: Python<'_>, claims: Vec<Claimed>) -> PyResult<Vec<Option<Refusal>>> {
        let read = |(budgets, _, commitment, context, ..): &Claimed| {
            let budgets = Budgets::read(budgets).map_err(malformed)?;
            let commitment = exactly(commitment, "commitment")?;
            Ok((budgets, commitment, exactly(context, "context")?))
        };
        let parts: Vec<_> = claims.iter().map(read).collect::<PyResult<_>>()?;
        let held: Vec<Claim> = claims
            .iter()
            .zip(&parts)
            .map(|(claimed, (budgets, commitment, context))| Claim {
                budgets,
                rows: claimed.1,
                commitment,
                context,
                statistic: claimed.5.as_deref(),
                proof: &claimed.4,
            })
            .collect();
        let answers = guarded(py, || self.0.verify_many(&held))?;
        Ok(answers.into_iter().map(invalid).collect())
    }
}

/// Budgets, rows, commitment, context, proof, and the statistic where there is one.
type Claimed = (
    PyBackedBytes,
    usize,
    PyBackedBytes,
    PyBackedBytes,
    PyBackedBytes,
    Option<PyBackedBytes>,
);

/// The step that failed, and why.
type Refusal = (&'static str, String);

fn records(bytes: &[PyBackedBytes]) -> PyResult<Vec<Record>> {
    let read = |bytes: &PyBackedBytes| Record::read(bytes).map_err(malformed);
    bytes.iter().map(read).collect()
}

/// The chain that the records of all of its segments make.
pub fn chain<'py>(
    py: Python<'py>,
    log_rows: usize,
    segments: Vec<PyBackedBytes>,
) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, &joined(log_rows, &records(&segments)?)))
}

/// A statistic with what else a proof is bound to.
fn tied<'a>(statistic: Option<&'a [u8]>, context: &'a [u8; 32]) -> Option<Tied<'a>> {
    statistic.map(|statistic| Tied { statistic, context })
}

/// A proof that is not accepted is an exception.
pub(crate) fn verdict(verified: Result<(), Invalid>) -> PyResult<()> {
    invalid(verified).map_or(Ok(()), |refused| Err(InvalidProofError::new_err(refused)))
}

fn invalid(verified: Result<(), Invalid>) -> Option<Refusal> {
    match verified {
        Ok(()) => None,
        Err(Invalid::Shape(why)) => Some(("shape", why)),
        Err(Invalid::Fails(why)) => Some(("fails", why)),
    }
}

/// Every parameter of the proof system by name.
pub fn parameters() -> Vec<(&'static str, u64)> {
    full::parameters::named()
}

pub(crate) fn guarded<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(|| py.detach(work)))
        .map_err(|_| PyRuntimeError::new_err("the proof core panicked; this is a bug in Sluice"))
}

/// Thirty-two bytes from the operating system.
pub(crate) fn entropy() -> PyResult<[u8; 32]> {
    let mut entropy = [0; 32];
    getrandom::fill(&mut entropy)
        .map_err(|error| PyRuntimeError::new_err(format!("no randomness: {error}")))?;
    Ok(entropy)
}

pub(crate) fn exactly(bytes: &[u8], what: &str) -> PyResult<[u8; 32]> {
    bytes
        .try_into()
        .map_err(|_| PyValueError::new_err(format!("a {what} has 32 bytes, not {}", bytes.len())))
}

pub(crate) fn malformed(error: Malformed) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub(crate) fn unproven(error: Unproven) -> PyErr {
    match error {
        Unproven::Malformed(error) => malformed(error),
        Unproven::Refused(error) => RefusedBatchError::new_err(error.to_string()),
        Unproven::Failed(why) => PyRuntimeError::new_err(why),
    }
}
