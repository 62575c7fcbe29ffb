//! Sums that stay hidden: the form begins at masks that the commitment fixes, and every lie about it.

mod support;

use std::collections::BTreeSet;

use attest_core::full::columns::F;
use attest_core::full::moments::REPETITIONS;
use attest_core::full::witness::{Fault, Manner};
use attest_core::full::{Bound, Circuit, Claim, Invalid, ORDER, Traced, Unproven};
use p3_field::{PrimeCharacteristicRing, PrimeField64};
use p3_matrix::Matrix;
use support::bound::{BoundVector as Vector, bound_vectors};

const SEALED: usize = 16 + 32 + 24 + 64;

fn vectors() -> Vec<Vector> {
    bound_vectors(include_str!("../../../tests/vectors/hidden.json"))
}

fn clean() -> Vector {
    let found = vectors().into_iter().find(|one| one.name == "clean");
    found.expect("a vector of that name")
}

fn broken(traced: &Traced) -> BTreeSet<usize> {
    let broken = traced.broken().into_iter();
    broken.map(|(constraint, _)| constraint).collect()
}

fn canonical(totals: &[F]) -> Vec<u64> {
    totals.iter().map(F::as_canonical_u64).collect()
}

#[test]
fn masked_totals_are_masks_and_the_form_of_the_sums() {
    for vector in vectors() {
        let name = &vector.name;
        assert_eq!(vector.circuit.identity(), vector.identity);
        let (masks, totals) = (vector.masks.clone(), vector.totals.clone());
        let found = vector.circuit.masks(&vector.batch(), &vector.salt);
        assert_eq!(found.expect("masks").to_vec(), masks, "{name}");
        let traced = vector.honest();
        assert_eq!(canonical(&traced.totals), totals, "{name}");
        assert_eq!(traced.broken(), [], "{name}");
        assert_eq!(vector.circuit.statistic_bits(), Some(187));
    }
}

#[test]
fn masks_follow_from_salt_and_first_row_alone() {
    let mut vector = clean();
    let held = vector.masks.clone();
    let masks = |vector: &Vector, salt: &[u8; 32]| {
        let masks = vector.circuit.masks(&vector.batch(), salt);
        masks.expect("masks").to_vec()
    };
    let mut salt = vector.salt;
    for byte in [0, 8, 16, 24] {
        salt[byte] ^= 1;
        let other = masks(&vector, &salt);
        assert!(other.iter().zip(&held).all(|(one, other)| one != other));
        salt[byte] ^= 1;
    }
    let last = vector.registers.len() - 1;
    vector.registers[last] ^= 1;
    assert_eq!(masks(&vector, &salt), held);
    vector.registers[0] ^= 1;
    assert_ne!(masks(&vector, &salt), held);
}

#[test]
fn sums_that_begin_elsewhere_break_one_constraint_each() {
    let vector = clean();
    let honest = vector.honest();
    let moments = honest.air.layout.moments.as_ref().expect("a statistic");
    let (masks, totals) = (vector.masks.clone(), vector.totals.clone());
    let mut alone = BTreeSet::new();
    // A mask that is chosen after the weights, zero, or that of another repetition, with the totals
    // that follow from it.
    for (at, column) in moments.so_far.iter().enumerate() {
        for value in [0, masks[at] + 1, masks[(at + 1) % REPETITIONS]] {
            let fault = Fault {
                row: 0,
                column: *column,
                value: F::from_u64(value),
            };
            let manner = Manner {
                faults: [Some(fault), None],
                forced: true,
                ..Manner::default()
            };
            let lied = vector
                .traced(&vector.statistic, manner)
                .expect("it is forced");
            assert_ne!(canonical(&lied.totals), totals);
            let found = broken(&lied);
            assert_eq!(found.len(), 1, "{at}: {found:?}");
            alone.extend(found);
        }
        let mut lied = vector.honest();
        lied.totals[at] += F::ONE;
        let found = broken(&lied);
        assert_eq!(found.len(), 1, "{at}: {found:?}");
        alone.extend(found);
    }
    assert_eq!(alone.len(), 2 * REPETITIONS);
    // No cell from which the masks follow can be changed.
    let width = honest.trace.width();
    for column in honest.air.layout.digest.chain {
        let mut lied = vector.honest();
        lied.trace.values[column] += F::ONE;
        assert!(!lied.broken().is_empty(), "{column}");
        assert!(column < width);
    }
}

