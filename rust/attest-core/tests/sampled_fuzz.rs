//! Bytes that are no proof, key or statement of `sampled`: each is refused, and nothing panics.

mod sampled_support;

use std::io::Cursor;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};

use attest_core::sampled::{Circuit, Draw, Unproven, Verifying, public};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sampled_support::{Plant, SALT, STATEMENT, plant};
use serde_json::{Value, json};

/// Where a verifying key says which circuit it is of, and where which proving key goes with it.
const CIRCUIT: usize = 24;
const PROVING: usize = CIRCUIT + 32;
const POINTS: usize = PROVING + 32;

static PANICS: AtomicUsize = AtomicUsize::new(0);

fn watched() -> StdRng {
    panic::set_hook(Box::new(|draw| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        eprintln!("{draw}");
    }));
    StdRng::seed_from_u64(6)
}

/// Bytes with a few of them changed, cut out, doubled, or made the largest or the smallest.
fn mutated(bytes: &[u8], rng: &mut StdRng) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..rng.random_range(1..4) {
        let at = rng.random_range(0..out.len().max(1)).min(out.len());
        let until = (at + rng.random_range(1..65)).min(out.len());
        match rng.random_range(0..5) {
            0 => out.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1),
            1 => out[at..until].fill(0xff),
            2 => out[at..until].fill(0),
            3 => drop(out.drain(at..until)),
            _ => {
                let doubled = out[at..until].to_vec();
                out.splice(at..at, doubled);
            }
        }
    }
    out
}

#[test]
fn proofs_keys_and_roots_of_any_bytes_are_refused() {
    let mut rng = watched();
    let plant = plant();
    let draw = Plant::draw();
    let proof = plant.prove(&draw).expect("the batch keeps its rules");
    for round in 0..400 {
        let wrong = mutated(&proof, &mut rng);
        assert!(wrong == proof || plant.verify(&draw, &wrong).is_err());
        let mut any = vec![0; round % 300];
        rng.fill(any.as_mut_slice());
        assert!(plant.verify(&draw, &any).is_err());
        assert!(Verifying::read(&plant.circuit, &any).is_err());
        let wrong = mutated(&plant.keys.verifying, &mut rng);
        if let Ok(read) = Verifying::read(&plant.circuit, &wrong) {
            // All that can differ is which proving key it names: points are all constrained.
            assert_eq!(wrong[POINTS..], plant.keys.verifying[POINTS..]);
            assert!(wrong == plant.keys.verifying || read.proving != plant.verifying.proving);
        }
        let mut root = [0; 32];
        rng.fill(root.as_mut_slice());
        let _ = public::root(&root);
        let rows = [rng.random_range(0..20), rng.random_range(0..20)];
        let other = Draw {
            rows: [0, 2, 12, 16, usize::MAX][round % 5],
            sampled: &rows,
            violating: rng.random_range(0..4),
            ..draw
        };
        let known = (other.rows, rows, other.violating) == (draw.rows, [3, 7], draw.violating);
        assert!(known || plant.verify(&other, &proof).is_err());
    }
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
}

/// A proving key is parsed only if its hash is right. An attacker who writes both keys gets there.
#[test]
fn proving_keys_of_any_bytes_are_refused() {
    let mut rng = watched();
    let plant = plant();
    let draw = Plant::draw();
    let lengths = 64 + 3 * 128; // where the first vector says how long it is
    for round in 0..60 {
        let mut wrong = mutated(&plant.keys.proving, &mut rng);
        match round % 6 {
            0 => wrong.truncate(rng.random_range(0..wrong.len())),
            1 if wrong.len() > lengths + 8 => wrong[lengths..lengths + 8].fill(0xff),
            2 => wrong.push(0),
            3 => wrong.clear(),
            _ => {}
        }
        let mut naming = plant.keys.verifying.clone();
        naming[PROVING..POINTS].copy_from_slice(blake3::hash(&wrong).as_bytes());
        let verifying = Verifying::read(&plant.circuit, &naming).expect("its points are right");
        let batch = plant.batch();
        let proven = plant.circuit.prove(
            &verifying,
            Cursor::new(&wrong),
            &batch,
            &SALT,
            &draw,
            &[1; 32],
        );
        match proven {
            Ok(proof) => {
                // Points that this batch multiplies by zero may be any: the proof holds all the same.
                let root = plant.root();
                let checked = plant.circuit.verify(&verifying, &root, &draw, &proof);
                assert_eq!(checked, Ok(()));
            }
            Err(unproven) => assert!(!matches!(unproven, Unproven::Refused(_))),
        }
    }
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
}

#[test]
fn statements_of_any_numbers_are_read_or_refused() {
    let mut rng = watched();
    let whole: Value = serde_json::from_str(STATEMENT).expect("a statement");
    let extremes = [
        json!(0),
        json!(-1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1e300),
        json!(21),
        json!([]),
        json!({}),
        json!(null),
        json!("x"),
        json!([[0, i64::MIN]]),
        json!([i64::MIN, 0, i64::MAX]),
    ];
    let mut read = 0;
    for round in 0..600 {
        let mut wrong = whole.clone();
        for _ in 0..=round % 3 {
            let value = extremes[rng.random_range(0..extremes.len())].clone();
            replace(&mut wrong, value, &mut rng);
        }
        read += usize::from(Circuit::new(wrong.to_string().as_bytes()).is_ok());
        let bytes = mutated(STATEMENT.as_bytes(), &mut rng);
        let _ = Circuit::new(&bytes);
    }
    assert!(read < 600, "most of them state nothing");
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
}

/// Put a value somewhere into a document.
fn replace(within: &mut Value, value: Value, rng: &mut StdRng) {
    let deeper = rng.random_range(0..3) > 0;
    let child = match within {
        Value::Array(items) if !items.is_empty() => {
            let at = rng.random_range(0..items.len());
            items.get_mut(at)
        }
        Value::Object(items) if !items.is_empty() => {
            let at = rng.random_range(0..items.len());
            items.values_mut().nth(at)
        }
        _ => None,
    };
    match child {
        Some(child) if deeper || child.is_object() || child.is_array() => {
            replace(child, value, rng);
        }
        Some(child) => *child = value,
        None => *within = value,
    }
}

/// What a residual could reach must not wrap round to something small.
#[test]
fn a_statement_whose_residual_overflows_is_refused() {
    let huge = STATEMENT
        .replace("[[0,1,2]]", "[[0,1,4611686018427387904]]")
        .replace("\"code_weight\":-1", "\"code_weight\":-9223372036854775808");
    let refused = Circuit::new(huge.as_bytes()).expect_err("2^141 is beyond any field element");
    assert!(
        refused.0.contains("a residual could reach"),
        "{}",
        refused.0
    );
    let wide = STATEMENT.replace("\"readings\":2", "\"readings\":18446744073709551615");
    let refused = Circuit::new(wide.as_bytes()).expect_err("too many channels");
    assert!(refused.0.contains("channels"), "{}", refused.0);
}
