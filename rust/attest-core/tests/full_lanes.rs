//! Full lanes: four registers of sixteen bits, and the guard that tells apart what wraps.

mod support;

use attest_core::full::columns::F;
use attest_core::full::{Batch, Circuit, Malformed};
use p3_field::PrimeCharacteristicRing;

const SALT: [u8; 32] = [5; 32];
const TOP: u16 = u16::MAX;

/// Nine registers of sixteen bits: two full lanes, and one with a register and the guard. A register
/// of either full lane has a bound that only a severe row may break.
const FULL: &str = r#"{
    "version": 2,
    "encoding": "0000000000000000000000000000000000000000000000000000000000000000",
    "registers": [REGISTERS],
    "actuators": [],
    "lanes": [
        [{"source": {"register": 0}, "weight": 1}, {"source": {"register": 1}, "weight": 65536},
         {"source": {"register": 2}, "weight": 4294967296},
         {"source": {"register": 3}, "weight": 281474976710656}],
        [{"source": {"register": 4}, "weight": 1}, {"source": {"register": 5}, "weight": 65536},
         {"source": {"register": 6}, "weight": 4294967296},
         {"source": {"register": 7}, "weight": 281474976710656}],
        [{"source": {"register": 8}, "weight": 1}, {"source": "guard", "weight": 65536}]
    ],
    "jumps": false, "severe": true,
    "bounds": [{"register": 3, "low": 100, "high": 40000, "severe": true},
               {"register": 4, "low": 0, "high": 60000, "severe": true}],
    "rates": [], "couplings": [], "balances": [], "windows": [], "liveness": [],
    "idle": [], "ties": [], "switches": [], "spectra": []
}"#;

fn statement() -> String {
    let register = r#"{"low": 0, "high": 65535}"#;
    FULL.replace("REGISTERS", &[register; 9].join(","))
}

fn circuit() -> Circuit {
    Circuit::new(statement().as_bytes()).expect("a statement")
}

/// The commitment to a batch whose rows are all alike.
fn committed(registers: [u16; 9]) -> [u8; 32] {
    let rows = 3;
    let batch = Batch {
        rows,
        registers: &registers.repeat(rows),
        codes: &[],
        starts: &[1, 0, 0],
        flagged: &[0; 3],
    };
    let circuit = circuit();
    circuit.commit(&batch, &SALT).expect("a batch")
}

/// What four registers give in a full lane.
fn lane(registers: &[u16]) -> F {
    let value = |(at, register): (usize, &u16)| F::from_u64(u64::from(*register) << (16 * at));
    registers.iter().enumerate().map(value).sum()
}

#[test]
fn rows_whose_full_lanes_are_equal_have_different_commitments() {
    let wrapping = [3, 1, TOP, TOP, 3, 1, TOP, TOP, 9];
    let wrapped = [2, 1, 0, 0, 2, 1, 0, 0, 9];
    assert_eq!(
        lane(&wrapping[..4]),
        lane(&wrapped[..4]),
        "order = 2^64 - 2^32 + 1"
    );
    let mut commitments = Vec::new();
    for [first, second] in [[0, 0], [0, 1], [1, 0], [1, 1]] {
        let pick = |side: usize| if side == 0 { wrapping } else { wrapped };
        let mut row = pick(first);
        row[4..8].copy_from_slice(&pick(second)[4..8]);
        commitments.push(committed(row));
    }
    for (at, one) in commitments.iter().enumerate() {
        assert!(!commitments[..at].contains(one), "{at}");
    }
}

#[test]
fn a_lane_overflows_only_where_a_guard_tells_its_rows_apart() {
    let guard = r#", {"source": "guard", "weight": 65536}"#;
    let plain = statement();
    let refused = |statement: &str| {
        let answer = Circuit::new(statement.as_bytes()).map(|_| ());
        assert!(matches!(answer, Err(Malformed(_))), "{answer:?}");
    };
    assert!(plain.contains(guard));
    refused(&plain.replace(guard, ""));
    refused(&plain.replace(guard, &format!("{guard}{guard}")));
    refused(&plain.replace(guard, r#", {"source": "guard", "weight": 65535}"#));
    // A lane of three registers and the guard overflows, and is no full one.
    let three = r#"{"source": {"register": 3}, "weight": 281474976710656}],"#;
    let moved = plain
        .replace(three, r#"{"source": "guard", "weight": 281474976710656}],"#)
        .replace(guard, r#", {"source": {"register": 3}, "weight": 65536}"#);
    refused(&moved);
    // Without full lanes there is nothing to guard.
    let gauge = support::gauge(0, 9).statement;
    let lone = r#"{"source": {"register": 0}, "weight": 1}"#;
    assert!(gauge.contains(lone));
    refused(&gauge.replace(
        lone,
        &format!(r#"{lone}, {{"source": "guard", "weight": 8}}"#),
    ));
}
