//! The `full` system: a zero-knowledge STARK over every row of a batch.
//!
//! A [`Circuit`] is one statement. It commits to batches, proves that a committed batch satisfies
//! the statement and its budgets, and verifies such proofs.

pub mod air;
pub mod chain;
pub mod channels;
pub mod codewords;
pub mod columns;
pub mod counts;
pub mod couplings;
pub mod digest;
mod hashing;
mod identity;
pub mod ladder;
pub mod layout;
pub mod liveness;
pub mod moments;
pub mod parameters;
pub mod prover;
pub mod public;
pub mod relations;
pub mod scheme;
pub mod seam;
pub mod spectra;
mod stark;
pub mod statement;
pub mod switches;
mod transform;
mod verify;
pub mod windows;
pub mod witness;

pub use moments::Bound;
pub use public::Budgets;
pub use stark::{Circuit, Traced, Unproven};
pub use verify::{Claim, Invalid};
pub use witness::Batch;

/// The order of the field: 2^64 - 2^32 + 1.
pub const ORDER: u64 = 0xffff_ffff_0000_0001;

/// A statement, budgets or rows that are not what the circuit takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(pub String);

/// A batch that does not satisfy the statement: there is nothing to prove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused(pub String);

macro_rules! errors {
    ($($name:ident),*) => {$(
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::error::Error for $name {}
    )*};
}

errors!(Malformed, Refused);
