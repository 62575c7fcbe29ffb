//! Polynomials that are committed to without their codewords.
//!
//! A codeword has `2^LOG_BLOWUP` values for each coefficient of its polynomial, and the codewords of
//! a trace would take most of a prover's memory. They are therefore computed coset by coset: once to
//! hash their rows, once more to evaluate the constraints on them. What stays in memory are the
//! coefficients, the salts and the hashes. A proof opens a few rows at the end; their values are
//! those of the polynomials at a few points.
//!
//! Columns are kept in strips that fit into a processor's cache, so that a transform reads and writes
//! memory once.

use p3_commit::{BatchOpening, BatchOpeningRef, Mmcs};
use p3_dft::TwoAdicSubgroupDft;
use p3_field::{
    ExtensionField, Field, PackedFieldExtension, PackedFieldPow2, PackedValue,
    PrimeCharacteristicRing, TwoAdicField,
};
use p3_matrix::dense::{RowMajorMatrix, RowMajorMatrixView};
use p3_matrix::{Dimensions, Matrix};
use p3_maybe_rayon::prelude::*;
use p3_merkle_tree::{MerkleCap, PrunedMerklePaths};
use rand::rngs::StdRng;
use rand::{CryptoRng, RngExt, SeedableRng};

use super::columns::F;
use super::parameters::{
    self, CODEWORDS, Challenge, Dft, Digest, LOG_BLOWUP, LOG_CAP, Leaves, SALT,
};
use super::transform::{Packed, STRIP, Transform, reversed, rows_at};

/// Rows that are hashed together.
const HASHED: usize = 16;

/// The cosets that a codeword consists of.
pub(super) const COSETS: usize = 1 << LOG_BLOWUP;

type PackedChallenge = <Challenge as ExtensionField<F>>::ExtensionPacking;

/// The commitment to polynomials: the root of a tree, or the nodes that stand for it.
pub type Commitment = MerkleCap<F, Digest>;

/// Polynomials of equally many coefficients, in strips of columns; the last one may have columns of
/// zeros. Coefficient `r` is kept times the `r`-th power of the field's generator: the codeword is
/// then the values on a subgroup.
#[derive(Debug)]
pub(super) struct Polynomials {
    strips: Vec<Vec<F>>,
    width: usize,
}

/// The values of polynomials on one coset of their codewords, in strips; rows in bit-reversed order.
#[derive(Debug, Default)]
pub(super) struct Coset {
    strips: Vec<Vec<F>>,
    width: usize,
}

impl Polynomials {
    /// Polynomials whose coefficients a function returns, strip by strip: it is given the first column
    /// and the number of columns, and a source of masks of its own.
    fn strips<R: CryptoRng + SeedableRng + Send>(
        width: usize,
        source: &mut R,
        strip: impl Fn(usize, usize, R) -> Vec<F> + Sync,
    ) -> Self {
        let starts = (0..width).step_by(STRIP);
        let begun: Vec<_> = starts.map(|from| (from, R::from_rng(source))).collect();
        let strips = begun.into_par_iter();
        let strips = strips.map(|(from, source)| strip(from, STRIP.min(width - from), source));
        Self {
            strips: strips.collect(),
            width,
        }
    }

    /// A trace, masked: with a random row after each of its rows, and random columns.
    pub(super) fn masked<R: CryptoRng + SeedableRng + Send>(
        trace: &RowMajorMatrix<F>,
        source: &mut R,
    ) -> Self {
        let width = trace.width;
        let strip = |from: usize, columns: usize, mut source: R| {
            let shown = from.min(width)..(from + columns).min(width);
            let mut values = Vec::with_capacity(2 * STRIP * trace.height());
            let padding = [F::ZERO; STRIP];
            for row in trace.values.chunks_exact(width) {
                values.extend_from_slice(&row[shown.clone()]);
                values.extend((shown.len()..columns).map(|_| source.random::<F>()));
                values.extend_from_slice(&padding[columns..]);
                values.extend((0..columns).map(|_| source.random::<F>()));
                values.extend_from_slice(&padding[columns..]);
            }
            scaled(interpolated(values))
        };
        Self::strips(width + CODEWORDS, source, strip)
    }

