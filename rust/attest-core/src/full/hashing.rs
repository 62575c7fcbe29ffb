//! BLAKE3 of many long messages at once.
//!
//! BLAKE3 hashes chunks of a message side by side in a vector unit. A row of a trace has too few chunks to
//! fill one, so the same chunk of many rows is hashed side by side instead. The hashes are the same.

use blake3::hazmat::HasherExt;
use blake3::platform::Platform;
use blake3::{BLOCK_LEN, CHUNK_LEN, Hasher, IncrementCounter};

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
