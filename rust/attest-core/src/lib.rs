//! Commitments and proof systems of Sluice.
//!
//! Pure: no I/O, no clock, no Python. What crosses into this crate are integers that Python derived
//! from a sealed rules file; nothing is derived again here.

pub mod full;
pub mod poseidon;
pub mod sampled;
