//! Exact ranges from small digits.
//!
//! A ladder is a list of digits with weights chosen so that their sums are exactly the integers from
//! 0 to a given reach: no weight exceeds what the digits before it reach, plus one, so there is no
//! gap, and all digits at their largest give the reach. That makes `0 <= x <= reach` one sum and one
//! membership test a digit, for any reach, where powers of the radix alone need two sums.

/// The largest radix: membership in `0..RADIX` is a constraint of that degree.
pub const RADIX: u64 = 8;

/// A digit: what one of it is worth, and how many values it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digit {
    /// Where it stands in a row.
    pub column: usize,
    /// What one of it is worth.
    pub weight: u64,
    /// How many values it has, from 0.
    pub radix: u64,
}

/// Digits whose sums are exactly `0..=reach`, and more digits that reach `extra` further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ladder {
    /// The digits of every row.
    pub base: Vec<Digit>,
    /// The digits that only a flagged row may use.
    pub extra: Vec<Digit>,
    /// What the base reaches.
    pub reach: u64,
    /// What the extra digits reach beyond it.
    pub beyond: u64,
}

impl Ladder {
    /// Lay out digits for `0..=reach`, and `beyond` more on flagged rows, from a column on.
    #[must_use]
    pub fn new(first_column: usize, reach: u64, beyond: u64) -> Self {
        let place = |at: usize, shape: Vec<(u64, u64)>| -> Vec<Digit> {
            let digit = |(index, (weight, radix))| Digit {
                column: at + index,
                weight,
                radix,
            };
            shape.into_iter().enumerate().map(digit).collect()
        };
        let base = place(first_column, shape(0, reach));
        let extra = place(first_column + base.len(), shape(reach, beyond));
        Self {
            base,
            extra,
            reach,
            beyond,
        }
    }

    /// Digits of the largest radix in these columns, with a weight each; none where a weight is no
    /// weight, which only comes up where the prover lies.
    #[must_use]
    pub fn weighing(columns: &[usize], weights: &[u64]) -> Option<Self> {
        let digit = |(column, weight): (&usize, &u64)| Digit {
            column: *column,
            weight: *weight,
            radix: RADIX,
        };
        let base: Vec<Digit> = columns.iter().zip(weights).map(digit).collect();
        let sane = weights.iter().all(|weight| (1..1 << 50).contains(weight));
        let reach = sane.then(|| (RADIX - 1) * weights.iter().sum::<u64>())?;
        Some(Self {
            base,
            extra: Vec::new(),
            reach,
            beyond: 0,
        })
    }

    /// Every digit, the base first.
    pub fn digits(&self) -> impl DoubleEndedIterator<Item = &Digit> {
        self.base.iter().chain(&self.extra)
    }

    /// How many columns it takes.
    #[must_use]
    pub fn width(&self) -> usize {
        self.base.len() + self.extra.len()
    }

    /// The digits of a value, the base first; none where it is out of range.
    #[must_use]
    pub fn split(&self, value: u64, flagged: bool) -> Option<Vec<u64>> {
        let extra = if flagged { self.beyond } else { 0 };
        if value > self.reach + extra {
            return None;
        }
        let mut left = value;
        let mut below = self.reach + self.beyond;
        let mut found: Vec<u64> = self
            .digits()
            .rev()
            .map(|digit| {
                below -= digit.weight * (digit.radix - 1);
                let taken = left.saturating_sub(below).div_ceil(digit.weight);
                left -= taken * digit.weight;
                taken
            })
            .collect();
        found.reverse();
        Some(found)
    }

    /// The digits of a value that may be out of range: then the last one is, and the sum holds.
    #[must_use]
    pub fn stuff(&self, value: i128) -> Vec<i128> {
        let mut left = value;
        let mut below = i128::from(self.reach + self.beyond);
        let mut found: Vec<i128> = Vec::new();
        for digit in self.digits().rev() {
            let weight = i128::from(digit.weight);
            below -= weight * i128::from(digit.radix - 1);
            let least = (left - below + weight - 1).div_euclid(weight);
            let taken = if left < 0 {
                left.div_euclid(weight)
            } else {
                least.max(0)
            };
            left -= taken * weight;
            found.push(taken);
        }
        found.reverse();
        found
    }
}

