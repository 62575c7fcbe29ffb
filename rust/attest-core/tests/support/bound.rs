//! Vectors of batches with a statistic, open or sealed.

use attest_core::full::witness::Manner;
use attest_core::full::{Batch, Bound, Budgets, Circuit, Claim, Traced, Unproven};
use serde::Deserialize;

use super::bytes;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    provenance: String,
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
    context: String,
    identity: String,
    commitment: String,
    #[serde(alias = "sealed")]
    statistic: String,
    #[serde(default)]
    masks: Vec<String>,
    #[serde(default)]
    totals: Vec<String>,
}

/// A batch, its circuit, and its statistic.
#[derive(Clone)]
pub struct BoundVector {
    pub name: String,
    pub statement: String,
    pub circuit: Circuit,
    pub budgets: Budgets,
    pub rows: usize,
    pub registers: Vec<u16>,
    pub codes: Vec<u8>,
    pub starts: Vec<u8>,
    pub flagged: Vec<u8>,
    pub salt: [u8; 32],
    pub context: [u8; 32],
    pub identity: [u8; 32],
    pub commitment: [u8; 32],
    /// As the commitment names it: the sums, or the sealed statistic.
    pub statistic: Vec<u8>,
    /// Of a sealed statistic.
    pub masks: Vec<u64>,
    /// Of a sealed statistic: what its proof shows.
    pub totals: Vec<u64>,
}

impl BoundVector {
    pub fn batch(&self) -> Batch<'_> {
        Batch {
            rows: self.rows,
            registers: &self.registers,
            codes: &self.codes,
            starts: &self.starts,
            flagged: &self.flagged,
        }
    }

    pub fn traced(&self, statistic: &[u8], manner: Manner) -> Result<Traced, Unproven> {
        let bound = Bound {
            statistic,
            context: &self.context,
        };
        let batch = self.batch();
        self.circuit
            .trace_bound(&self.budgets, &batch, &self.salt, Some(&bound), manner)
    }

    pub fn honest(&self) -> Traced {
        self.traced(&self.statistic, Manner::default())
            .expect("the statistic of the batch")
    }

    pub fn claim<'a>(&'a self, proof: &'a [u8]) -> Claim<'a> {
        Claim {
            budgets: &self.budgets,
            rows: self.rows,
            commitment: &self.commitment,
            context: &self.context,
            statistic: Some(&self.statistic),
            proof,
        }
    }
}

/// Read the vectors of a file.
pub fn bound_vectors(text: &str) -> Vec<BoundVector> {
    let file: File = serde_json::from_str(text).expect("the vector file is well formed");
    assert!(!file.provenance.is_empty() && !file.vectors.is_empty());
    let exactly = |hex: &str| -> [u8; 32] { bytes(hex).try_into().expect("32 bytes") };
    let numbers = |list: &[String]| -> Vec<u64> {
        list.iter()
            .map(|word| word.parse().expect("a number"))
            .collect()
    };
    let read = |written: Written| BoundVector {
        circuit: Circuit::new(written.statement.as_bytes()).expect("a statement of ours"),
        statement: written.statement,
        budgets: Budgets::read(written.budgets.as_bytes()).expect("budgets of ours"),
        rows: written.rows,
        registers: bytes(&written.registers)
            .chunks(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .collect(),
        codes: bytes(&written.codes),
        starts: bytes(&written.starts),
        flagged: bytes(&written.flagged),
        salt: exactly(&written.salt),
        context: exactly(&written.context),
        identity: exactly(&written.identity),
        commitment: exactly(&written.commitment),
        statistic: bytes(&written.statistic),
        masks: numbers(&written.masks),
        totals: numbers(&written.totals),
        name: written.name,
    };
    file.vectors.into_iter().map(read).collect()
}
