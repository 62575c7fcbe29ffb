//! A statistic: sums over the rows that the proof ties to the committed batch.
//!
//! The statistic is `C_k = sum_t w_t x_t x_{t-k}^T` for every lag `k` and `s = sum_t w_t x_t`, with
//! public weights `w_t`. It is fixed before the weights `(a, b, beta, alone)` of a form are drawn. The
//! trace shows that
//!
//! `sum_t w_t (a.x_t) (sum_k beta_k b.x_{t-k} + alone) = sum_k beta_k a^T C_k b + alone a.s`
//!
//! with one transposed filter and one running sum a repetition. Both sides are polynomials of degree
//! three in the drawn weights. Where one integer of the statistic is wrong, they are different
//! polynomials, and agree at a drawn point with probability at most `3 / p`.
//!
//! Nothing that the form reads can be chosen after the draw: registers and codes are what the digest
//! holds, row weights follow from the number of rows, and a batch with a statistic is one segment. No
//! flag is read: flags are not committed, so a prover could choose them to fit a false statistic.
//!
//! A masked statistic stays hidden. What is fixed before the draw is then a sealed statistic: its
//! header and the hiding commitments to the two shares of the sums and of the masks. The running sums
//! begin at masks instead of zero, and what they come to is public. The masks are outputs of the
//! first permutation of the digest, which the chain does not take up: the commitment fixes them, as
//! it fixes row and salt, so they too are chosen before the draw.

use std::ops::Range;

use p3_field::{Dup, PrimeCharacteristicRing};

use super::channels::Channels;
use super::columns::{Column, Columns, F, Row, Rows, Schedule};
use super::digest::MASKS;
use super::statement::{REGISTER_TOP, Statement, Summed};
use super::{Malformed, ORDER};

/// How often the form is proven, each time at weights of its own.
pub const REPETITIONS: usize = MASKS;

/// The longest ramp at either end of the row weights.
pub const RAMP: usize = 512;

const DOMAIN: &str = "sluice full moments 1";
const MAGIC: &[u8; 16] = b"sluice-moments-1";
const SEALED: &[u8; 16] = b"sluice-sealed-01";
const SHARES: usize = 2 * 32;
const WORD: usize = 8;
const HEADER: usize = MAGIC.len() + 32 + 3 * WORD;

/// What a proof with a statistic is bound to before its weights are drawn, besides the batch.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    /// The statistic, in its canonical form.
    pub statistic: &'a [u8],
    /// What else the proof is bound to.
    pub context: &'a [u8; 32],
}

/// The sums of a batch, as they are claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sums {
    /// `s`, by channel.
    pub sums: Vec<u64>,
    /// `C_0`, `C_1`, ..., row after row.
    pub lagged: Vec<u64>,
}

/// The weights of one repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weights {
    /// `a`: of the channels of a row.
    pub left: Vec<F>,
    /// `b`: of the channels of a row so many rows earlier.
    pub right: Vec<F>,
    /// `beta`: of the lags.
    pub lags: Vec<F>,
    /// What stands beside the lags, and brings in the sums.
    pub alone: F,
}

/// The weights of every repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form(pub Vec<Weights>);

impl Form {
    /// Elements of the field, uniform by rejection, from an endless hash.
    fn draw(channels: usize, lags: usize, mut stream: blake3::OutputReader) -> Self {
        let mut one = || loop {
            let mut word = [0; WORD];
            stream.fill(&mut word);
            let word = u64::from_le_bytes(word);
            if word < ORDER {
                break F::from_u64(word);
            }
        };
        let mut many = |count: usize| -> Vec<F> { (0..count).map(|_| one()).collect() };
        let repetition = |_| Weights {
            left: many(channels),
            right: many(channels),
            lags: many(lags),
            alone: many(1)[0],
        };
        Self((0..REPETITIONS).map(repetition).collect())
    }

    /// What each repetition of the form must come to for these sums.
    #[must_use]
    pub fn totals(&self, sums: &Sums) -> Vec<F> {
        let dot = |weights: &[F], values: &[u64]| -> F {
            let terms = weights.iter().zip(values);
            terms
                .map(|(weight, value)| *weight * F::from_u64(*value))
                .sum()
        };
        let total = |weights: &Weights| {
            let channels = weights.left.len();
            let lag = |block: &[u64]| -> F {
                let rows = weights.left.iter().zip(block.chunks(channels));
                rows.map(|(left, row)| *left * dot(&weights.right, row))
                    .sum()
            };
            let blocks = weights
                .lags
                .iter()
                .zip(sums.lagged.chunks(channels * channels));
            let lagged: F = blocks.map(|(beta, block)| *beta * lag(block)).sum();
            lagged + weights.alone * dot(&weights.left, &sums.sums)
        };
        self.0.iter().map(total).collect()
    }
}

