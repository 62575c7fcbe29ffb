//! Zero knowledge, as far as tests can see it: what a proof opens is uniform whatever the batch.
//!
//! A gauge shows 0 on every row of one batch and 7 on every row of another: nothing could be easier
//! to tell apart in an opening that is not masked. What proofs open of its column, at queried places
//! and at the point outside the trace, is counted by its leading four bits.

mod support;

use std::convert::Infallible;

use attest_core::full::columns::F;
use attest_core::full::parameters::{self, Config};
use attest_core::full::prover::Held;
use attest_core::full::witness::Manner;
use p3_field::{BasedVectorSpace, PrimeField64};
use p3_uni_stark::Proof;
use rand::{CryptoRng, SeedableRng, TryCryptoRng, TryRng};
use support::{Vector, gauge, segments};

const PROOFS: u8 = 27;
const ROWS: usize = 200;
const CHAINED: usize = 600;
const LOG_ROWS: usize = 8;
const SEGMENTS: usize = 3;
/// The gauge's only digit.
const COLUMN: usize = 0;
/// The trace's place among what is opened: before all that is beside it.
const TRACE: usize = 0;
const BUCKETS: usize = 16;
const SHARE: f64 = 1.0 / 16.0;
/// Fifteen degrees of freedom exceed it once in a million.
const CHI_SQUARE: f64 = 56.5;

type Counts = [f64; BUCKETS];

fn opened<R>(proof: &Proof<Config<R>>) -> Vec<F>
where
    R: CryptoRng + SeedableRng + Send + Sync,
{
    let queried = &proof.opening_proof.1.input_openings[TRACE].opened_values;
    let mut values: Vec<F> = queried.iter().map(|rows| rows[0][COLUMN]).collect();
    let next = proof.opened_values.trace_next.as_ref().expect("two rows");
    for outside in [&proof.opened_values.trace_local, next] {
        let coordinates: &[F] = outside[COLUMN].as_basis_coefficients_slice();
        values.extend(coordinates);
    }
    values
}

fn counted(values: impl IntoIterator<Item = F>) -> Counts {
    let mut counts = [0.0; BUCKETS];
    for value in values {
        counts[(value.as_canonical_u64() >> 60) as usize] += 1.0;
    }
    counts
}

fn from_uniform(counts: &Counts) -> f64 {
    let expected = counts.iter().sum::<f64>() * SHARE;
    let distance = |count: &f64| (count - expected).powi(2) / expected;
    counts.iter().map(distance).sum()
}

fn from_each_other(one: &Counts, other: &Counts) -> f64 {
    let [of_one, of_other] = [one, other].map(|counts| counts.iter().sum::<f64>());
    let (up, down) = ((of_other / of_one).sqrt(), (of_one / of_other).sqrt());
    let distance = |(a, b): (&f64, &f64)| match a + b {
        0.0 => 0.0,
        both => (a * up - b * down).powi(2) / both,
    };
    one.iter().zip(other).map(distance).sum()
}

fn masked(vector: &Vector) -> Counts {
    let open = |entropy| {
        let proof: Proof<Config> =
            postcard::from_bytes(&vector.proven(entropy)).expect("a proof of ours");
        opened(&proof)
    };
    counted((0..PROOFS).flat_map(open))
}

/// The same of chains of three segments, whose rows are shared at the seams.
fn chained(vector: &Vector) -> Counts {
    let open = |entropy| {
        let chain = vector.chained(entropy, LOG_ROWS);
        let parts = segments(&chain, SEGMENTS);
        let read = |part: Vec<u8>| -> Proof<Config> {
            postcard::from_bytes(&part).expect("a segment of ours")
        };
        parts
            .into_iter()
            .flat_map(move |part| opened(&read(part)))
            .collect::<Vec<F>>()
    };
    counted((0..PROOFS / 3).flat_map(open))
}

/// A source of nothing but zeros: masks that mask nothing.
struct Silent;

impl TryRng for Silent {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(0)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(0)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill(0);
        Ok(())
    }
}

impl TryCryptoRng for Silent {}

impl SeedableRng for Silent {
    type Seed = [u8; 0];

    fn from_seed(_seed: [u8; 0]) -> Self {
        Self
    }
}

fn bare(vector: &Vector) -> Counts {
    let open = |seed: u8| {
        let traced = vector.traced(Manner::default()).expect("it is admitted");
        let held = Held::commit(&traced.trace, Silent).expect("as many masks as always");
        let degree = vector.circuit.degree(ROWS);
        let transcript = parameters::transcript(&[seed; 32]);
        let proof = held.prove(&traced.air, degree, &traced.digest, transcript);
        opened(&proof.expect("masks are not missed by the prover"))
    };
    counted((0..2).flat_map(open))
}

#[test]
fn openings_are_uniform_and_do_not_tell_batches_apart() {
    let (zeros, sevens) = (gauge(0, ROWS), gauge(7, ROWS));
    assert_alike(masked(&zeros), masked(&sevens));
}

#[test]
fn openings_of_chains_are_uniform_and_do_not_tell_batches_apart() {
    let (zeros, sevens) = (gauge(0, CHAINED), gauge(7, CHAINED));
    assert_alike(chained(&zeros), chained(&sevens));
}

fn assert_alike(of_zeros: Counts, of_sevens: Counts) {
    let drawn: f64 = of_zeros.iter().sum();
    assert!(drawn > 55.0 * f64::from(PROOFS), "{drawn} values");
    for counts in [&of_zeros, &of_sevens] {
        assert!(from_uniform(counts) < CHI_SQUARE, "{counts:?}");
    }
    assert!(
        from_each_other(&of_zeros, &of_sevens) < CHI_SQUARE,
        "{of_zeros:?} {of_sevens:?}"
    );
}

#[test]
fn without_masks_openings_are_neither() {
    let (zeros, sevens) = (bare(&gauge(0, ROWS)), bare(&gauge(7, ROWS)));
    assert!(from_uniform(&zeros) > CHI_SQUARE, "{zeros:?}");
    assert!(
        from_each_other(&zeros, &sevens) > CHI_SQUARE,
        "{zeros:?} {sevens:?}"
    );
}