/// Digits with two sets of weights. Their sums are exactly `0..=reach` of one ladder, or of the other,
/// as a flag says: a wider range costs no column of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dual {
    /// The weights without the flag.
    pub plain: Ladder,
    /// The weights with it, in the same columns.
    pub flagged: Ladder,
}

impl Dual {
    /// Lay out as few digits as can have both reaches, from a column on; none where a reach is too
    /// short for every digit to weigh something.
    #[must_use]
    pub fn new(first_column: usize, plain: u64, flagged: u64) -> Option<Self> {
        let shapes = (1..MOST_DIGITS).flat_map(|digits| (2..RADIX).map(move |last| (digits, last)));
        shapes.into_iter().find_map(|(digits, last)| {
            let place = |reach: u64| {
                let weights = mixed_weights(reach, digits, last)?;
                let digit = |(at, weight): (usize, u64)| Digit {
                    column: first_column + at,
                    weight,
                    radix: if at < digits { RADIX } else { last },
                };
                Some(Ladder {
                    base: weights.into_iter().enumerate().map(digit).collect(),
                    extra: Vec::new(),
                    reach,
                    beyond: 0,
                })
            };
            Some(Self {
                plain: place(plain)?,
                flagged: place(flagged)?,
            })
        })
    }

    /// Its digits, with the weights that they have without the flag.
    #[must_use]
    pub fn digits(&self) -> &[Digit] {
        &self.plain.base
    }

    /// What a flag adds to the weight of each digit.
    pub fn added(&self) -> impl Iterator<Item = (usize, i128)> {
        let pairs = self.plain.base.iter().zip(&self.flagged.base);
        pairs.map(|(plain, flagged)| {
            let more = i128::from(flagged.weight) - i128::from(plain.weight);
            (plain.column, more)
        })
    }
}

/// No ladder below 2^63 takes more digits.
const MOST_DIGITS: usize = 21;

/// The weights of so many digits of the largest radix and one of another, whose sums are exactly
/// `0..=reach`. Each weighs something. The last digit makes up for what the others, which reach
/// multiples of their largest value, leave; it weighs no more than needed.
#[must_use]
pub fn mixed_weights(reach: u64, digits: usize, last: u64) -> Option<Vec<u64>> {
    let most = RADIX.pow(u32::try_from(digits).ok()?) - 1;
    let least = reach.saturating_sub(most).div_ceil(last - 1).max(1);
    let weight = (least..least + RADIX - 1).find(|weight| {
        let left = reach.checked_sub(weight * (last - 1));
        left.is_some_and(|left| left.is_multiple_of(RADIX - 1))
    })?;
    let others = reach - weight * (last - 1);
    let fits = others >= (RADIX - 1) * digits as u64 && weight <= others + 1;
    let mut found = fits.then(|| weights(others, digits))?;
    found.push(weight);
    Some(found)
}

/// How many digits of the largest radix reach so far.
#[must_use]
pub fn digits_for(reach: u64) -> usize {
    1 + reach.checked_ilog(RADIX).unwrap_or(0) as usize
}

/// The weights of so many digits of the largest radix whose sums are exactly `0..=reach`, a multiple
/// of the largest digit. Each weighs something.
#[must_use]
pub fn weights(reach: u64, digits: usize) -> Vec<u64> {
    let mut left = reach / (RADIX - 1);
    let mut below = 0;
    let weight = |at: usize| {
        let others = (digits - 1 - at) as u64;
        let weight = (below + 1).min(left.saturating_sub(others));
        left -= weight;
        below += weight * (RADIX - 1);
        weight
    };
    (0..digits).map(weight).collect()
}

