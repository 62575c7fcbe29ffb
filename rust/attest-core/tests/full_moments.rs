//! A statistic that is tied to the rows: what holds, and every lie about it.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use attest_core::full::columns::{F, Schedule};
use attest_core::full::moments::{REPETITIONS, bits, trapezoid};
use attest_core::full::witness::{Fault, Manner};
use attest_core::full::{Bound, Circuit, Claim, Invalid, ORDER, Traced, Unproven};
use p3_field::PrimeCharacteristicRing;
use p3_matrix::Matrix;
use support::bound::{BoundVector as Vector, bound_vectors};
use support::broken_on;

const HEADER: usize = 16 + 32 + 24;
const LAGS: usize = 10;

trait Own {
    fn proven(&self) -> Vec<u8>;
    fn roomy(self) -> Self;
}

impl Own for Vector {
    fn proven(&self) -> Vec<u8> {
        let bound = Bound {
            statistic: &self.statistic,
            context: &self.context,
        };
        let batch = self.batch();
        self.circuit
            .prove_bound(&self.budgets, &batch, &self.salt, &bound, [5; 32])
            .expect("a batch that holds")
    }

    fn roomy(mut self) -> Self {
        self.budgets.violating = 40;
        self.budgets.segments += 2;
        let budgets = &mut self.budgets;
        let own = [&mut budgets.unsteady, &mut budgets.windows];
        own.into_iter().flatten().for_each(|count| *count += 9);
        self
    }
}

fn vectors() -> Vec<Vector> {
    bound_vectors(include_str!("../../../tests/vectors/moments.json"))
}

fn vector(name: &str) -> Vector {
    let found = vectors().into_iter().find(|vector| vector.name == name);
    found.expect("a vector of that name")
}