    /// Given polynomials as matrices of scaled coefficients, and so many random ones after them.
    pub(super) fn beside_random<R: CryptoRng + SeedableRng + Send>(
        matrices: &[RowMajorMatrix<F>],
        random: usize,
        source: &mut R,
    ) -> Self {
        let (each, height) = (matrices[0].width, matrices[0].height());
        let given = each * matrices.len();
        let strip = |from: usize, columns: usize, mut source: R| {
            let mut values = F::zero_vec(STRIP * height);
            for (at, row) in values.chunks_exact_mut(STRIP).enumerate() {
                for (column, cell) in (from..from + columns).zip(row) {
                    *cell = if column < given {
                        matrices[column / each].values[at * each + column % each]
                    } else {
                        source.random()
                    };
                }
            }
            values
        };
        Self::strips(given + random, source, strip)
    }

    /// Public columns, one period of each: polynomials with as many coefficients as there are rows,
    /// and zeros for as many more.
    pub(super) fn public(columns: &[Vec<F>], rows: usize) -> Self {
        let strip = |from: usize, count: usize, _| {
            let mut values = F::zero_vec(STRIP * rows);
            for (at, row) in values.chunks_exact_mut(STRIP).enumerate() {
                for (column, cell) in columns[from..from + count].iter().zip(row) {
                    *cell = column[at % column.len()];
                }
            }
            let mut coefficients = scaled(interpolated(values));
            coefficients.resize(2 * STRIP * rows, F::ZERO);
            coefficients
        };
        Self::strips(columns.len(), &mut unused(), strip)
    }

    /// How many there are.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    fn height(&self) -> usize {
        self.strips[0].len() / STRIP
    }

    /// Write the values on a coset over those on another one.
    pub(super) fn write(&self, coset: usize, transform: &Transform, values: &mut Coset) {
        let root = F::two_adic_generator(transform.log_height as usize + LOG_BLOWUP);
        let shift = root.exp_u64(coset as u64);
        values.width = self.width;
        values.strips.resize_with(self.strips.len(), Vec::new);
        let strips = self.strips.par_iter().zip(&mut values.strips);
        strips.for_each(|(strip, values)| transform.values(strip, shift, values));
    }

    /// The values of all polynomials at a point.
    pub(super) fn at(&self, point: Challenge) -> Vec<Challenge> {
        let point = point * F::GENERATOR.inverse();
        let powers: Vec<_> = point.powers().take(self.height()).collect();
        let values =
            |strip: &Vec<F>| RowMajorMatrixView::new(strip, STRIP).columnwise_dot_product(&powers);
        let strips: Vec<Vec<Challenge>> = self.strips.par_iter().map(values).collect();
        let mut values = strips.concat();
        values.truncate(self.width);
        values
    }

    /// The sum of all polynomials, the first times `first` and each other times `alpha` more often.
    pub(super) fn combined(&self, first: Challenge, alpha: Challenge) -> Vec<Challenge> {
        let columns = STRIP * self.strips.len();
        let weights: Vec<_> = alpha.shifted_powers(first).take(columns).collect();
        let sum = |(strip, weights): (&Vec<F>, &[Challenge])| {
            let packed: Vec<PackedChallenge> = weights
                .chunks_exact(Packed::WIDTH)
                .map(PackedChallenge::from_ext_slice)
                .collect();
            RowMajorMatrixView::new(strip, STRIP)
                .rowwise_packed_dot_product::<Challenge>(&packed)
                .collect::<Vec<_>>()
        };
        let pairs = self.strips.par_iter().zip(weights.par_chunks(STRIP));
        let none = || vec![Challenge::ZERO; self.height()];
        pairs.map(sum).reduce(none, |mut sum, more| {
            sum.iter_mut()
                .zip(more)
                .for_each(|(sum, more)| *sum += more);
            sum
        })
    }

    /// The rows of the codewords at the given places.
    fn rows(&self, places: &[usize]) -> Vec<Vec<F>> {
        let length = self.height() << LOG_BLOWUP;
        let root = F::two_adic_generator(length.ilog2() as usize);
        let point = |place: &usize| root.exp_u64(reversed(*place, length.ilog2()) as u64);
        let points: Vec<F> = places.iter().map(point).collect();
        let open = |strip: &Vec<F>| rows_at(strip, &points);
        let strips: Vec<Vec<Vec<F>>> = self.strips.par_iter().map(open).collect();
        let row = |at: usize| {
            strips
                .iter()
                .flat_map(move |strip| strip[at].iter().copied())
        };
        let row = |at: usize| row(at).take(self.width).collect();
        (0..places.len()).map(row).collect()
    }
}