/// Weights and radices that reach exactly `reach` beyond what digits up to `below` reach.
fn shape(below: u64, reach: u64) -> Vec<(u64, u64)> {
    let mut digits = Vec::new();
    let (mut below, mut left) = (below, reach);
    while left > 0 {
        let last = (2..=RADIX)
            .find(|radix| left.is_multiple_of(radix - 1) && left / (radix - 1) <= below + 1);
        let (weight, radix) = match last {
            Some(radix) => (left / (radix - 1), radix),
            None => ((below + 1).min(left / (RADIX - 1)), RADIX),
        };
        digits.push((weight, radix));
        below += weight * (radix - 1);
        left -= weight * (radix - 1);
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(ladder: &Ladder, flagged: bool) -> Vec<u64> {
        let digits: Vec<Digit> = if flagged {
            ladder.digits().copied().collect()
        } else {
            ladder.base.clone()
        };
        let mut found = vec![0];
        for digit in digits {
            found = (0..digit.radix)
                .flat_map(|value| found.iter().map(move |sum| sum + value * digit.weight))
                .collect();
            found.sort_unstable();
            found.dedup();
        }
        found
    }

    #[test]
    fn sums_are_every_integer_in_range_and_no_other() {
        for reach in (0..700).chain([4_095, 4_096, 9_999]) {
            for beyond in [0, 1, 2, 5, 63, 700, 12_345] {
                let ladder = Ladder::new(0, reach, beyond);
                assert_eq!(sums(&ladder, false), (0..=reach).collect::<Vec<_>>());
                assert_eq!(
                    sums(&ladder, true),
                    (0..=reach + beyond).collect::<Vec<_>>()
                );
            }
        }
    }

    #[test]
    fn splitting_and_summing_are_inverse() {
        for (reach, beyond) in [(0, 3), (6, 0), (41, 17), (65_535, 0), (1 << 31, 1 << 29)] {
            let ladder = Ladder::new(3, reach, beyond);
            for value in [
                0,
                1,
                reach / 3,
                reach,
                reach + 1,
                reach + beyond,
                reach + beyond + 1,
            ] {
                for flagged in [false, true] {
                    let most = if flagged { reach + beyond } else { reach };
                    let Some(digits) = ladder.split(value, flagged) else {
                        assert!(value > most);
                        continue;
                    };
                    assert!(value <= most);
                    let sum: u64 = ladder
                        .digits()
                        .zip(&digits)
                        .map(|(d, n)| d.weight * n)
                        .sum();
                    assert_eq!(sum, value);
                    assert!(ladder.digits().zip(&digits).all(|(d, n)| *n < d.radix));
                    let used = digits[ladder.base.len()..].iter().any(|digit| *digit > 0);
                    assert!(flagged || !used);
                }
            }
        }
    }

    #[test]
    fn what_is_out_of_range_ends_up_in_the_last_digit() {
        for (reach, beyond) in [(41, 0), (65_535, 0), (39_354, 0), (1 << 31, 1 << 29)] {
            let ladder = Ladder::new(0, reach, beyond);
            let all = i128::from(reach + beyond);
            for value in [-all, -3, -1, 0, 5, all, all + 1, 2 * all, 7 * all + 3] {
                let digits = ladder.stuff(value);
                let sum: i128 = ladder
                    .digits()
                    .zip(&digits)
                    .map(|(d, n)| i128::from(d.weight) * n)
                    .sum();
                assert_eq!(sum, value);
                let fits = |(digit, held): (&Digit, &i128)| (0..digit.radix.into()).contains(held);
                let misfits: Vec<usize> = (0..digits.len())
                    .filter(|at| !fits((ladder.digits().nth(*at).unwrap(), &digits[*at])))
                    .collect();
                let expected = if (0..=all).contains(&value) {
                    vec![]
                } else {
                    vec![digits.len() - 1]
                };
                assert_eq!(misfits, expected, "{value} of {reach} + {beyond}");
            }
        }
    }

    #[test]
    fn shared_digits_reach_exactly_as_far_as_each_interval() {
        for reach in (42..4_000).step_by(7) {
            for digits in digits_for(reach)..=6 {
                let weights = weights(reach, digits);
                assert!(weights.iter().all(|weight| *weight > 0), "{reach}");
                let columns: Vec<usize> = (0..digits).collect();
                let ladder = Ladder::weighing(&columns, &weights).expect("weights");
                assert_eq!(ladder.reach, reach);
                let mut found = sums(&ladder, false);
                found.sort_unstable();
                found.dedup();
                if digits < 6 {
                    assert_eq!(found, (0..=reach).collect::<Vec<_>>());
                }
                for value in [0, 1, 41, reach / 2, reach - 1, reach] {
                    let split = ladder.split(value, false).expect("in range");
                    let sum: u64 = split.iter().zip(&weights).map(|(n, w)| n * w).sum();
                    assert_eq!(sum, value);
                }
                assert_eq!(ladder.split(reach + 1, false), None);
            }
        }
        assert_eq!(digits_for(65_541), 6);
        assert_eq!(weights(112, 16), [1; 16]);
        assert!(Ladder::weighing(&[0, 1], &[1, 0]).is_none());
    }

    #[test]
    fn a_flag_switches_between_two_exact_ranges() {
        for (plain, flagged) in [
            (14, 14),
            (36, 65_535),
            (78, 122),
            (142, 222),
            (412, 65_535),
            (640, 1_016),
            (9_999, 4_097),
            (65_535, 36),
        ] {
            let dual = Dual::new(5, plain, flagged).expect("wide enough");
            for (ladder, reach) in [(&dual.plain, plain), (&dual.flagged, flagged)] {
                let mut found = sums(ladder, false);
                found.sort_unstable();
                found.dedup();
                assert_eq!(found, (0..=reach).collect::<Vec<_>>());
                assert!(ladder.base.iter().all(|digit| digit.weight > 0));
                for value in [0, 1, reach / 3, reach - 1, reach] {
                    let split = ladder.split(value, false).expect("in range");
                    let digits = ladder.base.iter().zip(&split);
                    assert!(digits.clone().all(|(digit, held)| *held < digit.radix));
                    assert_eq!(digits.map(|(d, n)| d.weight * n).sum::<u64>(), value);
                }
                assert_eq!(ladder.split(reach + 1, false), None);
            }
            let places = |ladder: &Ladder| -> Vec<_> {
                ladder.base.iter().map(|d| (d.column, d.radix)).collect()
            };
            assert_eq!(places(&dual.plain), places(&dual.flagged));
        }
    }

    #[test]
    fn two_ranges_take_no_more_digits_than_the_wider_one() {
        for (plain, flagged, width) in [
            (412, 65_535, 6),
            (78, 122, 3),
            (2 << 22, 13_053_754, 8),
            (2 << 30, 3_353_521_514, 11),
            (1 << 61, 1 << 62, 21),
        ] {
            let dual = Dual::new(0, plain, flagged).expect("wide enough");
            assert_eq!(dual.digits().len(), width, "{plain} and {flagged}");
            assert_eq!((dual.plain.reach, dual.flagged.reach), (plain, flagged));
            for ladder in [&dual.plain, &dual.flagged] {
                let mut below = 0;
                for digit in &ladder.base {
                    assert!((1..=below + 1).contains(&digit.weight));
                    below += digit.weight * (digit.radix - 1);
                }
                assert_eq!(below, ladder.reach);
            }
        }
        assert_eq!(Dual::new(0, 2, 65_535), None);
        assert_eq!(Dual::new(0, 35, 65_535), None);
    }

    #[test]
    fn sixteen_bits_take_six_columns_and_a_tolerance_eleven() {
        assert_eq!(Ladder::new(0, 65_535, 0).width(), 6);
        assert_eq!(Ladder::new(0, 1 << 31, 0).width(), 11);
    }
}
