//! The vectors that the Python tests read too: what the evaluator admits, the circuit takes.

mod support;

use attest_core::full::witness::Manner;
use attest_core::full::{Circuit, Unproven};
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
