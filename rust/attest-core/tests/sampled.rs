//! The `sampled` system against provers that lie.

mod sampled_support;

use std::collections::{BTreeMap, BTreeSet};

use ark_bn254::{Fr, G2Affine};
use ark_ff::{BigInteger, Field, PrimeField};
use attest_core::full::Invalid;
use attest_core::sampled::board::Part;
use attest_core::sampled::{Circuit, Told, Unproven, Verifying, public};
use sampled_support::{CONTEXT, Plant, plant};

#[test]
fn products_are_those_of_the_matrices() {
    let plant = plant();
    let board = plant.assigned(&Plant::told(), &[false, true]);
    let matrices = board.matrices.as_ref().expect("kept");
    for (matrix, products) in matrices.iter().zip(&board.products) {
        for (row, product) in matrix.iter().zip(products) {
            let found: Fr = row
                .iter()
                .map(|(weight, at)| *weight * board.assignment[*at])
                .sum();
            assert_eq!(found, *product);
        }
    }
    assert_eq!(board.broken(), None);
}

/// A prover that changes any one variable breaks a constraint, and every part has some that it breaks.
#[test]
fn no_variable_is_free() {
    let plant = plant();
    let board = plant.assigned(&Plant::told(), &[false, true]);
    let [a, b, c] = board.matrices.as_ref().expect("kept");
    let mut used: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for matrix in [a, b, c] {
        for (constraint, row) in matrix.iter().enumerate() {
            for (_, variable) in row {
                used.entry(*variable).or_default().push(constraint);
            }
        }
    }
    let mut broken = BTreeSet::new();
    for variable in 1..board.assignment.len() {
        let mut assignment = board.assignment.clone();
        assignment[variable] += Fr::ONE;
        let product = |row: &Vec<(Fr, usize)>| -> Fr {
            row.iter()
                .map(|(weight, at)| *weight * assignment[*at])
                .sum()
        };
        let constraints = used.get(&variable).expect("in some constraint");
        let first = constraints
            .iter()
            .find(|&&at| product(&a[at]) * product(&b[at]) != product(&c[at]));
        let first = *first.unwrap_or_else(|| panic!("variable {variable} is free"));
        broken.insert(board.parts[first]);
        let breaks = constraints
            .iter()
            .filter(|&&at| product(&a[at]) * product(&b[at]) != product(&c[at]));
        broken.extend(breaks.map(|at| board.parts[*at]));
    }
    assert_eq!(broken, BTreeSet::from(Part::ALL));
}

/// A tampered witness for each group of constraints: what a liar would write, and what stops it.
#[test]
fn a_tampered_witness_breaks_the_group_it_is_about() {
    let plant = plant();
    let board = plant.assigned(&Plant::told(), &[false, true]);
    let [a, b, c] = board.matrices.as_ref().expect("kept");
    let half = Fr::from(2_u64).inverse().expect("two is not zero");
    for part in Part::ALL {
        let product = |row: &Vec<(Fr, usize)>, assignment: &[Fr]| -> Fr {
            let terms = row.iter().map(|(weight, at)| *weight * assignment[*at]);
            terms.sum()
        };
        let of_part = (0..board.parts.len()).filter(|at| board.parts[*at] == part);
        for at in of_part.take(40) {
            // Each variable of each constraint: fractions, negatives, the neighbour, the largest.
            let variables: BTreeSet<usize> = [a, b, c]
                .iter()
                .flat_map(|matrix| matrix[at].iter().map(|(_, variable)| *variable))
                .filter(|variable| *variable != 0)
                .collect();
            let caught = variables.iter().any(|variable| {
                [half, -Fr::ONE, board.assignment[*variable] + Fr::ONE]
                    .iter()
                    .any(|lie| {
                        let mut assignment = board.assignment.clone();
                        assignment[*variable] = *lie;
                        let [left, right, told] =
                            [a, b, c].map(|matrix| product(&matrix[at], &assignment));
                        left * right != told
                    })
            });
            assert!(
                caught,
                "{part:?}, constraint {at}: nothing it says is about its variables"
            );
        }
    }
}

