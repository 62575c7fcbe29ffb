//! Prove one request of the worker's and verify the proof, so often; one line of JSON each time.
//!
//! `cargo run --release --example prove -- REQUEST TIMES [LOG_ROWS [MASK]]`
//!
//! With a `LOG_ROWS` above 0, the proof is a chain of segments of `2^LOG_ROWS` rows. Masks are drawn
//! from `MASK` for the first proof, and from the next numbers for the next proofs.

use std::env::args;
use std::fs;
use std::time::Instant;

use attest_core::full::{Batch, Budgets, Circuit, Claim};

/// The fields of a request, each after eight bytes of length.
fn fields(request: &[u8]) -> Vec<&[u8]> {
    let (mut fields, mut rest) = (Vec::new(), request);
    while let Some((length, after)) = rest.split_first_chunk() {
        let (field, left) = after.split_at(u64::from_be_bytes(*length) as usize);
        fields.push(field);
        rest = left;
    }
    fields
}

fn main() {
    let path = args().nth(1).expect("a file with a request");
    let times = args()
        .nth(2)
        .map_or(1, |times| times.parse().expect("a number"));
    let number = |at: usize| args().nth(at).map(|text| text.parse().expect("a number"));
    let log_rows = number(3).filter(|log| *log > 0);
    let mask = number(4).unwrap_or(0) as u8;
    let request = fs::read(path).expect("a file that can be read");
    let [
        statement,
        budgets,
        rows,
        registers,
        codes,
        starts,
        flagged,
        salt,
        context,
    ] = fields(&request)[..9].try_into().expect("nine fields");
    let circuit = Circuit::new(statement).expect("a statement");
    let budgets = Budgets::read(budgets).expect("budgets");
    let rows = rows
        .iter()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    let registers: Vec<u16> = registers
        .as_chunks()
        .0
        .iter()
        .map(|bytes| u16::from_le_bytes(*bytes))
        .collect();
    let batch = Batch {
        rows,
        registers: &registers,
        codes,
        starts,
        flagged,
    };
    let salt = salt.try_into().expect("a salt");
    let context = context.try_into().expect("a context");
    let commitment = circuit.commit(&batch, salt).expect("a batch that fits");
    for time in 0..times {
        let began = Instant::now();
        let entropy = [mask.wrapping_add(time); 32];
        let proof = match log_rows {
            None => circuit.prove(&budgets, &batch, salt, context, entropy),
            Some(log) => circuit.prove_chain(&budgets, &batch, salt, context, None, entropy, log),
        };
        let proof = proof.expect("a batch that holds");
        let proven = began.elapsed();
        let began = Instant::now();
        let claim = Claim {
            budgets: &budgets,
            rows,
            commitment: &commitment,
            context,
            statistic: None,
            proof: &proof,
        };
        circuit.verify(&claim).expect("a proof that holds");
        let line = serde_json::json!({
            "prove_s": proven.as_secs_f64(),
            "verify_s": began.elapsed().as_secs_f64(),
            "proof_bytes": proof.len(),
            "bits": log_rows.map_or_else(
                || circuit.proven_bits(rows),
                |log| circuit.proven_bits_chained(rows, log).expect("a chain"),
            ),
            "carried": circuit.carried(),
            "columns": circuit.width(),
        });
        println!("{line}");
    }
}
