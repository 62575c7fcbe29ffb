//! The `sampled` system: the paper's Groth16 proof about a few rows of a batch.
//!
//! A [`Circuit`] is one statement. The commitment to a batch is the root of a tree of salted leaves.
//! Rows are drawn after the commitment; the proof opens each of them with the row before it.

mod circuit;
pub mod constraints;
pub mod hashing;
pub mod keys;
mod points;
mod prover;
pub mod public;
pub mod statement;
pub mod tree;

pub use keys::{Keys, Trapdoor, Verifying};
pub use prover::{Draw, Unproven};
pub use public::Public;

use ark_bn254::Fr;
use ark_ff::{BigInteger, PrimeField};
use circuit::Secret;
use constraints::{Constraints, Part};
use statement::Statement;
use tree::{Shape, Tree};

pub use crate::full::{Malformed, Refused};

/// A batch as the circuit sees it: biased readings and places of codes, row by row.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// How many rows.
    pub rows: usize,
    /// Readings, row after row.
    pub readings: &'a [u32],
    /// Places of codes among the legal ones, row after row.
    pub codes: &'a [u8],
}

impl Batch<'_> {
    fn reading(&self, row: usize, channel: usize) -> u32 {
        self.readings[row * (self.readings.len() / self.rows) + channel]
    }

    fn code(&self, row: usize, actuator: usize) -> u8 {
        self.codes[row * (self.codes.len() / self.rows) + actuator]
    }

    fn check(&self, statement: &Statement) -> Result<(), Malformed> {
        let (readings, actuators) = (statement.readings, &statement.actuators);
        let most = 1 << statement.depth;
        if !(2..=most).contains(&self.rows) {
            return Err(Malformed(format!("{} rows are not 2 to {most}", self.rows)));
        }
        if self.readings.len() != self.rows * readings
            || self.codes.len() != self.rows * actuators.len()
        {
            return Err(Malformed(format!(
                "these are not {} rows of {readings} readings and {} codes",
                self.rows,
                actuators.len()
            )));
        }
        let legal = |(code, codes): (&u8, &Vec<i64>)| usize::from(*code) < codes.len();
        if self.codes.iter().zip(actuators.iter().cycle()).all(legal) {
            Ok(())
        } else {
            Err(Malformed("a code is not a legal one".into()))
        }
    }
}

/// A statement, the shape of its tree, and their identity.
#[derive(Debug)]
pub struct Circuit {
    statement: Statement,
    shape: Shape,
    identity: [u8; 32],
}

impl Circuit {
    /// Read a statement.
    ///
    /// # Errors
    /// [`Malformed`] if the circuit cannot express it.
    pub fn new(bytes: &[u8]) -> Result<Self, Malformed> {
        let statement = Statement::read(bytes)?;
        let shape = Shape::of(&statement)?;
        let mut circuit = Self {
            statement,
            shape,
            identity: [0; 32],
        };
        circuit.identity = circuit.fingerprint(bytes);
        Ok(circuit)
    }

    /// The hash that identifies statement and constraints.
    pub const fn identity(&self) -> [u8; 32] {
        self.identity
    }

    /// The statement.
    pub const fn statement(&self) -> &Statement {
        &self.statement
    }

    /// How many public inputs there are.
    pub fn publics(&self) -> usize {
        public::count(&self.statement)
    }

    /// How many constraints each part has.
    pub fn costs(&self) -> Vec<(Part, usize)> {
        let one = self.with_samples(1).blank();
        let fixed = circuit::budgets_only(&self.statement);
        let cost = |part: Part| match part {
            Part::Budgets | Part::Context => fixed.cost(part),
            part => one.cost(part) * self.statement.samples,
        };
        Part::ALL.map(|part| (part, cost(part))).to_vec()
    }

    /// The salted root of a batch: thirty-two bytes, big-endian.
    ///
    /// # Errors
    /// [`Malformed`] if the batch does not fit this statement.
    pub fn commit(&self, batch: &Batch<'_>, salt: &[u8; 32]) -> Result<[u8; 32], Malformed> {
        batch.check(&self.statement)?;
        let root = Tree::of(&self.shape, batch, salt).root();
        let bytes = root.into_bigint().to_bytes_be();
        Ok(bytes.try_into().expect("four limbs are 32 bytes"))
    }

    /// The salted leaves of a batch, one for each place of the tree. Others can hash them to the root.
    ///
    /// # Errors
    /// [`Malformed`] if the batch does not fit this statement.
    pub fn leaves(&self, batch: &Batch<'_>, salt: &[u8; 32]) -> Result<Vec<Fr>, Malformed> {
        batch.check(&self.statement)?;
        Ok(Tree::of(&self.shape, batch, salt).leaves().to_vec())
    }

    /// The constraints, filled with zeros.
    fn blank(&self) -> Constraints {
        let statement = &self.statement;
        let (rows, inapplicable) = (
            vec![1; statement.samples],
            vec![0; statement.couplings.len()],
        );
        let public = Public {
            root: 0.into(),
            rows: &rows,
            violating: 0,
            inapplicable: &inapplicable,
            context: [0; 32],
        };
        let batch = Batch {
            rows: 2,
            readings: &vec![0; 2 * statement.readings],
            codes: &vec![0; 2 * statement.actuators.len()],
        };
        let secret = Secret {
            batch: &batch,
            tree: &Tree::blank(&self.shape),
            salt: &[0; 32],
        };
        let flags = vec![false; statement.samples];
        let mut constraints = Constraints::new(&public.elements(), true);
        circuit::fill(
            &mut constraints,
            statement,
            &self.shape,
            &public,
            &secret,
            &flags,
        );
        constraints
    }

    fn with_samples(&self, samples: usize) -> Self {
        Self {
            statement: Statement {
                samples,
                ..self.statement.clone()
            },
            shape: self.shape.clone(),
            identity: self.identity,
        }
    }

    /// A hash of the statement and of the constraints of one of its samples.
    fn fingerprint(&self, statement: &[u8]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("sluice sampled circuit v1");
        hasher.update(&(statement.len() as u64).to_be_bytes());
        hasher.update(statement);
        let constraints = self.with_samples(1).blank();
        for matrix in constraints.matrices.iter().flatten() {
            for row in matrix {
                hasher.update(&(row.len() as u64).to_be_bytes());
                for (weight, at) in row {
                    hasher.update(&(*at as u64).to_be_bytes());
                    hasher.update(&weight.into_bigint().to_bytes_be());
                }
            }
        }
        *hasher.finalize().as_bytes()
    }
}
