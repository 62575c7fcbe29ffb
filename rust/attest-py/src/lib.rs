//! `sluice._attest`: parse, call, map errors; no logic.

use std::str::FromStr;

use ark_bn254::Fr;
use ark_ff::PrimeField;
use attest_core::poseidon;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

mod full;
mod sampled;

/// Native core of Sluice's attestation.
#[pymodule]
mod _attest {
    #[pymodule_export]
    use super::full::{FullBatch, FullCircuit, InvalidProofError, RefusedBatchError};
    #[pymodule_export]
    use super::sampled::{SampledBatch, SampledCircuit, SampledClaim, SampledVerifier};
    use super::{
        Bound, Fr, PyBackedBytes, PyBytes, PyResult, PyValueError, Python, field_element, full,
        poseidon, pyfunction, to_decimal,
    };

    /// Hash 1 to 16 field elements of BN254, given and returned as canonical decimal strings.
    #[pyfunction]
    fn poseidon_hash(inputs: Vec<String>) -> PyResult<String> {
        let elements: Vec<Fr> = inputs
            .iter()
            .map(|text| field_element(text))
            .collect::<PyResult<_>>()?;
        poseidon::hash(&elements)
            .map(to_decimal)
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Every parameter of the `full` system by name.
    #[pyfunction]
    fn full_parameters() -> Vec<(&'static str, u64)> {
        full::parameters()
    }

    /// The chain that the records of all of its segments make.
    #[pyfunction]
    fn full_chain<'py>(
        py: Python<'py>,
        log_rows: usize,
        records: Vec<PyBackedBytes>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        full::chain(py, log_rows, records)
    }
}

fn field_element(decimal: &str) -> PyResult<Fr> {
    let refuse = || {
        PyValueError::new_err(format!(
            "{decimal:?} is not a canonical field element of BN254"
        ))
    };
    let element = Fr::from_str(decimal).map_err(|()| refuse())?;
    // Arkworks reduces what is too large and reads signs; only the one canonical spelling is let in.
    if to_decimal(element) == decimal {
        Ok(element)
    } else {
        Err(refuse())
    }
}

fn to_decimal(element: Fr) -> String {
    element.into_bigint().to_string()
}
