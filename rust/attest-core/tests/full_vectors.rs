//! The vectors that the Python tests read too: what the evaluator admits, the circuit takes.

mod support;

use attest_core::full::Unproven;
use attest_core::full::witness::Manner;
use support::vectors;

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
                fault: None,
            })
            .expect("a forced trace");
        assert!(!forced.broken().is_empty(), "{}", vector.name);
    }
}
