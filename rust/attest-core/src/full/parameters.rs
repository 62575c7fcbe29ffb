//! The parameters of the proof system. They live here and nowhere else: no proof carries any.

use blake3::CHUNK_LEN;
use p3_blake3::Blake3;
use p3_challenger::{HashChallenger, SerializingChallenger64};
use p3_commit::ExtensionMmcs;
use p3_dft::Radix2DitParallel;
use p3_field::PrimeField64;
use p3_field::extension::CubicTrinomialExtensionField;
use p3_fri::{FriParameters, HidingFriPcs};
use p3_merkle_tree::MerkleTreeHidingMmcs;
use p3_symmetric::{
    CompressionFunctionFromHasher, CryptographicHasher, PseudoCompressionFunction,
    SerializingHasher,
};
use p3_uni_stark::StarkConfig;
use rand::rngs::StdRng;
use rand::{CryptoRng, SeedableRng};

use super::columns::F;
use super::counts::BASE;
use super::hashing::{self, Padded};
use super::ladder::RADIX;
use super::scheme::Pcs;

/// The degree of the field that challenges come from: 192 bits.
pub const EXTENSION: usize = 3;

/// The logarithm of how much longer codewords are than traces.
pub const LOG_BLOWUP: usize = 3;

/// How many places of every codeword are opened.
pub const QUERIES: usize = 53;

/// Bits of work before the queries are drawn.
pub const QUERY_WORK: usize = 22;

/// Bits of work before openings are combined.
pub const BATCH_WORK: usize = 0;

/// The logarithm of the folding arity.
pub const LOG_ARITY: usize = 3;

/// The logarithm of the length of the last polynomial.
pub const LOG_FINAL: usize = 8;

/// The logarithm of how many nodes of a tree stand for its root.
pub const LOG_CAP: usize = 0;

/// Field elements of salt in each leaf: 128 bits.
pub const SALT: usize = 2;

/// Random codewords beside each committed matrix, one a dimension of the extension.
pub const CODEWORDS: usize = EXTENSION;

/// Bits that the hash resists collisions for.
pub const COLLISION_BITS: usize = 128;

/// The shortest trace whose masks cover all that is opened of it.
pub const LEAST_HEIGHT: usize = 256;

/// The tallest trace whose proof has the stated bits; more rows are a chain.
pub const MOST_HEIGHT: usize = 1 << 17;

const HASH_ELEMENTS: usize = 4;

/// The field that challenges come from.
pub type Challenge = CubicTrinomialExtensionField<F>;
/// What a tree consists of.
pub type Digest = [u8; 32];
type Hash = SerializingHasher<Blake3>;
type Compress = CompressionFunctionFromHasher<Blake3, 2, 32>;
/// The trees over rows.
pub type Leaves<R> = MerkleTreeHidingMmcs<F, u8, Hash, Compress, R, 2, 32, SALT>;
/// The trees over foldings.
pub type Layers<R> = ExtensionMmcs<F, Challenge, Leaves<R>>;
/// The transform.
pub type Dft = Radix2DitParallel<F>;
/// The transcript.
pub type Challenger = SerializingChallenger64<F, HashChallenger<u8, Padded, 32>>;
/// The whole configuration.
pub type Config<R = StdRng> = StarkConfig<Pcs<R>, Challenge, Challenger>;

/// What folding is done with.
pub fn fri<M>(layers: M) -> FriParameters<M> {
    FriParameters {
        log_blowup: LOG_BLOWUP,
        log_final_poly_len: LOG_FINAL,
        max_log_arity: LOG_ARITY,
        num_queries: QUERIES,
        batch_proof_of_work_bits: BATCH_WORK,
        commit_proof_of_work_bits: 0,
        query_proof_of_work_bits: QUERY_WORK,
        mmcs: layers,
    }
}

/// Set up with a transcript that begins with `seed` and masks drawn from `entropy`.
#[must_use]
pub fn config(seed: &[u8], entropy: [u8; 32]) -> Config {
    masked(seed, StdRng::from_seed(entropy))
}