fn word(statistic: &[u8], at: usize) -> u64 {
    let bytes = &statistic[HEADER + 8 * at..][..8];
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

fn changed(statistic: &[u8], at: usize, value: u64) -> Vec<u8> {
    let mut changed = statistic.to_vec();
    changed[HEADER + 8 * at..][..8].copy_from_slice(&value.to_le_bytes());
    changed
}

fn words(statistic: &[u8]) -> usize {
    (statistic.len() - HEADER) / 8
}

/// How many channels: words = d + LAGS d^2.
fn channels(statistic: &[u8]) -> usize {
    let all = words(statistic);
    (1..all)
        .find(|d| d + LAGS * d * d == all)
        .expect("a statistic of ours")
}

fn broken(traced: &Traced) -> BTreeSet<usize> {
    let broken = traced.broken();
    broken
        .into_iter()
        .map(|(constraint, _)| constraint)
        .collect()
}

#[test]
fn the_statistics_of_the_vectors_hold() {
    for vector in vectors() {
        assert_eq!(
            vector.circuit.identity(),
            vector.identity,
            "{}",
            vector.name
        );
        let commitment = vector.circuit.commit(&vector.batch(), &vector.salt);
        assert_eq!(commitment, Ok(vector.commitment), "{}", vector.name);
        assert_eq!(vector.honest().broken(), [], "{}", vector.name);
        assert_eq!(vector.circuit.statistic_bits(), Some(187));
        assert!(vector.circuit.proven_bits(vector.rows) >= 100);
    }
    assert_eq!(bits(), 187);
}

#[test]
fn one_changed_integer_has_no_trace() {
    for vector in vectors().into_iter().take(4) {
        let channels = channels(&vector.statistic);
        for at in 0..words(&vector.statistic) {
            for other in [1_i64, -1] {
                let value = word(&vector.statistic, at).wrapping_add_signed(other);
                let mut lied = changed(&vector.statistic, at, value);
                // At lag 0 the mirrored entry changes too, or the reader would refuse it.
                let (row, column) = (
                    (at - channels.min(at)) / channels,
                    (at - channels.min(at)) % channels,
                );
                if at >= channels && row < channels && row != column {
                    lied = changed(&lied, channels + column * channels + row, value);
                }
                let refused = vector.traced(&lied, Manner::default()).err();
                assert!(
                    matches!(refused, Some(Unproven::Refused(_) | Unproven::Malformed(_))),
                    "{} {at}: {refused:?}",
                    vector.name
                );
                let forced = Manner {
                    forced: true,
                    ..Manner::default()
                };
                if let Ok(traced) = vector.traced(&lied, forced) {
                    assert!(!traced.broken().is_empty(), "{} {at}", vector.name);
                }
            }
        }
    }
}

#[test]
fn statistics_that_no_rows_give_are_not_read() {
    let vector = vector("clean");
    let (held, channels) = (&vector.statistic, channels(&vector.statistic));
    let d = channels;
    let small = (0..words(held))
        .find(|at| word(held, *at) < ORDER.wrapping_neg())
        .map(|at| changed(held, at, word(held, at) + ORDER));
    let mut header = held.clone();
    let mut lies: Vec<Vec<u8>> = vec![
        changed(held, d + d * d + 1, u64::MAX),
        changed(held, 0, 1 << 63),
        changed(held, d + 1, word(held, d + 1) + 1), // not symmetric
        held[..held.len() - 1].to_vec(),
        [held, &[0][..]].concat(),
        vec![],
    ];
    lies.extend(small); // the same in the field, and not the same integer
    for at in 0..HEADER {
        header[at] ^= 1;
        lies.push(header.clone());
        header[at] ^= 1;
    }
    for lie in lies {
        let refused = vector.traced(&lie, Manner::default()).err();
        assert!(
            matches!(refused, Some(Unproven::Malformed(_))),
            "{refused:?}"
        );
    }
}

#[test]
fn other_statistics_are_refused() {
    let (vector, other) = (vector("clean"), vector("a row that violates"));
    let d = channels(&vector.statistic);
    let held = &vector.statistic;
    let body: Vec<u64> = (0..words(held)).map(|at| word(held, at)).collect();
    let (sums, lagged) = body.split_at(d);
    let square = |lag: usize, row: usize, column: usize| lagged[(lag * d + row) * d + column];
    let rebuilt = |sums: &dyn Fn(usize) -> u64, entry: &dyn Fn(usize, usize, usize) -> u64| {
        let mut made = held.clone();
        for row in 0..d {
            made = changed(&made, row, sums(row));
            for (lag, column) in (0..LAGS).flat_map(|lag| (0..d).map(move |c| (lag, c))) {
                let at = d + (lag * d + row) * d + column;
                made = changed(&made, at, entry(lag, row, column));
            }
        }
        made
    };
    let turn = |at: usize| (at + 1) % d;
    let permuted = rebuilt(&|row| sums[turn(row)], &|lag, row, column| {
        square(lag, turn(row), turn(column))
    });
    let shifted = rebuilt(&|row| sums[row], &|lag, row, column| {
        square(if lag == 0 { 0 } else { lag % (LAGS - 1) + 1 }, row, column)
    });
    let transposed = rebuilt(&|row| sums[row], &|lag, row, column| {
        square(lag, column, row)
    });
    let scaled = rebuilt(&|row| sums[row] / 2, &|lag, row, column| {
        square(lag, row, column) / 2
    });
    for (what, lie) in [
        ("permuted channels", &permuted),
        ("other lags", &shifted),
        ("lags the wrong way round", &transposed),
        ("half the influence", &scaled),
        ("another batch", &other.statistic),
    ] {
        assert_ne!(lie, held, "{what}");
        let refused = vector.traced(lie, Manner::default()).err();
        assert!(
            matches!(refused, Some(Unproven::Refused(_))),
            "{what}: {refused:?}"
        );
    }
}

#[test]
fn every_constraint_of_the_statistic_is_the_only_one_that_some_lie_breaks() {
    let vector = vector("jumps are allowed").roomy();
    let traced = vector.honest();
    assert_eq!(traced.broken(), []);
    let moments = traced.air.layout.moments.as_ref().expect("a statistic");
    let columns: Vec<usize> = moments
        .carried
        .iter()
        .flatten()
        .chain(&moments.so_far)
        .copied()
        .collect();
    assert_eq!(columns.len(), REPETITIONS * LAGS);
    let plain = vector.statement.replace("\"statistic\":", "\"other\":");
    assert!(Circuit::new(plain.as_bytes()).is_err());
    let mut alone = BTreeSet::new();
    let mut note = |found: BTreeSet<usize>, what: &str| {
        assert!(!found.is_empty(), "{what} went unnoticed");
        if found.len() == 1 {
            alone.extend(found);
        }
    };
    // A wrong cell and all that follows from it, with the totals that the trace comes to.
    for (column, row) in columns
        .iter()
        .flat_map(|c| [0, 1, LAGS, 40, vector.rows - 1].map(|r| (*c, r)))
    {
        let held = traced.trace.values[row * traced.trace.width() + column];
        let value = held + F::TWO;
        let manner = Manner {
            faults: [Some(Fault { row, column, value }), None],
            forced: true,
            ..Manner::default()
        };
        let mut lied = vector
            .traced(&vector.statistic, manner)
            .expect("it is forced");
        let after = &lied.trace.values[vector.rows * lied.trace.width()..];
        lied.totals = moments.so_far.iter().map(|sum| after[*sum]).collect();
        note(broken(&lied), &format!("column {column}, row {row}"));
    }
    // Totals that the sums do not come to.
    for at in 0..REPETITIONS {
        let mut lied = vector.honest();
        lied.totals[at] += F::ONE;
        note(broken(&lied), "a total");
    }
    // A second segment.
    let mut split = vector.clone();
    split.starts[33] = 1;
    assert!(matches!(
        split.circuit.commit(&split.batch(), &split.salt),
        Err(Unproven::Refused(_))
    ));
    let forced = Manner {
        forced: true,
        ..Manner::default()
    };
    let lied = split
        .traced(&split.statistic, forced)
        .expect("it is forced");
    note(broken(&lied), "a second segment");
    assert_eq!(
        alone.len(),
        2 * REPETITIONS * LAGS + REPETITIONS + 1,
        "{alone:?}"
    );
}

#[test]
fn no_cell_of_the_statistic_can_be_changed_unnoticed() {
    for vector in [vector("clean"), vector("256 rows")] {
        let traced = vector.honest();
        let moments = traced.air.layout.moments.as_ref().expect("a statistic");
        let (width, height) = (traced.trace.width(), traced.trace.height());
        let values = traced.values();
        let mut lied = traced.trace.clone();
        for column in moments.carried.iter().flatten().chain(&moments.so_far) {
            for row in [
                0,
                1,
                LAGS - 2,
                LAGS - 1,
                LAGS,
                40,
                vector.rows - 1,
                height - 1,
            ] {
                let held = lied.values[row * width + column];
                lied.values[row * width + column] = held + F::ONE;
                let around = [(row + height - 1) % height, row];
                let broken = around.map(|row| broken_on(&traced.air, &lied, &values, row));
                assert!(
                    broken.iter().any(|broken| !broken.is_empty()),
                    "{column} {row}"
                );
                lied.values[row * width + column] = held;
            }
        }
    }
}

#[test]
fn other_row_weights_come_to_other_totals() {
    for vector in [vector("clean"), vector("257 rows")] {
        let traced = vector.honest();
        let schedules = &traced.air.layout.schedules;
        let weight = schedules.iter().position(|s| *s == Schedule::Weight(LAGS));
        let weight = weight.expect("a public column");
        let height = traced.trace.height();
        // Rows before a whole window, on the ramps, in the middle, and padding that counts.
        for row in [
            0,
            LAGS - 2,
            LAGS - 1,
            LAGS,
            40,
            vector.rows - 1,
            vector.rows,
            height - 1,
        ] {
            let mut air = traced.air.clone();
            Arc::make_mut(&mut air.public).schedules[weight][row] += F::ONE;
            let values = traced.values();
            let broken = broken_on(&air, &traced.trace, &values, row);
            // On the last row of the trace nothing is carried on, and nothing is read either.
            assert_eq!(broken.is_empty(), row + 1 == height, "{row}");
        }
        let column = &traced.air.public.schedules[weight];
        assert!(
            column[vector.rows..]
                .iter()
                .all(|weight| *weight == F::ZERO)
        );
        assert!(column[..LAGS - 1].iter().all(|weight| *weight == F::ZERO));
    }
    let sums = |lags, rows| trapezoid(lags, rows).collect::<Vec<_>>();
    assert_eq!(sums(3, 8), [0, 0, 1, 2, 3, 3, 2, 1]);
    assert_eq!(sums(1, 3), [1, 2, 1]);
    assert_eq!(sums(5, 4), [0; 4]);
    assert_eq!(trapezoid(10, 2_000).max(), Some(512));
}

#[test]
fn flags_change_nothing_that_the_statistic_reads() {
    let plain = vector("clean").roomy();
    let mut flagged = plain.clone();
    for row in [12, 30, 31, 55] {
        flagged.flagged[row] = 1;
    }
    let (one, other) = (plain.honest(), flagged.honest());
    assert_eq!(one.values(), other.values());
    let (width, violating) = (one.trace.width(), one.air.layout.channels.violating);
    assert_ne!(
        one.trace.values[30 * width + violating],
        other.trace.values[30 * width + violating]
    );
    let moments = one.air.layout.moments.as_ref().expect("a statistic");
    for (row, column) in (0..one.trace.height()).flat_map(|row| {
        moments
            .carried
            .iter()
            .flatten()
            .chain(&moments.so_far)
            .map(move |c| (row, *c))
    }) {
        let at = row * width + column;
        assert_eq!(
            one.trace.values[at], other.trace.values[at],
            "{row} {column}"
        );
    }
}

#[test]
fn weights_depend_on_everything_that_is_fixed_before_them() {
    let vector = vector("clean");
    let layout = &vector.honest().air.layout;
    let moments = layout.moments.as_ref().expect("a statistic");
    let bound = |statistic, context| Bound { statistic, context };
    let form = |identity, commitment, bound: Bound| moments.form(identity, commitment, &bound);
    let (zero, one) = ([0; 32], [1; 32]);
    let held = form(&zero, &zero, bound(&vector.statistic, &zero));
    for other in [
        form(&one, &zero, bound(&vector.statistic, &zero)),
        form(&zero, &one, bound(&vector.statistic, &zero)),
        form(&zero, &zero, bound(&vector.statistic, &one)),
        form(&zero, &zero, bound(&vector.statistic[1..], &zero)),
    ] {
        for (held, other) in held.0.iter().zip(&other.0) {
            let pairs = |w: &attest_core::full::moments::Weights| {
                [
                    w.left.clone(),
                    w.right.clone(),
                    w.lags.clone(),
                    vec![w.alone],
                ]
                .concat()
            };
            let same = pairs(held)
                .iter()
                .zip(pairs(other))
                .filter(|(a, b)| *a == b)
                .count();
            assert_eq!(same, 0);
        }
    }
    let [first, second, third] = &held.0[..] else {
        panic!("three repetitions")
    };
    assert!(first != second && second != third && first != third);
}

#[test]
fn proofs_are_bound_to_their_statistic() {
    let (vector, other) = (vector("clean"), vector("a row that violates"));
    let proof = vector.proven();
    let claim = vector.claim(&proof);
    assert_eq!(vector.circuit.verify(&claim), Ok(()));
    assert_eq!(vector.circuit.verify_many(&[claim]), [Ok(())]);
    let d = channels(&vector.statistic);
    let off = changed(&vector.statistic, d, word(&vector.statistic, d) + 1);
    let far = changed(&vector.statistic, d, u64::MAX);
    let context = [8; 32];
    for (what, lie, shape) in [
        (
            "one integer",
            Claim {
                statistic: Some(&off),
                ..claim
            },
            false,
        ),
        (
            "another batch's",
            Claim {
                statistic: Some(&other.statistic),
                ..claim
            },
            false,
        ),
        (
            "another context",
            Claim {
                context: &context,
                ..claim
            },
            false,
        ),
        (
            "another commitment",
            Claim {
                commitment: &other.commitment,
                ..claim
            },
            false,
        ),
        (
            "no statistic",
            Claim {
                statistic: None,
                ..claim
            },
            true,
        ),
        (
            "an impossible integer",
            Claim {
                statistic: Some(&far),
                ..claim
            },
            true,
        ),
    ] {
        let refused = vector.circuit.verify(&lie);
        let fits = if shape {
            matches!(refused, Err(Invalid::Shape(_)))
        } else {
            matches!(refused, Err(Invalid::Fails(_)))
        };
        assert!(fits, "{what}: {refused:?}");
        assert_eq!(vector.circuit.verify_many(&[lie, claim]), [refused, Ok(())]);
    }
    // What was drawn for one statistic does not serve another: a forced proof of a false one fails.
    let forced = Manner {
        forced: true,
        ..Manner::default()
    };
    let lied = vector.traced(&off, forced).expect("it is forced");
    let forged = vector
        .circuit
        .seal(lied, &vector.context, [6; 32])
        .expect("a proof");
    let refused = vector.circuit.verify(&Claim {
        statistic: Some(&off),
        ..vector.claim(&forged)
    });
    assert!(matches!(refused, Err(Invalid::Fails(_))), "{refused:?}");
}

#[test]
fn a_statement_without_a_statistic_takes_none() {
    let gauge = support::gauge(3, 40);
    assert_eq!(gauge.circuit.statistic_bits(), None);
    let proof = gauge.proven(1);
    let claim = Claim {
        statistic: Some(&[1, 2, 3]),
        ..gauge.claim(&proof)
    };
    assert!(matches!(
        gauge.circuit.verify(&claim),
        Err(Invalid::Shape(_))
    ));
    let bound = Bound {
        statistic: &[],
        context: &support::CONTEXT,
    };
    let batch = gauge.batch();
    let manner = Manner::default();
    let refused =
        gauge
            .circuit
            .trace_bound(&gauge.budgets, &batch, &gauge.salt, Some(&bound), manner);
    assert!(matches!(refused, Err(Unproven::Malformed(_))));
}

#[test]
fn statistics_that_the_circuit_cannot_state_are_refused() {
    let statement: serde_json::Value =
        serde_json::from_str(&vector("clean").statement).expect("JSON");
    let edited = |place: &str, value: serde_json::Value| {
        let mut edited = statement.clone();
        *edited.pointer_mut(place).expect("a place") = value;
        Circuit::new(edited.to_string().as_bytes()).map(|_| ())
    };
    let json = |text: &str| serde_json::from_str(text).expect("JSON");
    assert_eq!(edited("/statistic/lags", json("1")), Ok(()));
    assert_eq!(edited("/statistic/lags", json("64")), Ok(()));
    let twice = r#"[{"register":0},{"register":0}]"#;
    for (place, value, why) in [
        ("/statistic/lags", "0", "0 lags"),
        ("/statistic/lags", "65", "65 lags"),
        ("/statistic/settings", "\"00\"", "no hash"),
        ("/statistic/settings", "\"zz\"", "no hash"),
        ("/statistic/channels", "[]", "0 channels"),
        ("/statistic/channels", twice, "summed twice"),
        (
            "/statistic/channels",
            r#"[{"register":4}]"#,
            "no register 4",
        ),
        (
            "/statistic/channels",
            r#"[{"actuator":{"actuator":2,"codes":[0,1]}}]"#,
            "no code",
        ),
        (
            "/statistic/channels",
            r#"[{"actuator":{"actuator":1,"codes":[0]}}]"#,
            "other codes",
        ),
        (
            "/statistic/channels",
            r#"[{"actuator":{"actuator":1,"codes":[]}}]"#,
            "without codes",
        ),
        (
            "/statistic/channels",
            r#"[{"actuator":{"actuator":1,"codes":[0,65536]}}]"#,
            "no register",
        ),
    ] {
        let refused = edited(place, json(value)).expect_err("it cannot be stated");
        assert!(refused.0.contains(why), "{place} {value}: {refused}");
    }
}
