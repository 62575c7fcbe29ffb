//! What several tests of the `full` system share: the vectors, and constraints asked row by row.
#![allow(dead_code)]

pub mod bound;

use std::collections::BTreeMap;

use attest_core::full::air::FullAir;
use attest_core::full::columns::F;
use attest_core::full::witness::Manner;
use attest_core::full::{Batch, Budgets, Circuit, Claim, Invalid, Traced, Unproven};
use p3_air::{Air, BaseAir, DebugConstraintBuilder};
use p3_field::PrimeCharacteristicRing;
use p3_matrix::Matrix;
use p3_matrix::dense::{RowMajorMatrix, RowMajorMatrixView};
use p3_matrix::stack::VerticalPair;
use serde::Deserialize;

/// What the tests' proofs are bound to.
pub const CONTEXT: [u8; 32] = [9; 32];

/// What a chain begins with.
pub const CHAIN: &[u8] = b"sluice-chain-1\0\0";

/// Words of a chain before the values of its seams.
pub const HEAD_WORDS: usize = 3;

/// Words of the values of a seam.
const SEAM_WORDS: usize = 3;

/// Where the lengths of so many segments stand in a chain.
fn lengths_at(segments: usize) -> usize {
    8 * (HEAD_WORDS + SEAM_WORDS * (segments - 1))
}

/// The proofs of the segments of a chain.
pub fn segments(chain: &[u8], segments: usize) -> Vec<Vec<u8>> {
    let lengths = lengths_at(segments);
    let mut at = lengths + 8 * segments;
    let mut parts = Vec::new();
    for segment in 0..segments {
        let word = chain[lengths + 8 * segment..].first_chunk();
        let length = u64::from_le_bytes(*word.expect("a length")) as usize;
        parts.push(chain[at..at + length].to_vec());
        at += length;
    }
    assert_eq!(at, chain.len());
    parts
}

/// A chain with another proof for one of its segments.
pub fn with_segment(chain: &[u8], count: usize, at: usize, proof: &[u8]) -> Vec<u8> {
    let mut parts = segments(chain, count);
    parts[at] = proof.to_vec();
    let mut changed = chain[..lengths_at(count)].to_vec();
    for part in &parts {
        changed.extend((part.len() as u64).to_le_bytes());
    }
    changed.extend(parts.concat());
    changed
}

/// A plant of one gauge that shows 0 to 7, and no rule: the smallest circuit there is.
const GAUGE: &str = r#"{
    "version": 2,
    "encoding": "0000000000000000000000000000000000000000000000000000000000000000",
    "registers": [{"low": 0, "high": 7}],
    "actuators": [],
    "lanes": [[{"source": {"register": 0}, "weight": 1}]],
    "jumps": false, "severe": false,
    "bounds": [], "rates": [], "couplings": [], "balances": [], "windows": [], "liveness": [],
    "idle": [], "ties": [], "switches": [], "spectra": []
}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    provenance: String,
    statements: BTreeMap<String, String>,
    vectors: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    statement: String,
    budgets: String,
    rows: usize,
    registers: String,
    codes: String,
    starts: String,
    flagged: String,
    salt: String,
    commitment: String,
    admitted: bool,
}

/// A batch, its circuit, and what is expected of them.
pub struct Vector {
    pub name: String,
    pub statement: String,
    pub circuit: Circuit,
    pub budgets: Budgets,
    pub salt: [u8; 32],
    pub commitment: [u8; 32],
    pub admitted: bool,
    pub rows: usize,
    pub registers: Vec<u16>,
    pub codes: Vec<u8>,
    pub starts: Vec<u8>,
    pub flagged: Vec<u8>,
}