/// A code between two codes would silence a rule: no assignment of its flags says one.
#[test]
fn a_fractional_code_has_no_witness() {
    let plant = plant();
    let board = plant.assigned(&Plant::told(), &[false, true]);
    let [a, b, c] = board.matrices.as_ref().expect("kept");
    let half = Fr::from(2_u64).inverse().expect("two is not zero");
    let codes: Vec<usize> = (0..board.parts.len())
        .filter(|at| board.parts[*at] == Part::Codes)
        .collect();
    let flags: BTreeSet<usize> = codes
        .iter()
        .flat_map(|at| a[*at].iter().map(|(_, variable)| *variable))
        .filter(|variable| *variable != 0)
        .collect();
    assert_eq!(
        flags.len(),
        2 * 2 * 2,
        "two flags for three codes, on two rows of two samples"
    );
    for flag in flags {
        let mut assignment = board.assignment.clone();
        assignment[flag] = half;
        let broken = codes.iter().any(|at| {
            let [left, right, told] = [&a[*at], &b[*at], &c[*at]].map(|row| -> Fr {
                let terms = row.iter().map(|(weight, at)| *weight * assignment[*at]);
                terms.sum()
            });
            left * right != told
        });
        assert!(broken, "flag {flag} may be one half");
    }
}

#[test]
fn a_violating_row_cannot_be_told_to_hold() {
    let plant = plant();
    let board = plant.assigned(&Plant::told(), &[false, false]);
    assert_eq!(board.broken().expect("broken").1, Part::Tolerances);
    let mut told = Plant::told();
    told.violating = 0;
    let board = plant.assigned(&told, &[false, true]);
    assert_eq!(board.broken().expect("broken").1, Part::Budgets);
    let refused = plant.prove(&told).expect_err("one row violates");
    assert!(matches!(refused, Unproven::Refused(_)), "{refused:?}");
}

/// Tolerances are inclusive, and one step beyond them is a violation: no wrap-around either way.
#[test]
fn the_edges_of_tolerances_and_of_thirty_two_bits() {
    for (reading, violates) in [
        (sampled_support::ZERO, false),
        (sampled_support::ZERO + 3, false),
        (sampled_support::ZERO - 3, false),
        (sampled_support::ZERO + 4, true),
        (sampled_support::ZERO - 4, true),
        (0, true),
        (u32::MAX, true),
    ] {
        let mut plant = plant();
        plant.readings[2 * 3 + 1] = reading; // the flow of row 3, whose valve is off
        let told = Plant::told();
        let (flags, _) = plant
            .circuit
            .measure(&plant.batch(), told.sampled)
            .expect("rows");
        assert_eq!(flags[0], violates, "{reading}");
        for flag in [false, true] {
            let board = plant.assigned(&told, &[flag, true]);
            // A flag that is not needed is the prover's own loss, unless the budget is spent.
            let holds = board.broken().is_none_or(|(_, part)| part == Part::Budgets);
            assert_eq!(holds, flag || !violates, "{reading} {flag}");
        }
    }
}

#[test]
fn silence_of_a_coupling_has_a_budget() {
    let mut plant = plant();
    plant.codes[2] = 0; // row 2 shows the valve moving, so row 3 is not steady
    let told = Plant::told();
    assert!(matches!(plant.prove(&told), Err(Unproven::Refused(_))));
    let board = plant.assigned(&told, &[false, true]);
    assert_eq!(board.broken().expect("broken").1, Part::Budgets);
}

#[test]
fn rows_out_of_range_repeated_or_too_few_are_no_challenge() {
    let plant = plant();
    for rows in [vec![0, 5], vec![5, 5], vec![5, 12], vec![5], vec![3, 5, 6]] {
        let told = Told {
            sampled: &rows,
            ..Plant::told()
        };
        let invalid = plant.verify(&told, &[0; 256]).expect_err("not a challenge");
        assert!(matches!(invalid, Invalid::Shape(_)), "{rows:?}");
        assert!(plant.prove(&told).is_err(), "{rows:?}");
    }
}

