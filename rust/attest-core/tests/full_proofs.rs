//! Proofs: what they hold for, and that nothing else passes for one.

mod support;

use std::collections::BTreeSet;

use attest_core::full::columns::F;
use attest_core::full::digest::CHAIN;
use attest_core::full::parameters::{Challenge, Config};
use attest_core::full::public::height;
use attest_core::full::witness::Manner;
use attest_core::full::{Circuit, Claim, Invalid, Refused, Unproven};
use p3_air::BaseAir;
use p3_fri::FriProof;
use p3_uni_stark::{Commitments, OpenedValues, Proof};
use support::{CONTEXT, Vector, gauge, vector, vectors};

const WANTED_BITS: usize = 100;

fn read(proof: &[u8]) -> Proof<Config> {
    postcard::from_bytes(proof).expect("a proof")
}

#[test]
fn every_admitted_batch_is_proven() {
    for vector in vectors().iter().filter(|vector| vector.admitted) {
        let verified = vector.verified(&vector.proven(1));
        assert_eq!(verified, Ok(()), "{}", vector.name);
    }
}

#[test]
fn a_proof_holds_for_what_it_was_made_for_and_for_nothing_else() {
    let vector = vector("clean");
    let proof = vector.proven(1);
    let (circuit, rows, claim) = (&vector.circuit, vector.rows, vector.claim(&proof));
    assert_eq!(circuit.verify(&claim), Ok(()));

    let mut other_context = CONTEXT;
    other_context[31] ^= 1;
    let mut wider = vector.budgets.clone();
    wider.violating += 1;
    let mut narrower = vector.budgets.clone();
    narrower.unsteady[0] -= 1;
    let mut windows = vector.budgets.clone();
    windows.windows[0] = windows.windows[0].abs_diff(1);
    let mut others: Vec<Claim> = Vec::new();
    let commitments = [0, 8, 16, 24].map(|element: usize| {
        let mut commitment = vector.commitment;
        commitment[element] ^= 1;
        commitment
    });
    others.extend(commitments.iter().map(|commitment| Claim {
        commitment,
        ..claim
    }));
    let budgets = [&wider, &narrower, &windows];
    others.extend(budgets.map(|budgets| Claim { budgets, ..claim }));
    others.extend([rows - 1, rows + 1].map(|rows| Claim { rows, ..claim }));
    others.push(Claim {
        context: &other_context,
        ..claim
    });
    for (index, other) in others.iter().enumerate() {
        let refused = circuit.verify(other);
        assert!(
            matches!(refused, Err(Invalid::Fails(_))),
            "{index}: {refused:?}"
        );
    }
    let loosened = vector
        .statement
        .replace("\"averaged\":true", "\"averaged\":false");
    let loosened = Circuit::new(loosened.as_bytes()).expect("a statement of the same shape");
    assert_eq!(loosened.width(), circuit.width());
    assert!(matches!(loosened.verify(&claim), Err(Invalid::Fails(_))));
}

#[test]
fn what_has_not_the_shape_of_a_proof_is_not_looked_at() {
    let vector = vector("clean");
    let proof = vector.proven(1);
    let claim = vector.claim(&proof);
    let longer = [&proof[..], &[0]].concat();
    let endless = vec![0; vector.circuit.largest_proof(height(vector.rows)) + 1];
    let mut others = vec![
        Claim { rows: 257, ..claim },
        Claim { rows: 0, ..claim },
        Claim {
            commitment: &[255; 32],
            ..claim
        },
    ];
    let proofs = [&proof[..proof.len() - 1], &longer, &endless, &[]];
    others.extend(proofs.map(|proof| Claim { proof, ..claim }));
    for (index, other) in others.iter().enumerate() {
        let refused = vector.circuit.verify(other);
        assert!(
            matches!(refused, Err(Invalid::Shape(_))),
            "{index}: {refused:?}"
        );
    }
}

