//! Commitments with more roots than their tree has.
//!
//! The trees of a proof have one root each. Plonky3 looks a root up by its place and does not count
//! them, so it accepts a commitment with a second root that stands for nothing.

mod support;

use attest_core::full::Invalid;
use attest_core::full::columns::F;
use attest_core::full::parameters::{
    self, CODEWORDS, Challenge, Challenger, Config, LOG_CAP, SALT,
};
use attest_core::full::witness::Manner;
use p3_blake3::Blake3;
use p3_commit::{BatchOpening, BatchOpeningRef, ExtensionMmcs, Mmcs};
use p3_dft::Radix2DitParallel;
use p3_field::PrimeField64;
use p3_fri::HidingFriPcs;
use p3_matrix::{Dimensions, Matrix};
use p3_merkle_tree::MerkleTreeHidingMmcs;
use p3_symmetric::{CompressionFunctionFromHasher, MerkleCap, SerializingHasher};
use p3_uni_stark::{Proof, StarkConfig};
use rand::SeedableRng;
use rand::rngs::StdRng;
use support::{CONTEXT, Vector, gauge};

type Hash = SerializingHasher<Blake3>;
type Compress = CompressionFunctionFromHasher<Blake3, 2, 32>;
type Leaves = MerkleTreeHidingMmcs<F, u8, Hash, Compress, StdRng, 2, 32, SALT>;
type Root = MerkleCap<F, [u8; 32]>;
type Layers = ExtensionMmcs<F, Challenge, Rooted>;
type Forging = StarkConfig<
    HidingFriPcs<F, Radix2DitParallel<F>, Rooted, Layers, StdRng>,
    Challenge,
    Challenger,
>;

/// Trees whose commitments have so many roots, of which the first is right.
#[derive(Clone)]
struct Rooted {
    leaves: Leaves,
    roots: usize,
}

impl Mmcs<F> for Rooted {
    type ProverData<M> = <Leaves as Mmcs<F>>::ProverData<M>;
    type Commitment = Root;
    type Proof = <Leaves as Mmcs<F>>::Proof;
    type MultiProof = <Leaves as Mmcs<F>>::MultiProof;
    type Error = <Leaves as Mmcs<F>>::Error;

    fn commit<M: Matrix<F>>(&self, inputs: Vec<M>) -> (Root, Self::ProverData<M>) {
        let (root, data) = self.leaves.commit(inputs);
        let mut roots = root.into_roots();
        roots.resize(self.roots, [7; 32]);
        (Root::new(roots), data)
    }

    fn open_batch<M: Matrix<F>>(
        &self,
        index: usize,
        data: &Self::ProverData<M>,
    ) -> BatchOpening<F, Self> {
        let (values, proof) = self.leaves.open_batch(index, data).unpack();
        BatchOpening::new(values, proof)
    }

    fn get_matrices<'a, M: Matrix<F>>(&self, data: &'a Self::ProverData<M>) -> Vec<&'a M> {
        self.leaves.get_matrices(data)
    }

    fn verify_batch(
        &self,
        commit: &Root,
        dimensions: &[Dimensions],
        index: usize,
        opening: BatchOpeningRef<'_, F, Self>,
    ) -> Result<(), Self::Error> {
        let (values, proof) = opening.unpack();
        let opening = BatchOpeningRef::new(values, proof);
        self.leaves.verify_batch(commit, dimensions, index, opening)
    }

    fn open_multi_batch<M: Matrix<F>>(
        &self,
        indices: &[usize],
        data: &Self::ProverData<M>,
    ) -> (Vec<Vec<Vec<F>>>, Self::MultiProof) {
        self.leaves.open_multi_batch(indices, data)
    }

    fn verify_multi_batch<R: AsRef<[F]> + PartialEq>(
        &self,
        commit: &Root,
        dimensions: &[Dimensions],
        indices: &[usize],
        values: &[Vec<R>],
        proof: &Self::MultiProof,
    ) -> Result<(), Self::Error> {
        self.leaves
            .verify_multi_batch(commit, dimensions, indices, values, proof)
    }
}

/// What the transcript of a proof begins with.
fn seed(vector: &Vector, totals: &[F]) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new_derive_key("sluice full proof 1");
    hasher
        .update(&vector.circuit.identity())
        .update(&vector.commitment)
        .update(&CONTEXT)
        .update(&(vector.rows as u64).to_le_bytes());
    for total in totals {
        hasher.update(&total.as_canonical_u64().to_le_bytes());
    }
    hasher.finalize().as_bytes().to_vec()
}

/// A proof whose inputs and foldings are committed to with so many roots each.
fn proof(vector: &Vector, inputs: usize, foldings: usize) -> Vec<u8> {
    let traced = vector.traced(Manner::default()).expect("it is admitted");
    let rooted = |roots| Rooted {
        leaves: Leaves::new(
            Hash::new(Blake3 {}),
            Compress::new(Blake3 {}),
            LOG_CAP,
            StdRng::from_seed([3; 32]),
        ),
        roots,
    };
    let pcs = HidingFriPcs::new(
        Radix2DitParallel::default(),
        rooted(inputs),
        parameters::fri(Layers::new(rooted(foldings))),
        CODEWORDS,
        StdRng::from_seed([4; 32]),
    );
    let seed = seed(vector, &traced.air.public.totals);
    let config = Forging::new(pcs, Challenger::from_hasher(seed, Blake3 {}));
    let made: Proof<Forging> =
        p3_uni_stark::prove(&config, &traced.air, traced.trace, &traced.digest).expect("a proof");
    postcard::to_allocvec(&made).expect("bytes")
}

#[test]
fn a_commitment_has_as_many_roots_as_its_tree() {
    let vector = gauge(5, 300);
    assert_eq!(vector.verified(&proof(&vector, 1, 1)), Ok(()));
    for (inputs, foldings) in [(2, 1), (1, 2), (2, 2), (4, 1)] {
        let forged = proof(&vector, inputs, foldings);
        let traced = vector.traced(Manner::default()).expect("it is admitted");
        let read: Proof<Config> = postcard::from_bytes(&forged).expect("its encoding is ours");
        let config = parameters::config(&seed(&vector, &traced.air.public.totals), [0; 32]);
        let alone = p3_uni_stark::verify(&config, &traced.air, &read, &traced.digest);
        assert!(alone.is_ok(), "Plonky3 takes {inputs} and {foldings} roots");
        let refused = vector.verified(&forged);
        assert!(
            matches!(refused, Err(Invalid::Shape(_))),
            "{inputs}, {foldings}: {refused:?}"
        );
    }
}
