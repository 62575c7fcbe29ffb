//! The vectors that the Python tests read too.

use std::str::FromStr;

use ark_bn254::Fr;
use attest_core::poseidon::{self, MAX_INPUTS, PARTIAL_ROUNDS, PoseidonError};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vectors {
    provenance: String,
    hashes: Vec<HashVector>,
    constraints: Vec<ConstraintVector>,
    refused: Vec<RefusedVector>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HashVector {
    inputs: Vec<String>,
    digest: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstraintVector {
    inputs: usize,
    constraints: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RefusedVector {
    inputs: Vec<String>,
    expect: String,
}

fn vectors() -> Vectors {
    let text = include_str!("../../../tests/vectors/poseidon.json");
    let vectors: Vectors = serde_json::from_str(text).expect("the vector file is well formed");
    assert!(!vectors.provenance.is_empty() && !vectors.hashes.is_empty());
    vectors
}

fn elements(decimals: &[String]) -> Vec<Fr> {
    decimals
        .iter()
        .map(|decimal| Fr::from_str(decimal).expect("a decimal field element"))
        .collect()
}

#[test]
fn digests_equal_circomlib() {
    for vector in vectors().hashes {
        let digest = poseidon::hash(&elements(&vector.inputs)).expect("an arity in range");
        assert_eq!(
            digest.to_string(),
            vector.digest,
            "inputs {:?}",
            vector.inputs
        );
    }
}

#[test]
fn round_numbers_give_the_published_constraint_counts() {
    for vector in vectors().constraints {
        let width = vector.inputs + 1;
        let rounds = poseidon::FULL_ROUNDS * width + PARTIAL_ROUNDS[vector.inputs - 1];
        assert_eq!(
            3 * rounds - 3,
            vector.constraints,
            "{} inputs",
            vector.inputs
        );
    }
}

#[test]
fn arities_out_of_range_are_refused() {
    for vector in vectors()
        .refused
        .iter()
        .filter(|vector| vector.expect == "arity")
    {
        let inputs = elements(&vector.inputs);
        assert_eq!(
            poseidon::hash(&inputs),
            Err(PoseidonError::Arity(inputs.len()))
        );
    }
    assert!(poseidon::hash(&vec![Fr::from(1u64); MAX_INPUTS]).is_ok());
}
