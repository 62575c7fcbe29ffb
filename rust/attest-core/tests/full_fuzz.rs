//! Bytes that are no proof: whatever they are, the verifier answers, soon, and never with yes.
//!
//! The gauge's circuit is the smallest there is, so that a verification takes milliseconds. A sample
//! of every sort runs with the other tests; `make fuzz` flips a bit in every byte of a proof and
//! then goes on with the other sorts for the given time.

mod support;

use std::fs;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use attest_core::full::parameters::Config;
use p3_uni_stark::Proof;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use support::{CHAIN, HEAD_WORDS, Vector, gauge, segments, with_segment};

/// A verification that takes longer would be as good as one that hangs.
const LONGEST: Duration = Duration::from_secs(10);
/// Peak memory may grow by so much while verifying what is no proof.
const MOST_KILOBYTES: u64 = 64 << 10;

const LOG_ROWS: usize = 8;
const SEGMENTS: usize = 3;

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Two proofs of one circuit to make others from.
struct Seeds {
    vector: Vector,
    proof: Vec<u8>,
    other: Vec<u8>,
    tree: Value,
    rng: StdRng,
    cases: usize,
    slowest: Duration,
}

impl Seeds {
    fn new() -> Self {
        let vector = gauge(3, 20);
        let proofs = [1, 2].map(|entropy| vector.proven(entropy));
        let read: Proof<Config> = postcard::from_bytes(&proofs[0]).expect("a proof of ours");
        let tree = serde_json::to_value(&read).expect("a proof is a tree");
        Self::of(vector, proofs, tree)
    }

    /// Chains of three segments; a segment of one is spoiled as a proof is.
    fn chained() -> Self {
        let vector = gauge(3, 600);
        let chains = [1, 2].map(|entropy| vector.chained(entropy, LOG_ROWS));
        let read: Proof<Config> =
            postcard::from_bytes(&segments(&chains[0], SEGMENTS)[1]).expect("a segment of ours");
        let tree = serde_json::to_value(&read).expect("a proof is a tree");
        Self::of(vector, chains, tree)
    }

    fn of(vector: Vector, proofs: [Vec<u8>; 2], tree: Value) -> Self {
        panic::set_hook(Box::new(|panic| {
            PANICS.fetch_add(1, Ordering::Relaxed);
            eprintln!("{panic}");
        }));
        let [proof, other] = proofs;
        assert_eq!(vector.verified(&proof), Ok(()));
        Self {
            tree,
            vector,
            proof,
            other,
            rng: StdRng::seed_from_u64(5),
            cases: 0,
            slowest: Duration::ZERO,
        }
    }

    /// Show bytes that are not one of the two proofs.
    fn show(&mut self, bytes: &[u8], what: &str) {
        if bytes == self.proof || bytes == self.other {
            return;
        }
        self.slowest = self.slowest.max(refused(&self.vector, bytes, what));
        self.cases += 1;
    }

    fn flip(&mut self, at: usize) {
        let flipped = flipped(&self.proof, at, self.rng.random_range(0..8));
        self.show(&flipped, &format!("a bit of byte {at}"));
    }

    /// Flip a bit in every byte, on every core.
    fn flip_all(&mut self) {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let bits: Vec<u32> = self
            .proof
            .iter()
            .map(|_| self.rng.random_range(0..8))
            .collect();
        let (vector, proof, bits) = (&self.vector, &self.proof, &bits);
        let every = |first: usize| {
            let places = (first..proof.len()).step_by(threads);
            let shown = places.map(|at| {
                let flipped = flipped(proof, at, bits[at]);
                refused(vector, &flipped, &format!("a bit of byte {at}"))
            });
            shown.max().unwrap_or_default()
        };
        let slowest = thread::scope(|scope| {
            let started: Vec<_> = (0..threads)
                .map(|first| scope.spawn(move || every(first)))
                .collect();
            let ended = started
                .into_iter()
                .map(|each| each.join().expect("every flip is refused"));
            ended.max().unwrap_or_default()
        });
        self.slowest = self.slowest.max(slowest);
        self.cases += proof.len();
    }

    fn somewhere(&mut self, most: usize) -> std::ops::Range<usize> {
        let length = self.rng.random_range(1..=most);
        let at = self.rng.random_range(0..self.proof.len() - length);
        at..at + length
    }

    /// Bytes that are cut, moved, overwritten, spliced or made up.
    fn bytes(&mut self) {
        let mut changed = self.proof.clone();
        let span = self.somewhere(99);
        let what = match self.rng.random_range(0..8) {
            0 => {
                changed.truncate(span.start);
                "a beginning"
            }
            1 => {
                changed.drain(span);
                "a proof with a gap"
            }
            2 => {
                let doubled = changed[span.clone()].to_vec();
                changed.splice(span.start..span.start, doubled);
                "a proof that stutters"
            }
            3 => {
                let by = span.len().min(8);
                changed[span].rotate_left(by);
                "a proof in another order"
            }
            4 => {
                changed[span].fill(255); // lengths beyond all bounds, elements beyond the field
                "a proof of large numbers"
            }
            5 => {
                changed[span].fill(0);
                "a proof of zeros"
            }
            6 => {
                changed.truncate(span.start);
                changed.extend(self.other.iter().skip(span.start));
                "a splice of two proofs"
            }
            _ => {
                let length = self.rng.random_range(0..2_000);
                changed = (0..length).map(|_| self.rng.random()).collect();
                "noise"
            }
        };
        self.show(&changed, what);
    }