impl Vector {
    pub fn batch(&self) -> Batch<'_> {
        Batch {
            rows: self.rows,
            registers: &self.registers,
            codes: &self.codes,
            starts: &self.starts,
            flagged: &self.flagged,
        }
    }

    pub fn claim<'a>(&'a self, proof: &'a [u8]) -> Claim<'a> {
        Claim {
            budgets: &self.budgets,
            rows: self.rows,
            commitment: &self.commitment,
            context: &CONTEXT,
            statistic: None,
            proof,
        }
    }

    pub fn proven(&self, entropy: u8) -> Vec<u8> {
        let (batch, entropy) = (self.batch(), [entropy; 32]);
        let proof = self
            .circuit
            .prove(&self.budgets, &batch, &self.salt, &CONTEXT, entropy);
        proof.expect("the batch is admitted")
    }

    /// A proof in segments of `2^log_rows` rows.
    pub fn chained(&self, entropy: u8, log_rows: usize) -> Vec<u8> {
        let (batch, entropy) = (self.batch(), [entropy; 32]);
        let proof = self.circuit.prove_chain(
            &self.budgets,
            &batch,
            &self.salt,
            &CONTEXT,
            None,
            entropy,
            log_rows,
        );
        proof.expect("the batch is admitted")
    }

    pub fn verified(&self, proof: &[u8]) -> Result<(), Invalid> {
        self.circuit.verify(&self.claim(proof))
    }

    pub fn traced(&self, manner: Manner) -> Result<Traced, Unproven> {
        self.circuit
            .trace(&self.budgets, &self.batch(), &self.salt, manner)
    }
}

pub fn vectors() -> Vec<Vector> {
    let text = include_str!("../../../../tests/vectors/full.json");
    let file: File = serde_json::from_str(text).expect("the vector file is well formed");
    assert!(!file.provenance.is_empty() && !file.vectors.is_empty());
    let read = |written: Written| {
        let statement = file.statements[&written.statement].clone();
        Vector {
            circuit: Circuit::new(statement.as_bytes()).expect("a statement of ours"),
            statement,
            budgets: Budgets::read(written.budgets.as_bytes()).expect("budgets of ours"),
            salt: bytes(&written.salt).try_into().expect("32 bytes"),
            commitment: bytes(&written.commitment).try_into().expect("32 bytes"),
            registers: bytes(&written.registers)
                .chunks(2)
                .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
                .collect(),
            codes: bytes(&written.codes),
            starts: bytes(&written.starts),
            flagged: bytes(&written.flagged),
            name: written.name,
            admitted: written.admitted,
            rows: written.rows,
        }
    };
    file.vectors.into_iter().map(read).collect()
}

pub fn vector(name: &str) -> Vector {
    vectors()
        .into_iter()
        .find(|vector| vector.name == name)
        .expect("a vector of that name")
}

/// So many rows on which the only gauge shows the same.
pub fn gauge(shows: u16, rows: usize) -> Vector {
    let mut starts = vec![0; rows];
    starts[0] = 1;
    let mut vector = Vector {
        name: format!("a gauge that shows {shows}"),
        statement: GAUGE.into(),
        circuit: Circuit::new(GAUGE.as_bytes()).expect("a statement"),
        budgets: Budgets {
            violating: 1,
            severe: 0,
            segments: 1,
            unsteady: vec![],
            windows: vec![],
            switches: vec![],
            blocks: vec![],
        },
        salt: [7; 32],
        commitment: [0; 32],
        admitted: true,
        rows,
        registers: vec![shows; rows],
        codes: vec![],
        starts,
        flagged: vec![0; rows],
    };
    let commitment = vector.circuit.commit(&vector.batch(), &vector.salt);
    vector.commitment = commitment.expect("a batch of the gauge");
    vector
}

fn bytes(hex: &str) -> Vec<u8> {
    let pair = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    (0..hex.len()).step_by(2).map(pair).collect()
}

/// The constraints that do not hold between a row and the next.
pub fn broken_on(air: &FullAir, trace: &RowMajorMatrix<F>, digest: &[F], row: usize) -> Vec<usize> {
    let height = trace.height();
    let here = trace.row_slice(row).expect("a row of the trace");
    let next = trace
        .row_slice((row + 1) % height)
        .expect("a row of the trace");
    let periodic: Vec<F> = air
        .periodic_columns()
        .iter()
        .map(|column| column[row])
        .collect();
    let mut builder = DebugConstraintBuilder::new(
        row,
        VerticalPair::new(
            RowMajorMatrixView::new_row(&here),
            RowMajorMatrixView::new_row(&next),
        ),
        VerticalPair::new(
            RowMajorMatrixView::new(&[], 0),
            RowMajorMatrixView::new(&[], 0),
        ),
        digest,
        F::from_bool(row == 0),
        F::from_bool(row == height - 1),
        F::from_bool(row != height - 1),
        &periodic,
    );
    air.eval(&mut builder);
    builder
        .failures()
        .iter()
        .map(|failure| failure.constraint)
        .collect()
}
