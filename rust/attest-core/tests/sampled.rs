//! The `sampled` system against provers that lie.

mod sampled_support;

use std::collections::{BTreeMap, BTreeSet};

use ark_bn254::{Fr, G2Affine};
use ark_ff::{BigInteger, Field, PrimeField};
use attest_core::full::Invalid;
use attest_core::sampled::constraints::Part;
use attest_core::sampled::{Circuit, Draw, Unproven, Verifying, public};
use sampled_support::{CONTEXT, Plant, plant};

#[test]
fn products_are_those_of_the_matrices() {
    let plant = plant();
    let constraints = plant.assigned(&Plant::draw(), &[false, true]);
    let matrices = constraints.matrices.as_ref().expect("kept");
    for (matrix, products) in matrices.iter().zip(&constraints.products) {
        for (row, product) in matrix.iter().zip(products) {
            let found: Fr = row
                .iter()
                .map(|(weight, at)| *weight * constraints.assignment[*at])
                .sum();
            assert_eq!(found, *product);
        }
    }
    assert_eq!(constraints.broken(), None);
}

/// A prover that changes any one variable breaks a constraint, and every part has some that it breaks.
#[test]
fn no_variable_is_free() {
    let plant = plant();
    let constraints = plant.assigned(&Plant::draw(), &[false, true]);
    let [a, b, c] = constraints.matrices.as_ref().expect("kept");
    let mut used: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for matrix in [a, b, c] {
        for (constraint, row) in matrix.iter().enumerate() {
            for (_, variable) in row {
                used.entry(*variable).or_default().push(constraint);
            }
        }
    }
    let mut broken = BTreeSet::new();
    for variable in 1..constraints.assignment.len() {
        let mut assignment = constraints.assignment.clone();
        assignment[variable] += Fr::ONE;
        let product = |row: &Vec<(Fr, usize)>| -> Fr {
            row.iter()
                .map(|(weight, at)| *weight * assignment[*at])
                .sum()
        };
        let using = used.get(&variable).expect("in some constraint");
        let first = using
            .iter()
            .find(|&&at| product(&a[at]) * product(&b[at]) != product(&c[at]));
        let first = *first.unwrap_or_else(|| panic!("variable {variable} is free"));
        broken.insert(constraints.parts[first]);
        let breaks = using
            .iter()
            .filter(|&&at| product(&a[at]) * product(&b[at]) != product(&c[at]));
        broken.extend(breaks.map(|at| constraints.parts[*at]));
    }
    assert_eq!(broken, BTreeSet::from(Part::ALL));
}