    /// A well-formed proof with one part dropped, doubled, emptied, swapped or changed.
    fn shapes(&mut self) {
        let mut tree = self.tree.clone();
        let mut path = String::new();
        spoil(&mut self.rng, &mut tree, &mut path);
        let Ok(read) = serde_json::from_value::<Proof<Config>>(tree) else {
            return; // a tree that is no proof has no bytes
        };
        let mut bytes = postcard::to_allocvec(&read).expect("a proof has bytes");
        if self.proof.starts_with(CHAIN) {
            bytes = with_segment(&self.proof, SEGMENTS, 1, &bytes);
        }
        self.show(&bytes, &format!("a proof with another {path}"));
    }

    /// A chain whose head says something else: k, values of seams, lengths of segments.
    fn heads(&mut self) {
        let words = (HEAD_WORDS + 4 * SEGMENTS - 3) as u64;
        let at = 8 * self.rng.random_range(2..words) as usize;
        let mut changed = self.proof.clone();
        let word = match self.rng.random_range(0..4) {
            0 => u64::MAX,
            1 => 0,
            2 => self.rng.random(),
            _ => self.rng.random_range(0..1 << 20),
        };
        changed[at..at + 8].copy_from_slice(&word.to_le_bytes());
        self.show(&changed, &format!("another word at {at}"));
    }

    fn report(&self, what: &str, since: Instant) {
        println!(
            "{what}: {} cases in {:.1} minutes, none accepted, no panic; slowest {:.0} ms",
            self.cases,
            since.elapsed().as_secs_f64() / 60.0,
            self.slowest.as_secs_f64() * 1e3
        );
        assert!(self.slowest < LONGEST);
    }
}

/// Show bytes to the verifier, which must refuse them and must not panic over it; say how long it
/// took.
fn refused(vector: &Vector, bytes: &[u8], what: &str) -> Duration {
    let start = Instant::now();
    let refused = vector.verified(bytes);
    let lasted = start.elapsed();
    assert!(refused.is_err(), "{what} was accepted");
    assert_eq!(PANICS.load(Ordering::Relaxed), 0, "{what}: {refused:?}");
    lasted
}

fn flipped(proof: &[u8], at: usize, bit: u32) -> Vec<u8> {
    let mut changed = proof.to_vec();
    changed[at] ^= 1 << bit;
    changed
}

/// Walk down a tree at random, and change what the walk ends at.
fn spoil(rng: &mut StdRng, node: &mut Value, path: &mut String) {
    let (on, how) = (rng.random_range(0..4) > 0, rng.random_range(0..4));
    match node {
        Value::Object(fields) => {
            let at = rng.random_range(0..fields.len());
            let (name, field) = fields.iter_mut().nth(at).expect("a field");
            path.push_str(name);
            path.push(' ');
            spoil(rng, field, path);
        }
        Value::Array(parts) if parts.is_empty() => parts.push(Value::from(0)),
        Value::Array(parts) => {
            let at = rng.random_range(0..parts.len());
            match (on, how) {
                (true, _) => spoil(rng, &mut parts[at], path),
                (_, 0) => drop(parts.remove(at)),
                (_, 1) => parts.insert(at, parts[at].clone()),
                (_, 2) => parts.clear(),
                _ => parts.reverse(),
            }
        }
        Value::Number(number) => {
            let held = number.as_u64().unwrap_or(0);
            *node = Value::from([0, held ^ 1, held.wrapping_add(1), rng.random()][how]);
        }
        rest => *rest = Value::Null,
    }
}

/// Peak memory of this process in kilobytes, where the system tells.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.unwrap_or(0)
}

#[test]
fn whatever_the_bytes_the_verifier_answers() {
    let start = Instant::now();
    let mut seeds = Seeds::new();
    let before = peak();
    let first = seeds.rng.random_range(0..1_009);
    for at in (first..seeds.proof.len()).step_by(1_009) {
        seeds.flip(at);
    }
    for _ in 0..200 {
        seeds.bytes();
        seeds.shapes();
    }
    assert!(seeds.cases > 400, "{} cases", seeds.cases);
    assert!(
        peak() < before + MOST_KILOBYTES,
        "{before} kB, then {}",
        peak()
    );
    seeds.report("a sample", start);
}

#[test]
fn whatever_the_bytes_of_a_chain_the_verifier_answers() {
    let start = Instant::now();
    let mut seeds = Seeds::chained();
    let before = peak();
    let first = seeds.rng.random_range(0..6_007);
    for at in (first..seeds.proof.len()).step_by(6_007) {
        seeds.flip(at);
    }
    for _ in 0..60 {
        seeds.bytes();
        seeds.shapes();
        seeds.heads();
    }
    assert!(seeds.cases > 200, "{} cases", seeds.cases);
    assert!(
        peak() < before + MOST_KILOBYTES,
        "{before} kB, then {}",
        peak()
    );
    seeds.report("a sample of chains", start);
}

#[test]
#[ignore = "minutes: make fuzz"]
fn every_byte_and_then_anything() {
    let minutes = std::env::var("MINUTES")
        .ok()
        .and_then(|text| text.parse().ok());
    let budget = Duration::from_secs_f64(60.0 * minutes.unwrap_or(5.0));
    let start = Instant::now();
    let mut seeds = Seeds::new();
    let before = peak();
    seeds.flip_all();
    seeds.report("a bit in every byte", start);
    let start = Instant::now();
    seeds.cases = 0;
    while start.elapsed() < budget {
        seeds.bytes();
        seeds.shapes();
    }
    seeds.report("anything else", start);
    assert!(
        peak() < before + MOST_KILOBYTES,
        "{before} kB, then {}",
        peak()
    );
}