/// The columns of a statistic, and what it sums.
#[derive(Debug)]
pub struct Moments {
    /// How many lags.
    pub lags: usize,
    /// By repetition: the filter's state, which holds what earlier rows add to later ones.
    pub carried: Vec<Vec<Column>>,
    /// By repetition: the form over the rows before.
    pub so_far: Vec<Column>,
    /// Whether the form begins at masks, and the sums stay hidden.
    pub masked: bool,
    settings: Vec<u8>,
    channels: Vec<Summed>,
    start: Option<Column>,
    weight: usize,
    last: usize,
}

impl Moments {
    /// Hand out the columns, where the statement has a statistic.
    pub fn new(statement: &Statement, channels: &Channels, columns: &mut Columns) -> Option<Self> {
        let statistic = statement.statistic.as_ref()?;
        let digit = |pair: &[u8]| {
            let text = std::str::from_utf8(pair).expect("checked digits");
            u8::from_str_radix(text, 16).expect("checked digits")
        };
        let carried = |_| (1..statistic.lags).map(|_| columns.cell()).collect();
        Some(Self {
            lags: statistic.lags,
            carried: (0..REPETITIONS).map(carried).collect(),
            so_far: (0..REPETITIONS).map(|_| columns.cell()).collect(),
            masked: statistic.masked,
            settings: statistic.settings.as_bytes().chunks(2).map(digit).collect(),
            channels: statistic.channels.clone(),
            start: channels.start,
            weight: columns.schedule(Schedule::Weight(statistic.lags)),
            last: columns.schedule(Schedule::Last),
        })
    }

    /// Draw the weights, after batch and statistic are fixed: they depend on both.
    #[must_use]
    pub fn form(&self, identity: &[u8; 32], commitment: &[u8; 32], bound: &Bound) -> Form {
        let mut hasher = blake3::Hasher::new_derive_key(DOMAIN);
        hasher
            .update(identity)
            .update(commitment)
            .update(bound.context)
            .update(blake3::hash(bound.statistic).as_bytes());
        Form::draw(self.channels.len(), self.lags, hasher.finalize_xof())
    }

    /// Weights for a circuit that is asked for its constraints, before there is any batch.
    #[must_use]
    pub fn unbound(&self, seed: &[u8]) -> Form {
        let mut hasher = blake3::Hasher::new_derive_key("sluice full moments identity 1");
        hasher.update(seed);
        Form::draw(self.channels.len(), self.lags, hasher.finalize_xof())
    }

    /// Read a statistic of a batch of so many rows.
    ///
    /// # Errors
    /// [`Malformed`] where it is not in its canonical form, is of other settings or of another
    /// number of rows, or holds an integer that no rows give.
    pub fn read(&self, bytes: &[u8], rows: usize) -> Result<Sums, Malformed> {
        let channels = self.channels.len();
        let length = WORD * (channels + self.lags * channels * channels);
        let body = self.body(bytes, rows, MAGIC, length)?;
        let total: u64 = trapezoid(self.lags, rows).sum();
        let mut sums: Vec<u64> = words(body).collect();
        let lagged = sums.split_off(channels);
        let most = REGISTER_TOP * total;
        let possible = sums.iter().all(|sum| *sum <= most)
            && lagged.iter().all(|sum| *sum <= REGISTER_TOP * most);
        if !possible {
            return refuse("holds an integer that no rows give");
        }
        let at = |row: usize, column: usize| lagged[row * channels + column];
        if (0..channels).any(|row| (0..row).any(|column| at(row, column) != at(column, row))) {
            return refuse("is not symmetric at lag 0");
        }
        Ok(Sums { sums, lagged })
    }

    /// Check a sealed statistic of a batch of so many rows. What its shares are is not said here.
    ///
    /// # Errors
    /// [`Malformed`] where it is not in its canonical form, is of other settings or of another
    /// number of rows.
    pub fn check_sealed(&self, bytes: &[u8], rows: usize) -> Result<(), Malformed> {
        self.body(bytes, rows, SEALED, SHARES).map(|_| ())
    }