/// A tampered witness for each group of constraints, and the constraint that stops it.
#[test]
fn a_tampered_witness_breaks_the_group_it_is_about() {
    let plant = plant();
    let constraints = plant.assigned(&Plant::draw(), &[false, true]);
    let [a, b, c] = constraints.matrices.as_ref().expect("kept");
    let half = Fr::from(2_u64).inverse().expect("two is not zero");
    for part in Part::ALL {
        let product = |row: &Vec<(Fr, usize)>, assignment: &[Fr]| -> Fr {
            let terms = row.iter().map(|(weight, at)| *weight * assignment[*at]);
            terms.sum()
        };
        let of_part = (0..constraints.parts.len()).filter(|at| constraints.parts[*at] == part);
        for at in of_part.take(40) {
            // Each variable of each constraint: fractions, negatives, the neighbour, the largest.
            let variables: BTreeSet<usize> = [a, b, c]
                .iter()
                .flat_map(|matrix| matrix[at].iter().map(|(_, variable)| *variable))
                .filter(|variable| *variable != 0)
                .collect();
            let caught = variables.iter().any(|variable| {
                [half, -Fr::ONE, constraints.assignment[*variable] + Fr::ONE]
                    .iter()
                    .any(|lie| {
                        let mut assignment = constraints.assignment.clone();
                        assignment[*variable] = *lie;
                        let [left, right, draw] =
                            [a, b, c].map(|matrix| product(&matrix[at], &assignment));
                        left * right != draw
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
    let constraints = plant.assigned(&Plant::draw(), &[false, true]);
    let [a, b, c] = constraints.matrices.as_ref().expect("kept");
    let half = Fr::from(2_u64).inverse().expect("two is not zero");
    let codes: Vec<usize> = (0..constraints.parts.len())
        .filter(|at| constraints.parts[*at] == Part::Codes)
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
        let mut assignment = constraints.assignment.clone();
        assignment[flag] = half;
        let broken = codes.iter().any(|at| {
            let [left, right, draw] = [&a[*at], &b[*at], &c[*at]].map(|row| -> Fr {
                let terms = row.iter().map(|(weight, at)| *weight * assignment[*at]);
                terms.sum()
            });
            left * right != draw
        });
        assert!(broken, "flag {flag} may be one half");
    }
}

#[test]
fn a_violating_row_cannot_be_marked_as_good() {
    let plant = plant();
    let constraints = plant.assigned(&Plant::draw(), &[false, false]);
    assert_eq!(constraints.broken().expect("broken").1, Part::Tolerances);
    let mut draw = Plant::draw();
    draw.violating = 0;
    let constraints = plant.assigned(&draw, &[false, true]);
    assert_eq!(constraints.broken().expect("broken").1, Part::Budgets);
    let refused = plant.prove(&draw).expect_err("one row violates");
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
        let draw = Plant::draw();
        let (flags, _) = plant
            .circuit
            .measure(&plant.batch(), draw.sampled)
            .expect("rows");
        assert_eq!(flags[0], violates, "{reading}");
        for flag in [false, true] {
            let constraints = plant.assigned(&draw, &[flag, true]);
            // A flag that is not needed is the prover's own loss, unless the budget is spent.
            let holds = constraints
                .broken()
                .is_none_or(|(_, part)| part == Part::Budgets);
            assert_eq!(holds, flag || !violates, "{reading} {flag}");
        }
    }
}

#[test]
fn silence_of_a_coupling_has_a_budget() {
    let mut plant = plant();
    plant.codes[2] = 0; // row 2 shows the valve moving, so row 3 is not steady
    let draw = Plant::draw();
    assert!(matches!(plant.prove(&draw), Err(Unproven::Refused(_))));
    let constraints = plant.assigned(&draw, &[false, true]);
    assert_eq!(constraints.broken().expect("broken").1, Part::Budgets);
}

#[test]
fn rows_out_of_range_repeated_or_too_few_are_no_challenge() {
    let plant = plant();
    for rows in [vec![0, 5], vec![5, 5], vec![5, 12], vec![5], vec![3, 5, 6]] {
        let draw = Draw {
            sampled: &rows,
            ..Plant::draw()
        };
        let invalid = plant.verify(&draw, &[0; 256]).expect_err("not a challenge");
        assert!(matches!(invalid, Invalid::Shape(_)), "{rows:?}");
        assert!(plant.prove(&draw).is_err(), "{rows:?}");
    }
}

#[test]
fn a_proof_holds_for_its_own_public_inputs_only() {
    let plant = plant();
    let draw = Plant::draw();
    let proof = plant.prove(&draw).expect("the batch keeps its rules");
    assert_eq!(proof.len(), 256);
    plant.verify(&draw, &proof).expect("it holds");
    let fails = |draw: &Draw<'_>| {
        let invalid = plant.verify(draw, &proof).expect_err("another statement");
        assert!(matches!(invalid, Invalid::Fails(_)), "{invalid:?}");
    };
    let mut context = CONTEXT;
    context[31] ^= 1;
    fails(&Draw { context, ..draw });
    context[0] ^= 128;
    fails(&Draw { context, ..draw });
    fails(&Draw {
        sampled: &[7, 3],
        ..draw
    });
    fails(&Draw {
        sampled: &[3, 8],
        ..draw
    });
    fails(&Draw {
        violating: 2,
        ..draw
    });
    fails(&Draw {
        inapplicable: &[1],
        ..draw
    });
    let mut root = plant.root();
    root[31] ^= 1;
    let other = plant.circuit.verify(&plant.verifying, &root, &draw, &proof);
    assert!(matches!(other, Err(Invalid::Fails(_))));
    let again = plant.prove_with(&draw, &[9; 32]).expect("the same batch");
    assert_ne!(proof, again, "proofs of one batch share nothing");
}

#[test]
fn altered_proofs_and_points_that_are_none_are_refused() {
    let plant = plant();
    let draw = Plant::draw();
    let proof = plant.prove(&draw).expect("the batch keeps its rules");
    for at in (0..256).step_by(7) {
        let mut altered = proof.clone();
        altered[at] ^= 1 << (at % 8);
        assert!(plant.verify(&draw, &altered).is_err(), "byte {at}");
    }
    let shape = |bytes: &[u8]| {
        let invalid = plant.verify(&draw, bytes).expect_err("no proof");
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
    let shaped = plant.circuit.verify(&plant.verifying, &root, &draw, &proof);
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
    let draw = Plant::draw();
    let mut seed = blake3::Hasher::new();
    for round in 0_u64..200 {
        let mut bytes = vec![0; (round as usize * 13) % 700];
        seed.update(&round.to_be_bytes())
            .finalize_xof()
            .fill(&mut bytes);
        assert!(plant.verify(&draw, &bytes).is_err());
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