/// A source for strips that have no masks.
fn unused() -> StdRng {
    StdRng::from_seed([0; 32])
}

/// The coefficients that have values on a subgroup.
fn interpolated(values: Vec<F>) -> Vec<F> {
    let values = RowMajorMatrix::new(values, STRIP);
    Dft::default().idft_batch(values).values
}

/// Each coefficient times the power of the generator that belongs to it.
fn scaled(mut coefficients: Vec<F>) -> Vec<F> {
    let rows = coefficients.chunks_exact_mut(STRIP);
    for (row, power) in rows.zip(F::GENERATOR.powers()) {
        for cell in row {
            *cell *= power;
        }
    }
    coefficients
}

/// Polynomials and the tree over the rows of their codewords. Each row has salt of its own.
#[derive(Debug)]
pub struct Committed {
    pub(super) polynomials: Polynomials,
    salts: Vec<F>,
    /// The hashes of the rows, then of pairs of hashes, up to the commitment.
    layers: Vec<Vec<Digest>>,
}

impl Committed {
    pub(super) fn new<R: CryptoRng + SeedableRng + Send>(
        polynomials: Polynomials,
        transform: &Transform,
        source: &mut R,
    ) -> Self {
        let rows = polynomials.height();
        let sources: Vec<R> = (0..COSETS).map(|_| R::from_rng(source)).collect();
        let draw =
            |mut source: R| -> Vec<F> { (0..SALT * rows).map(|_| source.random::<F>()).collect() };
        let salts: Vec<Vec<F>> = sources.into_par_iter().map(draw).collect();
        let salts = salts.concat();
        let mut leaves = vec![Digest::default(); COSETS * rows];
        let blocks = leaves
            .chunks_exact_mut(rows)
            .zip(salts.chunks_exact(SALT * rows));
        let mut coset = Coset::default();
        for (block, (leaves, salts)) in blocks.enumerate() {
            let at = reversed(block, LOG_BLOWUP as u32);
            polynomials.write(at, transform, &mut coset);
            let coset = &coset;
            let groups = leaves.par_chunks_mut(HASHED);
            let groups = groups.zip(salts.par_chunks(HASHED * SALT)).enumerate();
            groups.for_each_init(Vec::new, |bytes, (group, (leaves, salts))| {
                bytes.clear();
                for (at, salt) in salts.chunks_exact(SALT).enumerate() {
                    coset.serialize(group * HASHED + at, salt, bytes);
                }
                parameters::hash_many(bytes, leaves);
            });
        }
        let mut layers = vec![leaves];
        while let Some(layer) = layers.last().filter(|layer| layer.len() > 1 << LOG_CAP) {
            let pairs = layer.par_chunks_exact(2);
            let above = pairs.map(|pair| parameters::compress([pair[0], pair[1]]));
            let above = above.collect();
            layers.push(above);
        }
        Self {
            polynomials,
            salts,
            layers,
        }
    }

    /// The commitment.
    pub(super) fn commitment(&self) -> Commitment {
        MerkleCap::new(self.layers.last().expect("a tree has leaves").clone())
    }

    /// Every hash beside the paths from some leaves to the commitment that is on none of them.
    fn beside(&self, leaves: &[usize]) -> Vec<Digest> {
        let mut nodes = leaves.to_vec();
        nodes.sort_unstable();
        nodes.dedup();
        let mut beside = Vec::new();
        for layer in &self.layers[..self.layers.len() - 1] {
            for node in &nodes {
                if nodes.binary_search(&(node ^ 1)).is_err() {
                    beside.push(layer[node ^ 1]);
                }
            }
            for node in &mut nodes {
                *node /= 2;
            }
            nodes.dedup();
        }
        beside
    }
}