#[test]
fn a_proof_holds_for_its_own_public_inputs_only() {
    let plant = plant();
    let told = Plant::told();
    let proof = plant.prove(&told).expect("the batch keeps its rules");
    assert_eq!(proof.len(), 256);
    plant.verify(&told, &proof).expect("it holds");
    let fails = |told: &Told<'_>| {
        let invalid = plant.verify(told, &proof).expect_err("another statement");
        assert!(matches!(invalid, Invalid::Fails(_)), "{invalid:?}");
    };
    let mut context = CONTEXT;
    context[31] ^= 1;
    fails(&Told { context, ..told });
    context[0] ^= 128;
    fails(&Told { context, ..told });
    fails(&Told {
        sampled: &[7, 3],
        ..told
    });
    fails(&Told {
        sampled: &[3, 8],
        ..told
    });
    fails(&Told {
        violating: 2,
        ..told
    });
    fails(&Told {
        inapplicable: &[1],
        ..told
    });
    let mut root = plant.root();
    root[31] ^= 1;
    let other = plant.circuit.verify(&plant.verifying, &root, &told, &proof);
    assert!(matches!(other, Err(Invalid::Fails(_))));
    let again = plant.prove_with(&told, &[9; 32]).expect("the same batch");
    assert_ne!(proof, again, "proofs of one batch share nothing");
}

#[test]
fn altered_proofs_and_points_that_are_none_are_refused() {
    let plant = plant();
    let told = Plant::told();
    let proof = plant.prove(&told).expect("the batch keeps its rules");
    for at in (0..256).step_by(7) {
        let mut altered = proof.clone();
        altered[at] ^= 1 << (at % 8);
        assert!(plant.verify(&told, &altered).is_err(), "byte {at}");
    }
    let shape = |bytes: &[u8]| {
        let invalid = plant.verify(&told, bytes).expect_err("no proof");
        assert!(matches!(invalid, Invalid::Shape(_)), "{invalid:?}");
    };
    shape(&proof[..255]);
    shape(&[proof.as_slice(), &[0]].concat());
    shape(&[0; 256]); // where the point at infinity would be
    let mut overflowing = proof.clone();
    let x = ark_bn254::Fq::from_be_bytes_mod_order(&proof[..32]).into_bigint();
    let mut larger = x;
    assert!(
        !larger.add_with_carry(&ark_bn254::Fq::MODULUS),
        "it fits 256 bits"
    );
    overflowing[..32].copy_from_slice(&larger.to_bytes_be());
    shape(&overflowing);
    let mut outside = proof.clone();
    outside[64..192].copy_from_slice(&off_subgroup());
    shape(&outside);
    let root = [0xff; 32];
    let shaped = plant.circuit.verify(&plant.verifying, &root, &told, &proof);
    assert!(matches!(shaped, Err(Invalid::Shape(_))));
    assert!(public::root(&root).is_err());
}

/// A point of the twisted curve that is not in the subgroup.
fn off_subgroup() -> Vec<u8> {
    let point = (1..)
        .find_map(|x| {
            let x = ark_bn254::Fq2::new(x.into(), 1.into());
            G2Affine::get_point_from_x_unchecked(x, false)
        })
        .expect("about half of all numbers are coordinates");
    assert!(point.is_on_curve() && !point.is_in_correct_subgroup_assuming_on_curve());
    [point.x.c0, point.x.c1, point.y.c0, point.y.c1]
        .iter()
        .flat_map(|each| each.into_bigint().to_bytes_be())
        .collect()
}

#[test]
fn a_salt_hides_equal_batches_and_rows() {
    let plant = plant();
    let other = plant
        .circuit
        .commit(&plant.batch(), &[6; 32])
        .expect("a root");
    assert_ne!(plant.root(), other);
    let flat = Plant {
        readings: vec![7; plant.readings.len()],
        codes: vec![1; plant.codes.len()],
        ..plant
    };
    let [first, second] = [0, 1].map(|row| flat.leaf(row));
    assert_ne!(first, second, "equal rows have leaves of their own");
}

#[test]
fn bytes_of_any_kind_do_not_panic() {
    let plant = plant();
    let told = Plant::told();
    let mut seed = blake3::Hasher::new();
    for round in 0_u64..200 {
        let mut bytes = vec![0; (round as usize * 13) % 700];
        seed.update(&round.to_be_bytes())
            .finalize_xof()
            .fill(&mut bytes);
        assert!(plant.verify(&told, &bytes).is_err());
        assert!(Verifying::read(&plant.circuit, &bytes).is_err());
        assert!(Circuit::new(&bytes).is_err());
        let mut key = plant.keys.verifying.clone();
        let at = bytes.len() * 31 % key.len();
        key[at] ^= 1 << (round % 8);
        // Whatever byte is changed, what is read as a key is not the pinned one.
        let _ = Verifying::read(&plant.circuit, &key);
        key.truncate(at);
        assert!(Verifying::read(&plant.circuit, &key).is_err());
    }
}