#[test]
fn no_proof_is_longer_than_the_longest() {
    for vector in [vector("clean"), vector("two standby pumps"), gauge(0, 300)] {
        let (most, got) = (
            vector.circuit.largest_proof(height(vector.rows)),
            vector.proven(1).len(),
        );
        assert!(got <= most && most <= 3 * got, "{got} of {most}");
    }
}

#[test]
fn many_proofs_are_verified_each_for_itself() {
    let (zeros, sevens, more) = (gauge(0, 9), gauge(7, 9), gauge(7, 300));
    let [of_zeros, of_sevens, of_more] = [&zeros, &sevens, &more].map(|vector| vector.proven(1));
    let mut flipped = of_sevens.clone();
    flipped[700] ^= 4;
    let mut narrow = more.budgets.clone();
    narrow.violating = 0;
    let claims = [
        zeros.claim(&of_zeros),
        sevens.claim(&flipped),
        sevens.claim(&of_sevens),
        more.claim(&of_more),
        zeros.claim(&of_sevens),
        more.claim(&[]),
        Claim {
            budgets: &narrow,
            ..more.claim(&of_more)
        },
        Claim {
            rows: 1,
            ..zeros.claim(&of_zeros)
        },
        more.claim(&of_more),
    ];
    let answers = zeros.circuit.verify_many(&claims);
    let alone: Vec<_> = claims.iter().map(|c| zeros.circuit.verify(c)).collect();
    assert_eq!(answers, alone);
    let accepted: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    let expected = [true, false, true, true, false, false, false, false, true];
    assert_eq!(accepted, expected);
    assert_eq!(zeros.circuit.verify_many(&[]), []);
}

#[test]
fn a_prover_that_ignores_a_broken_rule_makes_no_valid_proof() {
    for vector in vectors().iter().filter(|vector| !vector.admitted) {
        let traced = vector
            .traced(Manner {
                forced: true,
                ..Manner::default()
            })
            .expect("it is forced");
        let proof = vector
            .circuit
            .seal(traced, &CONTEXT, [3; 32])
            .expect("the prover ignores the broken rule");
        let refused = vector.verified(&proof);
        assert!(
            matches!(refused, Err(Invalid::Fails(_))),
            "{}: {refused:?}",
            vector.name
        );
    }
}

#[test]
fn fewer_rows_than_were_committed_to_are_not_proven_for() {
    let mut vector = vector("clean");
    let whole = vector.commitment;
    vector.rows -= 1;
    let channels = [vector.registers.len(), vector.codes.len()].map(|all| all / (vector.rows + 1));
    vector.registers.truncate(vector.rows * channels[0]);
    vector.codes.truncate(vector.rows * channels[1]);
    vector.starts.pop();
    vector.flagged.pop();
    vector
        .budgets
        .unsteady
        .iter_mut()
        .for_each(|count| *count += 5);
    let proof = vector.proven(1);
    vector.commitment = vector
        .circuit
        .commit(&vector.batch(), &vector.salt)
        .expect("a batch");
    assert_eq!(vector.verified(&proof), Ok(()));
    vector.commitment = whole;
    assert!(matches!(vector.verified(&proof), Err(Invalid::Fails(_))));
}

#[test]
fn what_no_row_can_show_is_not_committed_to() {
    let narrow = |high: u16| {
        let mut vector = gauge(high, 9);
        vector.statement = vector
            .statement
            .replace("\"high\": 7", &format!("\"high\": {high}"));
        vector.circuit = Circuit::new(vector.statement.as_bytes()).expect("a statement");
        vector
    };
    // A gauge that shows nothing but zeros has no digit that could be wrong.
    for mut vector in [narrow(0), narrow(5), gauge(7, 9)] {
        let most = vector.registers[4];
        let committed = |vector: &Vector| vector.circuit.commit(&vector.batch(), &vector.salt);
        assert!(committed(&vector).is_ok());
        vector.registers[4] = most + 1;
        let refused = Unproven::Refused(Refused("register 0 is out of bounds on row 4".into()));
        assert_eq!(committed(&vector), Err(refused.clone()));
        assert_eq!(vector.traced(Manner::default()).err(), Some(refused));
    }
    let mut jumping = gauge(7, 9);
    jumping.starts[3] = 1;
    let refused = jumping.circuit.commit(&jumping.batch(), &jumping.salt);
    assert!(matches!(refused, Err(Unproven::Refused(_))), "{refused:?}");
}