impl Coset {
    /// Add the bytes of a row, and its salt after them.
    fn serialize(&self, at: usize, salt: &[F], bytes: &mut Vec<u8>) {
        let from = bytes.len();
        for strip in &self.strips {
            let mut cells = [[0; 8]; STRIP];
            for (cell, value) in cells.iter_mut().zip(&strip[at * STRIP..][..STRIP]) {
                *cell = parameters::bytes(*value);
            }
            bytes.extend_from_slice(cells.as_flattened());
        }
        bytes.truncate(from + 8 * self.width);
        bytes.extend(salt.iter().flat_map(|salt| parameters::bytes(*salt)));
    }

    /// Add the first columns of rows, of which each is given for one lane.
    pub(super) fn pack(
        &self,
        rows: &[usize; Packed::WIDTH],
        columns: usize,
        into: &mut Vec<Packed>,
    ) {
        let end = into.len() + columns;
        for strip in &self.strips {
            for from in (0..STRIP).step_by(Packed::WIDTH) {
                let row =
                    |row: usize| *Packed::from_slice(&strip[row * STRIP + from..][..Packed::WIDTH]);
                into.extend(transposed(rows.map(row)));
            }
        }
        into.truncate(end);
    }
}

/// Columns of a square of elements whose rows are given.
fn transposed(mut rows: [Packed; Packed::WIDTH]) -> [Packed; Packed::WIDTH] {
    let mut apart = 1;
    while apart < Packed::WIDTH {
        for at in (0..Packed::WIDTH).filter(|at| at & apart == 0) {
            (rows[at], rows[at + apart]) = rows[at].interleave(rows[at + apart], apart);
        }
        apart *= 2;
    }
    rows
}

/// The scheme by which the foldings open the rows of what is committed. It only opens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Openings;

type Salted = <Leaves<StdRng> as Mmcs<F>>::MultiProof;

impl Mmcs<F> for Openings {
    type ProverData<M> = Committed;
    type Commitment = Commitment;
    type Proof = <Leaves<StdRng> as Mmcs<F>>::Proof;
    type MultiProof = Salted;
    type Error = <Leaves<StdRng> as Mmcs<F>>::Error;

    fn commit<M: Matrix<F>>(&self, _: Vec<M>) -> (Commitment, Committed) {
        unreachable!("what is opened was committed to before")
    }

    fn open_batch<M: Matrix<F>>(&self, _: usize, _: &Committed) -> BatchOpening<F, Self> {
        unreachable!("all places are opened at once")
    }

    fn get_matrices<'a, M: Matrix<F>>(&self, _: &'a Committed) -> Vec<&'a M> {
        unreachable!("codewords are not kept")
    }

    fn get_max_height<M: Matrix<F>>(&self, committed: &Committed) -> usize {
        committed.layers[0].len()
    }

    fn verify_batch(
        &self,
        _: &Commitment,
        _: &[Dimensions],
        _: usize,
        _: BatchOpeningRef<'_, F, Self>,
    ) -> Result<(), Self::Error> {
        unreachable!("a prover verifies nothing")
    }

    fn open_multi_batch<M: Matrix<F>>(
        &self,
        places: &[usize],
        committed: &Committed,
    ) -> (Vec<Vec<Vec<F>>>, Salted) {
        let rows = committed.polynomials.rows(places);
        let rows = rows.into_iter().map(|row| vec![row]).collect();
        let salts = places
            .iter()
            .map(|place| vec![committed.salts[place * SALT..][..SALT].to_vec()]);
        let paths = PrunedMerklePaths {
            sibling_hashes: committed.beside(places),
        };
        (rows, (salts.collect(), paths))
    }

    fn verify_multi_batch<Row: AsRef<[F]> + PartialEq>(
        &self,
        _: &Commitment,
        _: &[Dimensions],
        _: &[usize],
        _: &[Vec<Row>],
        _: &Salted,
    ) -> Result<(), Self::Error> {
        unreachable!("a prover verifies nothing")
    }
}
