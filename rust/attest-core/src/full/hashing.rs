//! BLAKE3 of many long messages at once.
//!
//! BLAKE3 hashes chunks of a message side by side in a vector unit. A row of a trace has too few chunks to
//! fill one, so the same chunk of many rows is hashed side by side instead. The hashes are the same.
//!
//! Only `blake3::platform` can do so. It is public, but not documented and not stable, so `Cargo.toml` names
//! one version of `blake3` exactly. Plonky3's `p3-blake3` uses the same module for shorter messages. Before
//! another version is named, the tests below must pass: they compare with `blake3::hash`.

use blake3::hazmat::HasherExt;
use blake3::platform::Platform;
use blake3::{BLOCK_LEN, CHUNK_LEN, Hasher, IncrementCounter};
use p3_blake3::Blake3;
use p3_symmetric::CryptographicHasher;

use super::parameters::Digest;

const IV: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];
const CHUNK_START: u8 = 1;
const CHUNK_END: u8 = 2;
const PARENT: u8 = 4;
const ROOT: u8 = 8;

/// BLAKE3 of messages that are padded to whole blocks: one bit, then zeros. A proof of work tries short
/// messages, and only whole blocks of several messages can be hashed side by side.
#[derive(Debug, Clone, Copy)]
pub struct Padded;

const PADDING: u8 = 0x80;

impl CryptographicHasher<u8, Digest> for Padded {
    const LANES: usize = <Blake3 as CryptographicHasher<u8, Digest>>::LANES;

    fn hash_iter<I: IntoIterator<Item = u8>>(&self, input: I) -> Digest {
        let mut message: Vec<u8> = input.into_iter().collect();
        message.push(PADDING);
        message.resize(message.len().next_multiple_of(BLOCK_LEN), 0);
        blake3::hash(&message).into()
    }

    fn hash_many(&self, input: &[u8], out: &mut [Digest]) {
        let length = input.len() / out.len().max(1);
        if length >= BLOCK_LEN || out.len() > Self::LANES {
            for (hash, message) in out.iter_mut().zip(input.chunks_exact(length)) {
                *hash = self.hash_iter(message.iter().copied());
            }
            return;
        }
        let mut blocks = [[0; BLOCK_LEN]; Self::LANES];
        for (block, message) in blocks.iter_mut().zip(input.chunks_exact(length)) {
            block[..length].copy_from_slice(message);
            block[length] = PADDING;
        }
        Blake3.hash_many(blocks[..out.len()].as_flattened(), out);
    }
}

/// Hash messages of equal lengths, of more than a chunk each.
pub(super) fn hash_long(messages: &[u8], hashes: &mut [Digest]) {
    let length = messages.len() / hashes.len();
    let messages: Vec<&[u8]> = messages.chunks_exact(length).collect();
    let chunks = length.div_ceil(CHUNK_LEN);
    let values: Vec<Vec<Digest>> = (0..chunks).map(|at| chunk(&messages, at)).collect();
    hashes.copy_from_slice(&above(&values, ROOT));
}

/// What a chunk of every message comes to.
fn chunk(messages: &[&[u8]], at: usize) -> Vec<Digest> {
    let from = at * CHUNK_LEN;
    let whole: Option<Vec<&[u8; CHUNK_LEN]>> = messages
        .iter()
        .map(|message| message[from..].first_chunk())
        .collect();
    let Some(whole) = whole else {
        let last = |message: &&[u8]| {
            let mut hasher = Hasher::new();
            hasher.set_input_offset(from as u64);
            hasher.update(&message[from..]).finalize_non_root()
        };
        return messages.iter().map(last).collect();
    };
    many(&whole, at as u64, [0, CHUNK_START, CHUNK_END])
}

/// What neighbouring chunks of every message come to.
fn above(values: &[Vec<Digest>], flags: u8) -> Vec<Digest> {
    if let [values] = values {
        return values.clone();
    }
    let (left, right) = values.split_at(values.len().next_power_of_two() / 2);
    let pairs = above(left, 0).into_iter().zip(above(right, 0));
    let blocks: Vec<[u8; BLOCK_LEN]> = pairs.map(|(left, right)| joined(left, right)).collect();
    let blocks: Vec<&[u8; BLOCK_LEN]> = blocks.iter().collect();
    many(&blocks, 0, [PARENT | flags, 0, 0])
}

fn joined(left: Digest, right: Digest) -> [u8; BLOCK_LEN] {
    let mut block = [0; BLOCK_LEN];
    block[..left.len()].copy_from_slice(&left);
    block[left.len()..].copy_from_slice(&right);
    block
}

/// Blocks of equal lengths side by side, with flags for all, the first and the last block of each.
fn many<const N: usize>(inputs: &[&[u8; N]], counter: u64, flags: [u8; 3]) -> Vec<Digest> {
    let mut values = vec![Digest::default(); inputs.len()];
    Platform::detect().hash_many(
        inputs,
        &IV,
        counter,
        IncrementCounter::No,
        flags[0],
        flags[1],
        flags[2],
        values.as_flattened_mut(),
    );
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padded_messages_are_hashed_in_whole_blocks() {
        let padded = |message: &[u8]| {
            let mut blocks = [message, &[0x80]].concat();
            blocks.resize(blocks.len().next_multiple_of(64), 0);
            *blake3::hash(&blocks).as_bytes()
        };
        for length in [1, 40, 62, 63, 64, 65, 127, 128, 1000] {
            for count in [1, 3, 8, 16, 17] {
                let messages: Vec<u8> = (0..length * count).map(|at| (at % 251) as u8).collect();
                let mut hashes = vec![Digest::default(); count];
                Padded.hash_many(&messages, &mut hashes);
                for (message, hash) in messages.chunks_exact(length).zip(hashes) {
                    assert_eq!(hash, padded(message), "{length}");
                    assert_eq!(hash, Padded.hash_iter(message.iter().copied()));
                }
            }
        }
        assert_eq!(Padded.hash_iter([]), padded(&[]));
        let (short, long) = ([0; 3], [0; 4]);
        assert_ne!(Padded.hash_iter(short), Padded.hash_iter(long));
    }

    #[test]
    fn hashes_are_those_of_blake3() {
        let lengths = (1025..1100).chain([2048, 2049, 3072, 5000, 7192, 8192, 9000, 20_000]);
        for length in lengths {
            for count in [1, 2, 7, 16, 17] {
                let messages: Vec<u8> = (0..length * count).map(|at| (at % 251) as u8).collect();
                let mut hashes = vec![Digest::default(); count];
                hash_long(&messages, &mut hashes);
                for (message, hash) in messages.chunks_exact(length).zip(hashes) {
                    assert_eq!(hash, *blake3::hash(message).as_bytes(), "{length}");
                }
            }
        }
    }
}
