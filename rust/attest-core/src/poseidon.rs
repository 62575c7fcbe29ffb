//! Poseidon over the scalar field of BN254 with circomlib's parameters.
//!
//! Width `t = inputs + 1`, S-box `x^5`, eight full rounds, the partial rounds of [`PARTIAL_ROUNDS`];
//! round constants and MDS matrix come from the Grain LFSR of the Poseidon paper (appendix E of
//! eprint 2019/458), as arkworks generates them. The state starts as `[0, inputs...]` and the hash is its first
//! element after the permutation.

use std::sync::OnceLock;

use ark_bn254::Fr;
use ark_crypto_primitives::sponge::poseidon::find_poseidon_ark_and_mds;
use ark_ff::{AdditiveGroup, Field, PrimeField};

/// The most field elements one hash takes.
pub const MAX_INPUTS: usize = 16;

/// Full rounds, half of them before the partial rounds and half after.
pub const FULL_ROUNDS: usize = 8;

/// Partial rounds for 1, 2, ... [`MAX_INPUTS`] inputs.
pub const PARTIAL_ROUNDS: [usize; MAX_INPUTS] = [
    56, 57, 56, 60, 60, 63, 64, 63, 60, 66, 60, 65, 70, 60, 64, 68,
];

/// Why a hash was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoseidonError {
    /// The number of inputs is outside `1..=MAX_INPUTS`.
    Arity(usize),
}

impl std::fmt::Display for PoseidonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Arity(got) => write!(f, "Poseidon takes 1 to {MAX_INPUTS} inputs, got {got}"),
        }
    }
}

impl std::error::Error for PoseidonError {}

/// Round constants (one row a round) and MDS matrix of one width.
#[derive(Debug)]
pub struct Parameters {
    /// Constants added to the state before each round.
    pub round_constants: Vec<Vec<Fr>>,
    /// The matrix that mixes the state after each round.
    pub mds: Vec<Vec<Fr>>,
}

/// The parameters for a number of inputs, generated on first use.
///
/// # Errors
/// [`PoseidonError::Arity`] when `inputs` is outside `1..=MAX_INPUTS`.
pub fn parameters(inputs: usize) -> Result<&'static Parameters, PoseidonError> {
    static TABLES: [OnceLock<Parameters>; MAX_INPUTS] = [const { OnceLock::new() }; MAX_INPUTS];
    let slot = inputs
        .checked_sub(1)
        .and_then(|index| TABLES.get(index).zip(PARTIAL_ROUNDS.get(index)));
    let (table, &partial_rounds) = slot.ok_or(PoseidonError::Arity(inputs))?;
    Ok(table.get_or_init(|| {
        let (round_constants, mds) = find_poseidon_ark_and_mds::<Fr>(
            u64::from(Fr::MODULUS_BIT_SIZE),
            inputs,
            FULL_ROUNDS as u64,
            partial_rounds as u64,
            0,
        );
        Parameters {
            round_constants,
            mds,
        }
    }))
}

/// Hash one to sixteen field elements to one.
///
/// # Errors
/// [`PoseidonError::Arity`] when the number of inputs is outside `1..=MAX_INPUTS`.
pub fn hash(inputs: &[Fr]) -> Result<Fr, PoseidonError> {
    let parameters = parameters(inputs.len())?;
    let mut state = Vec::with_capacity(inputs.len() + 1);
    state.push(Fr::ZERO);
    state.extend_from_slice(inputs);
    let last_opening = FULL_ROUNDS / 2;
    let first_closing = parameters.round_constants.len() - FULL_ROUNDS / 2;
    for (round, constants) in parameters.round_constants.iter().enumerate() {
        for (cell, constant) in state.iter_mut().zip(constants) {
            *cell += constant;
        }
        let full = round < last_opening || round >= first_closing;
        let boxed = if full { state.len() } else { 1 };
        for cell in &mut state[..boxed] {
            *cell *= cell.square().square();
        }
        state = mix(&parameters.mds, &state);
    }
    Ok(state[0])
}

fn mix(mds: &[Vec<Fr>], state: &[Fr]) -> Vec<Fr> {
    mds.iter()
        .map(|row| {
            row.iter()
                .zip(state)
                .map(|(weight, cell)| *weight * cell)
                .sum()
        })
        .collect()
}