#[test]
fn two_proofs_of_one_batch_have_no_commitment_and_no_opening_in_common() {
    let vector = vector("clean");
    let [one, other] = [1, 2].map(|entropy| vector.proven(entropy));
    // What is zeros in both is the proof of no work, where none is asked for.
    let idle = [0; 8];
    let words = |proof: &[u8]| -> BTreeSet<[u8; 16]> {
        let words = proof
            .windows(16)
            .filter(|word| !word.ends_with(&idle) && !word.starts_with(&idle));
        words.filter_map(|word| word.try_into().ok()).collect()
    };
    let common: Vec<_> = words(&one).intersection(&words(&other)).copied().collect();
    assert_eq!(common, Vec::<[u8; 16]>::new());
    let again = read(&vector.proven(1));
    assert_eq!(
        read(&one).opened_values.trace_local,
        again.opened_values.trace_local,
        "entropy is all that differs"
    );
}

/// What a proof holds, field by field: a field more would not compile here.
#[test]
fn public_values_are_the_digest_and_a_proof_tells_nothing_else_in_the_clear() {
    let vector = vector("clean");
    let traced = vector.traced(Manner::default()).expect("it is admitted");
    assert_eq!(BaseAir::<F>::num_public_values(&traced.air), CHAIN);
    let Proof {
        commitments,
        opened_values,
        opening_proof: (of_codewords, low_degree),
        degree_bits,
        ood_pow_witness,
    } = read(&vector.proven(1));
    // Hashes of salted leaves.
    let Commitments { random, .. } = commitments;
    assert!(random.is_some());
    // Of masked polynomials at points outside the trace.
    let OpenedValues::<Challenge> {
        trace_local,
        trace_next,
        preprocessed,
        quotient_chunks: _,
        random: _,
    } = opened_values;
    assert!(preprocessed.is_none());
    assert_eq!(trace_local.len(), vector.circuit.width());
    assert_eq!(trace_next.map(|row| row.len()), Some(trace_local.len()));
    assert!(!of_codewords.is_empty());
    // Of masked and salted codewords, and proofs of work.
    let FriProof {
        batch_pow_witness,
        commit_phase_commits: _,
        commit_pow_witnesses,
        input_openings,
        commit_phase_openings: _,
        final_poly: _,
        query_pow_witness: _,
    } = low_degree;
    assert_eq!(input_openings.len(), 2, "the trace, and all beside it");
    let idle = commit_pow_witnesses
        .into_iter()
        .chain([batch_pow_witness, ood_pow_witness]);
    assert!(idle.into_iter().all(|witness| witness == F::default()));
    // A function of the number of rows.
    assert_eq!(degree_bits, height(vector.rows).ilog2() as usize + 1);
}

#[test]
fn soundness_is_proven_to_a_hundred_bits_at_every_height() {
    for vector in vectors() {
        for rows in [2, 300, 1_024, 4_734, 1 << 17] {
            assert!(
                vector.circuit.proven_bits(rows) >= WANTED_BITS,
                "{} {rows}",
                vector.name
            );
        }
    }
}

#[test]
fn constraints_have_one_degree_at_every_height() {
    for vector in [vector("every gadget"), gauge(0, 2)] {
        let degrees = [2, 300, 4_734, 1 << 17].map(|rows| vector.circuit.degree(rows));
        assert!(
            degrees.iter().all(|degree| *degree == degrees[0]),
            "{degrees:?}"
        );
    }
}