/// A transcript that begins with `seed`.
#[must_use]
pub fn transcript(seed: &[u8]) -> Challenger {
    Challenger::from_hasher(seed.to_vec(), Padded)
}

/// Set up with masks from any source. Nothing but a test has a reason to choose one.
#[must_use]
pub fn masked<R: CryptoRng + SeedableRng + Send>(seed: &[u8], source: R) -> Config<R> {
    Config::new(scheme(source), transcript(seed))
}

/// The commitment scheme, with masks from a source.
pub fn scheme<R: CryptoRng + SeedableRng + Send>(mut source: R) -> Pcs<R> {
    let leaves = leaves(R::from_rng(&mut source));
    let layers = Layers::new(leaves.clone());
    Pcs::new(HidingFriPcs::new(
        Dft::default(),
        leaves,
        fri(layers),
        CODEWORDS,
        R::from_rng(&mut source),
    ))
}

/// The foldings, with salts from a source.
pub fn foldings<R: CryptoRng + SeedableRng + Send>(source: R) -> FriParameters<Layers<R>> {
    fri(Layers::new(leaves(source)))
}

fn leaves<R: CryptoRng + SeedableRng + Send>(source: R) -> Leaves<R> {
    let hash = Hash::new(Blake3 {});
    Leaves::new(hash, Compress::new(Blake3 {}), LOG_CAP, source)
}

/// The bytes of an element, as they are hashed.
#[must_use]
pub fn bytes(element: F) -> [u8; 8] {
    element.as_canonical_u64().to_le_bytes()
}

/// Hash messages of equal lengths, one after the other.
pub fn hash_many(messages: &[u8], hashes: &mut [Digest]) {
    if messages.len() > CHUNK_LEN * hashes.len() {
        return hashing::hash_long(messages, hashes);
    }
    Blake3 {}.hash_many(messages, hashes);
}

/// The node above two nodes of a tree.
#[must_use]
pub fn compress(nodes: [Digest; 2]) -> Digest {
    Compress::new(Blake3 {}).compress(nodes)
}

/// No proof about a trace of this shape has more bytes: every query with paths of its own, and an
/// eighth for lengths. What is longer is not even read.
#[must_use]
pub fn largest_proof(width: usize, quotients: usize, height: usize) -> usize {
    let log_codeword = height.ilog2() as usize + 1 + LOG_BLOWUP;
    let rounds = log_codeword.div_ceil(LOG_ARITY);
    let beside = (quotients + 1) * EXTENSION;
    let rows = width + beside + 2 * (CODEWORDS + SALT);
    let folded = rounds * (EXTENSION << LOG_ARITY) + rounds * SALT;
    let paths = (2 + rounds) * log_codeword * HASH_ELEMENTS;
    let points = 2 * width + beside + 3 * CODEWORDS;
    let last = (1 << LOG_FINAL) + rounds + 8;
    9 * (QUERIES * (rows + folded + paths) + EXTENSION * (points + last))
}

/// Every parameter by name, in the order in which they are hashed into a circuit's identity.
#[must_use]
pub fn named() -> Vec<(&'static str, u64)> {
    let named = [
        ("base", BASE as usize),
        ("batch_work_bits", BATCH_WORK),
        ("codewords", CODEWORDS),
        ("collision_bits", COLLISION_BITS),
        ("extension", EXTENSION),
        ("least_height", LEAST_HEIGHT),
        ("log_arity", LOG_ARITY),
        ("log_blowup", LOG_BLOWUP),
        ("log_cap", LOG_CAP),
        ("log_final", LOG_FINAL),
        ("queries", QUERIES),
        ("query_work_bits", QUERY_WORK),
        ("radix", RADIX as usize),
        ("salt", SALT),
    ];
    named
        .into_iter()
        .map(|(name, value)| (name, value as u64))
        .collect()
}
