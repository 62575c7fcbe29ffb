//! Commitments that are not what the trees of a proof have for their roots.
//!
//! Plonky3 looks a root up by its place and does not count them, so it would accept a commitment with a
//! second root that stands for nothing. It also observes a commitment to the random polynomial, which is
//! under the tree of the quotient here: another root would stand for nothing.

mod support;

use attest_core::full::Invalid;
use attest_core::full::columns::F;
use attest_core::full::parameters::Config;
use p3_symmetric::MerkleCap;
use p3_uni_stark::Proof;
use support::{Vector, gauge};

type Root = MerkleCap<F, [u8; 32]>;

fn refused(vector: &Vector, change: impl Fn(&mut Proof<Config>)) -> Result<(), Invalid> {
    let mut proof: Proof<Config> =
        postcard::from_bytes(&vector.proven(1)).expect("a proof of ours");
    change(&mut proof);
    vector.verified(&postcard::to_allocvec(&proof).expect("bytes"))
}

fn more(root: &mut Root) {
    let mut roots = root.clone().into_roots();
    roots.push([7; 32]);
    *root = Root::new(roots);
}

#[test]
fn a_commitment_has_as_many_roots_as_its_tree() {
    let vector = gauge(5, 300);
    assert_eq!(refused(&vector, |_| {}), Ok(()));
    let changes: [fn(&mut Proof<Config>); 3] = [
        |proof| more(&mut proof.commitments.trace),
        |proof| {
            more(&mut proof.commitments.quotient_chunks);
            proof.commitments.random = Some(proof.commitments.quotient_chunks.clone());
        },
        |proof| more(&mut proof.opening_proof.1.commit_phase_commits[0]),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let Err(Invalid::Shape(why)) = refused(&vector, change) else {
            panic!("{at} has another shape")
        };
        assert!(why.contains("more roots than its tree"), "{at}: {why}");
    }
}

#[test]
fn the_random_polynomial_is_under_the_tree_of_the_quotient() {
    let vector = gauge(5, 300);
    let changes: [fn(&mut Proof<Config>); 2] = [
        |proof| proof.commitments.random = None,
        |proof| proof.commitments.random = Some(Root::new(vec![[7; 32]])),
    ];
    for change in changes {
        let Err(Invalid::Shape(why)) = refused(&vector, change) else {
            panic!("it has another shape")
        };
        assert!(why.contains("the tree of the quotient"), "{why}");
    }
}
