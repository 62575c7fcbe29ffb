//! From coefficients to values: the transform of strips of columns.
//!
//! A polynomial is taken modulo `X^h - c` and `X^h + c`, for halves of ever smaller length, until what
//! is left are its values. Within a block every row is multiplied by the same root, and the rows come
//! out in bit-reversed order, as trees and foldings need them. A strip fits into a processor's cache, so a
//! transform reads and writes memory once.

use std::collections::BTreeMap;

use p3_field::{Field, PackedValue, PrimeCharacteristicRing, TwoAdicField};

use super::columns::F;

/// Columns of a strip: 32 columns of 8,192 coefficients are 2 MB.
pub(super) const STRIP: usize = 32;

/// Elements that are computed with at once.
pub(super) type Packed = <F as Field>::Packing;

const ROW: usize = STRIP / Packed::WIDTH;

/// The low bits of an index, in reverse order.
pub(super) fn reversed(index: usize, bits: u32) -> usize {
    index
        .reverse_bits()
        .checked_shr(usize::BITS - bits)
        .unwrap_or(0)
}

/// The transform of polynomials of `2^log_height` coefficients.
#[derive(Debug)]
pub(super) struct Transform {
    pub(super) log_height: u32,
    /// Half of all roots of unity, in bit-reversed order.
    roots: Vec<F>,
}

impl Transform {
    pub(super) fn new(log_height: u32) -> Self {
        let root = F::two_adic_generator(log_height as usize);
        let powers: Vec<F> = root.powers().take(1 << (log_height - 1)).collect();
        let place = |at: usize| powers[reversed(at, log_height - 1)];
        Self {
            log_height,
            roots: (0..powers.len()).map(place).collect(),
        }
    }

    /// The values of a strip's polynomials on a coset of the roots of unity.
    pub(super) fn values(&self, coefficients: &[F], shift: F, values: &mut Vec<F>) {
        let shifts: Vec<F> = (0..self.log_height)
            .map(|level| shift.exp_power_of_2((self.log_height - 1 - level) as usize))
            .collect();
        values.resize(coefficients.len(), F::ZERO);
        let (low, high) = coefficients.split_at(coefficients.len() / 2);
        let (low, high) = (Packed::pack_slice(low), Packed::pack_slice(high));
        let values = Packed::pack_slice_mut(values);
        let (sums, differences) = values.split_at_mut(low.len());
        let from = low.iter().zip(high);
        let into = sums.iter_mut().zip(differences.iter_mut());
        for ((low, high), (sum, difference)) in from.zip(into) {
            let high = *high * shifts[0];
            (*sum, *difference) = (*low + high, *low - high);
        }
        self.halve(sums, &shifts[1..], 0);
        self.halve(differences, &shifts[1..], 1);
    }

    /// The values of what is left modulo the polynomial of a block, in its place.
    fn halve(&self, rows: &mut [Packed], shifts: &[F], block: usize) {
        match shifts {
            [] => {}
            [shift] => {
                let root = self.roots[block] * *shift;
                let (low, high) = rows.split_at_mut(ROW);
                for (low, high) in low.iter_mut().zip(high) {
                    let product = *high * root;
                    (*low, *high) = (*low + product, *low - product);
                }
            }
            [shift, after, further @ ..] => {
                let root = self.roots[block] * *shift;
                let [first, second] = [0, 1].map(|at| self.roots[2 * block + at] * *after);
                let quarter = rows.len() / 4;
                let (low, high) = rows.split_at_mut(2 * quarter);
                let ((a, b), (c, d)) = (low.split_at_mut(quarter), high.split_at_mut(quarter));
                let quarters = a
                    .iter_mut()
                    .zip(b.iter_mut())
                    .zip(c.iter_mut().zip(d.iter_mut()));
                for ((a, b), (c, d)) in quarters {
                    let (at_c, at_d) = (*c * root, *d * root);
                    let (even, odd) = ((*a + at_c, *b + at_d), (*a - at_c, *b - at_d));
                    let (of_even, of_odd) = (even.1 * first, odd.1 * second);
                    (*a, *b) = (even.0 + of_even, even.0 - of_even);
                    (*c, *d) = (odd.0 + of_odd, odd.0 - of_odd);
                }
                for (at, rows) in rows.chunks_exact_mut(quarter).enumerate() {
                    self.halve(rows, further, 4 * block + at);
                }
            }
        }
    }
}

/// The values of a strip's polynomials at a few points. A polynomial is halved once for all points
/// at which the power of that degree is the same.
pub(super) fn rows_at(coefficients: &[F], points: &[F]) -> Vec<Vec<F>> {
    let mut rows = vec![Vec::new(); points.len()];
    let all: Vec<(usize, F)> = points.iter().copied().enumerate().collect();
    remainders(Packed::pack_slice(coefficients), &all, &mut rows);
    rows
}

fn remainders(coefficients: &[Packed], points: &[(usize, F)], rows: &mut [Vec<F>]) {
    if coefficients.len() == ROW {
        for (at, _) in points {
            rows[*at] = Packed::unpack_slice(coefficients).to_vec();
        }
        return;
    }
    let (low, high) = coefficients.split_at(coefficients.len() / 2);
    let mut groups: BTreeMap<F, Vec<(usize, F)>> = BTreeMap::new();
    for point in points {
        let power = point.1.exp_u64((low.len() / ROW) as u64);
        groups.entry(power).or_default().push(*point);
    }
    let mut reduced = Vec::with_capacity(low.len());
    for (power, points) in groups {
        reduced.clear();
        reduced.extend(low.iter().zip(high).map(|(low, high)| *low + *high * power));
        remainders(&reduced, &points, rows);
    }
}

#[cfg(test)]
mod tests {
    use p3_dft::{Radix2DitParallel, TwoAdicSubgroupDft};
    use p3_matrix::bitrev::BitReversibleMatrix;
    use p3_matrix::dense::RowMajorMatrix;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    #[test]
    fn the_transform_is_that_of_plonky3() {
        let mut source = StdRng::seed_from_u64(1);
        for log_height in 1..8 {
            let cells = STRIP << log_height;
            let strip: Vec<F> = (0..cells).map(|_| source.random()).collect();
            let shift: F = source.random();
            let theirs = Radix2DitParallel::default()
                .coset_dft_batch(RowMajorMatrix::new(strip.clone(), STRIP), shift)
                .bit_reverse_rows();
            let mut values = Vec::new();
            Transform::new(log_height).values(&strip, shift, &mut values);
            assert_eq!(values, theirs.values);
            let root = F::two_adic_generator(log_height as usize);
            let places = [0, 1, (1 << log_height) - 1, 1];
            let point = |place| shift * root.exp_u64(reversed(place, log_height) as u64);
            let rows = rows_at(&strip, &places.map(point));
            for (place, row) in places.into_iter().zip(rows) {
                assert_eq!(row, values[place * STRIP..][..STRIP]);
            }
        }
    }
}
