//! The vectors that the Python tests read too: what the evaluator admits, the circuit takes.

mod support;

use attest_core::full::witness::Manner;
use attest_core::full::{Circuit, Unproven};
use serde_json::{Value, json};
use support::{vector, vectors};

#[test]
fn commitments_are_the_published_ones() {
    for vector in vectors() {
        let commitment = vector.circuit.commit(&vector.batch(), &vector.salt);
        assert_eq!(commitment, Ok(vector.commitment), "{}", vector.name);
    }
}

#[test]
fn admitted_batches_satisfy_every_constraint() {
    for vector in vectors().iter().filter(|vector| vector.admitted) {
        let traced = vector.traced(Manner::default()).expect("an admitted batch");
        assert_eq!(traced.broken(), [], "{}", vector.name);
    }
}

#[test]
fn refused_batches_have_no_trace_and_a_forced_one_breaks_a_constraint() {
    for vector in vectors().iter().filter(|vector| !vector.admitted) {
        let refused = vector.traced(Manner::default()).err();
        assert!(
            matches!(refused, Some(Unproven::Refused(_))),
            "{}: {refused:?}",
            vector.name
        );
        let forced = vector
            .traced(Manner {
                forced: true,
                ..Manner::default()
            })
            .expect("a forced trace");
        assert!(!forced.broken().is_empty(), "{}", vector.name);
    }
}

#[test]
fn residuals_that_could_wrap_round_into_tolerance_are_not_stated() {
    let statement = vector("every gadget").statement;
    let heavy = |weight: i64| {
        let heavy = statement.replace("\"weight\":3686456", &format!("\"weight\":{weight}"));
        assert_ne!(heavy, statement);
        Circuit::new(heavy.as_bytes())
    };
    assert!(heavy(1 << 45).is_ok());
    for weight in [1 << 47, -(1 << 47)] {
        let refused = heavy(weight).expect_err("it could reach half the field");
        assert!(refused.0.contains("a residual could reach"), "{refused}");
    }
}

#[test]
fn limits_that_the_circuit_cannot_state_are_refused() {
    let statement: Value = serde_json::from_str(&vector("every gadget").statement).expect("JSON");
    let edited = |place: &str, value: Value| {
        let mut edited = statement.clone();
        *edited.pointer_mut(place).expect("a place") = value;
        Circuit::new(edited.to_string().as_bytes()).map(|_| ())
    };
    let band = &statement["switches"][0]["on"];
    let [low, high] = [0, 1].map(|at| band[at].as_u64().expect("a register"));
    assert_eq!(edited("/switches/0/on", json!([low, high + 7])), Ok(()));
    for (place, value, why) in [
        ("/switches/0/on", json!([low, high + 1]), "width"),
        ("/switches/0/off", json!([low, low + 35]), "width"),
        ("/switches/0/on", json!([high, low]), "width"),
        (
            "/switches/0/on",
            json!([65_536, 65_536 + 42]),
            "no register",
        ),
        ("/switches/0/on", json!([0, 65_555]), "width"),
        ("/switches/0/codes", json!([]), "no code counts as on"),
        ("/switches/0/codes", json!([2, 2]), "stands twice"),
        ("/switches/0/codes", json!([9]), "no code 9"),
        ("/switches/0/actuator", json!(3), "no code"),
        ("/switches/0/register", json!(4), "no register 4"),
        ("/spectra/0/rows", json!(2), "a block of 2 rows"),
        ("/spectra/0/rows", json!(4_097), "a block of 4097 rows"),
        (
            "/spectra/0/offset",
            json!(8),
            "a block of 8 rows from row 8",
        ),
        ("/spectra/0/register", json!(4), "no register 4"),
        ("/spectra/0/first", json!([0, 105]), "width"),
        ("/spectra/0/second", json!([0, 113]), "width"),
        (
            "/spectra/0/first",
            json!([1_u64 << 60, (1_u64 << 60) + 112]),
            "sums of",
        ),
        ("/idle/0/code", json!(2), "has no code 2"),
        ("/idle/0/actuator", json!(9), "actuator 9"),
        ("/ties/0/register", json!(4), "no register 4"),
        (
            "/ties/0/weight",
            json!(1_u64 << 47),
            "a residual could reach",
        ),
        (
            "/ties/0/constant",
            json!(i64::MIN + 1),
            "a residual could reach",
        ),
        ("/ties/0/usual", json!(0), "tolerances"),
        ("/ties/0/severe", json!(1), "tolerances"),
    ] {
        let refused = edited(place, value.clone()).expect_err("it cannot be stated");
        assert!(refused.0.contains(why), "{place} {value}: {refused}");
    }
}

#[test]
fn budgets_for_other_numbers_of_rules_are_refused() {
    let mut vector = vector("every gadget");
    vector.budgets.switches.pop();
    let refused = vector.traced(Manner::default()).err();
    assert!(
        matches!(refused, Some(Unproven::Malformed(_))),
        "{refused:?}"
    );
    vector.budgets.switches.push(9);
    vector.budgets.blocks.push(9);
    let refused = vector.traced(Manner::default()).err();
    assert!(
        matches!(refused, Some(Unproven::Malformed(_))),
        "{refused:?}"
    );
}