#[test]
fn sealed_statistics_have_one_form() {
    let vector = clean();
    assert_eq!(vector.statistic.len(), SEALED);
    let mut lies = vec![
        vec![],
        vector.statistic[1..].to_vec(),
        [&vector.statistic[..], &[0]].concat(),
    ];
    for at in 0..SEALED - 64 {
        let mut lie = vector.statistic.clone();
        lie[at] ^= 1;
        lies.push(lie);
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
fn proofs_of_hidden_sums_are_bound_to_totals_and_shares() {
    let vector = clean();
    let bound = Bound {
        statistic: &vector.statistic,
        context: &vector.context,
    };
    let batch = vector.batch();
    let proof = vector
        .circuit
        .prove_bound(&vector.budgets, &batch, &vector.salt, &bound, [5; 32])
        .expect("a batch that holds");
    let claim = vector.claim(&proof);
    assert_eq!(vector.circuit.verify(&claim), Ok(()));
    let totals = vector.totals.clone();
    let shown: Vec<u64> = proof[..8 * REPETITIONS]
        .chunks(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
        .collect();
    assert_eq!(shown, totals);
    for at in 0..REPETITIONS {
        let mut lied = proof.clone();
        lied[8 * at] ^= 1;
        let refused = vector.circuit.verify(&vector.claim(&lied));
        assert!(matches!(refused, Err(Invalid::Fails(_))), "{refused:?}");
        for word in [ORDER, u64::MAX] {
            lied[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
            let refused = vector.circuit.verify(&vector.claim(&lied));
            assert!(matches!(refused, Err(Invalid::Shape(_))), "{refused:?}");
        }
    }
    for cut in [0, 1, 8 * REPETITIONS - 1, 8 * REPETITIONS] {
        let refused = vector.circuit.verify(&vector.claim(&proof[..cut]));
        assert!(matches!(refused, Err(Invalid::Shape(_))), "{refused:?}");
        let refused = vector.circuit.verify(&vector.claim(&proof[cut.max(1)..]));
        assert!(refused.is_err());
    }
    // Other shares, which were committed to after the draw.
    for at in [SEALED - 64, SEALED - 1] {
        let mut sealed = vector.statistic.clone();
        sealed[at] ^= 1;
        let refused = vector.circuit.verify(&Claim {
            statistic: Some(&sealed),
            ..claim
        });
        assert!(matches!(refused, Err(Invalid::Fails(_))), "{refused:?}");
    }
    // A mask that fits a false statement about the sums.
    let honest = vector.honest();
    let moments = honest.air.layout.moments.as_ref().expect("a statistic");
    let fault = Fault {
        row: 0,
        column: moments.so_far[1],
        value: F::from_u64(7),
    };
    let manner = Manner {
        faults: [Some(fault), None],
        forced: true,
        ..Manner::default()
    };
    let lied = vector
        .traced(&vector.statistic, manner)
        .expect("it is forced");
    let forged = vector.circuit.seal(lied, &vector.context, [6; 32]);
    let refused = vector
        .circuit
        .verify(&vector.claim(&forged.expect("a proof")));
    assert!(matches!(refused, Err(Invalid::Fails(_))), "{refused:?}");
}

#[test]
fn sums_in_the_open_have_no_masks() {
    let vector = clean();
    let open = vector.statement.replace("\"masked\":true,", "");
    assert_ne!(open, vector.statement);
    let open = Circuit::new(open.as_bytes()).expect("a statement");
    assert_ne!(open.identity(), vector.circuit.identity());
    assert_eq!(open.width(), vector.circuit.width());
    assert!(!open.masked() && vector.circuit.masked());
    assert!(open.masks(&vector.batch(), &vector.salt).is_err());
    let refused = open.verify(&vector.claim(&[]));
    assert!(matches!(refused, Err(Invalid::Shape(_))));
}