    fn body<'a>(
        &self,
        bytes: &'a [u8],
        rows: usize,
        format: &[u8; 16],
        length: usize,
    ) -> Result<&'a [u8], Malformed> {
        let expected = HEADER + length;
        if bytes.len() != expected {
            return refuse(&format!("has {} bytes, not {expected}", bytes.len()));
        }
        let (header, body) = bytes.split_at(HEADER);
        let (magic, header) = header.split_at(format.len());
        let (settings, header) = header.split_at(32);
        if magic != format || settings != self.settings {
            return refuse("is of another format or of other settings");
        }
        let total: u64 = trapezoid(self.lags, rows).sum();
        let counted = (rows + 1).saturating_sub(self.lags) as u64;
        if counted == 0 || words(header).ne([counted, total, self.lags as u64]) {
            return refuse(&format!("is not that of {rows} rows"));
        }
        Ok(body)
    }

    /// Nothing is carried yet, and nothing is summed unless masks are.
    pub fn first<R: Rows>(&self, rows: &mut R) {
        let unmasked = self.so_far.iter().filter(|_| !self.masked);
        for column in self.carried.iter().flatten().chain(unmasked) {
            rows.define(*column, R::Value::ZERO);
        }
    }

    /// On the first row the sums begin at the row's masks, if they are masked.
    pub fn mask<R: Rows>(&self, rows: &mut R, masks: [R::Value; MASKS]) {
        let masked = self.so_far.iter().filter(|_| self.masked);
        for (column, mask) in masked.zip(masks) {
            rows.define(*column, mask);
        }
    }

    /// The batch is one segment.
    pub fn judge_step<R: Rows>(&self, rows: &mut R) {
        if let Some(start) = self.start {
            rows.zero(rows.here(start));
        }
    }

    /// The row is filtered and added; on the batch's last row the form comes to its total.
    pub fn judge<R: Rows>(
        &self,
        channels: &Channels,
        rows: &mut R,
        form: &Form,
        totals: &[R::Value],
    ) {
        let last = rows.public(self.last);
        let added = self.added(channels, rows, form);
        let repetitions = form.0.iter().zip(added).enumerate();
        for (repetition, (weights, (sum, right))) in repetitions {
            rows.zero(last.dup() * (sum.dup() - totals[repetition].dup()));
            rows.lead(self.so_far[repetition], sum);
            let carried = &self.carried[repetition];
            for (at, column) in carried.iter().enumerate() {
                let next = earlier(carried, rows, at + 1) + right.dup() * weights.lags[at + 1];
                rows.lead(*column, next);
            }
        }
    }

    /// By repetition: the form over the rows up to this one, and the row at the weights `b`.
    pub fn added<R: Rows>(
        &self,
        channels: &Channels,
        rows: &R,
        form: &Form,
    ) -> Vec<(R::Value, R::Value)> {
        let values: Vec<R::Value> = self
            .channels
            .iter()
            .map(|summed| value(summed, channels, rows))
            .collect();
        let dot = |weights: &[F]| -> R::Value {
            let terms = weights.iter().zip(&values);
            terms.map(|(weight, value)| value.dup() * *weight).sum()
        };
        let weight = rows.public(self.weight);
        let repetition = |(repetition, weights): (usize, &Weights)| {
            let (left, right) = (dot(&weights.left), dot(&weights.right));
            let before = earlier(&self.carried[repetition], rows, 0);
            let filtered = before + right.dup() * weights.lags[0] + weights.alone;
            let so_far = rows.here(self.so_far[repetition]);
            (so_far + weight.dup() * left * filtered, right)
        };
        form.0.iter().enumerate().map(repetition).collect()
    }
}

/// What earlier rows add at a place of the filter; beyond it, nothing.
fn earlier<R: Rows>(carried: &[Column], rows: &R, at: usize) -> R::Value {
    let column = carried.get(at);
    column.map_or(R::Value::ZERO, |column| rows.here(*column))
}

fn refuse<T>(why: &str) -> Result<T, Malformed> {
    Err(Malformed(format!("the statistic {why}")))
}

fn value<R: Rows>(summed: &Summed, channels: &Channels, rows: &R) -> R::Value {
    match summed {
        Summed::Register(index) => rows.register(Row::Here, *index),
        Summed::Actuator { actuator, codes } => (0..)
            .zip(codes)
            .map(|(index, code)| {
                let shown = channels.actuators[*actuator].shows(rows, Row::Here, index);
                shown * F::from_u64(*code)
            })
            .sum(),
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let words = bytes.as_chunks::<WORD>().0.iter();
    words.map(|word| u64::from_le_bytes(*word))
}

/// The weight of a row of a batch: nothing before a whole window, then a ramp, a plateau, a ramp.
fn weight(lags: usize, rows: usize, row: usize) -> u64 {
    let windows = (rows + 1).saturating_sub(lags);
    let ramp = RAMP.min(windows.div_ceil(2));
    let counted = (row + 1).checked_sub(lags).filter(|at| *at < windows);
    counted.map_or(0, |at| (at + 1).min(windows - at).min(ramp) as u64)
}

/// The weights of all rows of a batch.
pub fn trapezoid(lags: usize, rows: usize) -> impl Iterator<Item = u64> {
    (0..rows).map(move |row| weight(lags, rows, row))
}

/// The weights of some rows, as a public column; padding counts for nothing.
#[must_use]
pub fn weights(lags: usize, rows: usize, span: Range<usize>) -> Vec<F> {
    let weights = span.map(|row| weight(lags, rows, row));
    weights.map(F::from_u64).collect()
}

/// Bits of soundness of the statistic: what a prover must spend on hashing, over its chance to find
/// weights at which a false statistic passes. Each drawing is one try, and tries need no answer.
#[must_use]
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]
pub fn bits() -> usize {
    (REPETITIONS as f64 * ((ORDER as f64) / 3.0).log2()).floor() as usize
}
