//! What both sides know of a batch besides the statement: its rows, its budgets, its digest.

use std::ops::Range;

use p3_field::PrimeCharacteristicRing;
use serde::Deserialize;

use super::Malformed;
use super::columns::{F, Schedule};
use super::counts::{BASE, Count, Counted, MOST_ROWS};
use super::layout::Layout;
use super::liveness::stride;
use super::moments;
use super::parameters::{LEAST_HEIGHT, MOST_HEIGHT};

/// How much of what a batch of so many rows may show.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budgets {
    /// Rows that may violate.
    pub violating: u64,
    /// Rows that may be severe.
    pub severe: u64,
    /// Segments that may be, the first among them.
    pub segments: u64,
    /// Rows that a coupling may be unsteady, by coupling.
    pub unsteady: Vec<u64>,
    /// Windows that may violate, by window rule.
    pub windows: Vec<u64>,
    /// Switches that may be out of band, by rule.
    pub switches: Vec<u64>,
    /// Blocks that may violate, by spectrum.
    pub blocks: Vec<u64>,
}

impl Budgets {
    /// Read budgets.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong with them.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        serde_json::from_slice(bytes).map_err(|error| Malformed(format!("not budgets: {error}")))
    }
}

/// The number of rows, and what follows from it and the budgets.
#[derive(Debug, Clone)]
pub struct Public {
    /// Rows of the batch.
    pub rows: usize,
    /// The row of the batch on which the trace begins.
    pub start: usize,
    /// Rows of the trace: a power of two.
    pub height: usize,
    /// The public columns on the rows of the trace, in the layout's order.
    pub schedules: Vec<Vec<F>>,
    /// What each shared count must come out at.
    pub totals: Vec<F>,
    /// The budgets by what they count, as far as there is so much to count.
    pub budgets: Vec<(Counted, u64)>,
    /// Where the slack of each exact count stands: its lowest bit first, a row each.
    pub slack: Vec<(Counted, Range<usize>)>,
}

impl Public {
    /// Work out what is public of a batch.
    ///
    /// # Errors
    /// [`Malformed`] where the rows or budgets fit no trace of this layout.
    pub fn new(layout: &Layout, rows: usize, budgets: &Budgets) -> Result<Self, Malformed> {
        if rows > MOST_HEIGHT {
            return Err(Malformed(format!(
                "{rows} rows are too many for one trace, which has {MOST_HEIGHT}"
            )));
        }
        Ok(Self::whole(layout, rows, budgets)?.part(layout, 0..height(rows)))
    }

    /// The same without the public columns: each part of the rows has its own.
    ///
    /// # Errors
    /// [`Malformed`] where the rows or budgets fit no trace of this layout.
    pub fn whole(layout: &Layout, rows: usize, budgets: &Budgets) -> Result<Self, Malformed> {
        if !(2..=MOST_ROWS).contains(&rows) {
            return Err(Malformed(format!("{rows} rows are not 2 to {MOST_ROWS}")));
        }
        let limit =
            |counted| budget(layout, budgets, rows, counted).map(|budget| (counted, budget));
        let counted = layout.counts.counts.iter().flat_map(|count| &count.counted);
        let limits: Vec<_> = counted
            .map(|counted| limit(*counted))
            .collect::<Result<_, _>>()?;
        let of = |counted: &Counted| {
            let known = limits.iter().find(|(known, _)| known == counted);
            known.expect("every count has a budget").1
        };
        let slack = slack(&limits, rows)?;
        let total = |count: &Count| {
            let digits = digits(count).map(|(counted, digit)| digit * F::from_u64(of(counted)));
            digits.sum()
        };
        let totals = layout.counts.counts.iter().map(total).collect();
        Ok(Self {
            rows,
            start: 0,
            height: 0,
            schedules: Vec::new(),
            totals,
            budgets: limits,
            slack,
        })
    }

    /// What is known of a trace's shape before anything is asked of a batch.
    #[must_use]
    pub fn unbudgeted(layout: &Layout, height: usize) -> Self {
        Self {
            rows: height,
            start: 0,
            height,
            schedules: vec![F::zero_vec(height); layout.schedules.len()],
            totals: F::zero_vec(layout.counts.counts.len()),
            budgets: Vec::new(),
            slack: Vec::new(),
        }
    }

    /// What is public of some of the rows; those beyond the batch are padding.
    #[must_use]
    pub fn part(&self, layout: &Layout, span: Range<usize>) -> Self {
        let column = |schedule: &Schedule| match *schedule {
            Schedule::Slack(index) => weights(&layout.counts.counts[index], &self.slack, &span),
            Schedule::Weight(lags) => moments::weights(lags, self.rows, span.clone()),
            other => {
                let marks = span.clone().map(|row| on(other, row, self.rows));
                marks.map(F::from_bool).collect()
            }
        };
        Self {
            rows: self.rows,
            start: span.start,
            height: span.len(),
            schedules: layout.schedules.iter().map(column).collect(),
            totals: self.totals.clone(),
            budgets: self.budgets.clone(),
            slack: self.slack.clone(),
        }
    }

    /// What a public column holds on a row of the batch, which is one of this part.
    pub fn at(&self, schedule: usize, row: usize) -> F {
        self.schedules[schedule][row - self.start]
    }

    /// Whether a public column marks a row of the batch.
    #[must_use]
    pub fn marks(&self, schedule: Schedule, row: usize) -> bool {
        on(schedule, row, self.rows)
    }

    /// The budget of a count.
    #[must_use]
    pub fn budget(&self, counted: Counted) -> u64 {
        self.budgets
            .iter()
            .find(|(known, _)| *known == counted)
            .map_or(0, |(_, budget)| *budget)
    }
}

/// The height of a trace of so many rows.
#[must_use]
pub fn height(rows: usize) -> usize {
    rows.next_power_of_two().max(LEAST_HEIGHT)
}

/// A budget, as far as there is so much to claim: then a count can be brought up to it.
fn budget(
    layout: &Layout,
    budgets: &Budgets,
    rows: usize,
    counted: Counted,
) -> Result<u64, Malformed> {
    let listed = |list: &[u64], index: usize, length: usize| {
        let whole = list.len() == length;
        list.get(index)
            .copied()
            .filter(|_| whole)
            .ok_or_else(|| Malformed(format!("{} budgets for {length} rules", list.len())))
    };
    let all = rows as u64;
    let windows = layout.windows.lengths();
    let blocks = layout.spectra.blocks();
    Ok(match counted {
        Counted::Violating => budgets.violating.min(all),
        Counted::Severe => budgets.severe.min(budgets.violating).min(all),
        Counted::Segments => budgets.segments.min(all),
        Counted::Unsteady(index) => {
            listed(&budgets.unsteady, index, layout.couplings.len())?.min(all)
        }
        Counted::Window(index) => {
            let anchors = (0..rows).filter(|row| on(Schedule::Anchor(windows[index]), *row, rows));
            listed(&budgets.windows, index, windows.len())?.min(anchors.count() as u64)
        }
        Counted::Switch(index) => listed(&budgets.switches, index, layout.switches.len())?.min(all),
        Counted::Block(index) => {
            let (block, offset) = blocks[index];
            let early = u64::from((1..=all).contains(&offset));
            let whole = all.saturating_sub(offset) / block;
            listed(&budgets.blocks, index, blocks.len())?.min(whole) + early
        }
    })
}

/// Whether a public column is one on a row.
fn on(schedule: Schedule, row: usize, rows: usize) -> bool {
    let (at, all) = (row as u64, rows as u64);
    match schedule {
        Schedule::Real => at < all,
        Schedule::Coming => at + 1 < all,
        Schedule::Last => at + 1 == all,
        Schedule::Boundary(window) => at % window == 0 || at % window == window / 2,
        Schedule::Anchor(window) => {
            let ends = at % window == 0 || (at % window == window / 2 && at > window);
            at >= window && at < all && ends
        }
        Schedule::AnchorComing(window) => on(Schedule::Anchor(window), row + 1, rows),
        Schedule::Fresh(block) => (at + 1) % stride(block) == 0,
        Schedule::End(block) => {
            at + 1 >= block && at < all && (at + 1 - block) % stride(block) == 0
        }
        Schedule::BlockEnd(block, offset) => at < all && (at + 1) % block == offset,
        Schedule::Slack(_) | Schedule::Weight(_) => false,
    }
}

/// Give every bit of every exact budget a row of its own.
fn slack(
    limits: &[(Counted, u64)],
    rows: usize,
) -> Result<Vec<(Counted, Range<usize>)>, Malformed> {
    let mut row = 0;
    let mut made = Vec::new();
    for (counted, budget) in limits.iter().filter(|(counted, _)| !counted.claimed()) {
        let bits = (u64::BITS - budget.leading_zeros()) as usize;
        made.push((*counted, row..row + bits));
        row += bits;
    }
    if row > rows {
        return Err(Malformed(format!(
            "{rows} rows are too few to balance {row} bits of budgets"
        )));
    }
    Ok(made)
}

/// The powers of two that fill the counts of one shared column, on some of the rows.
fn weights(count: &Count, slack: &[(Counted, Range<usize>)], span: &Range<usize>) -> Vec<F> {
    let mut column = vec![F::ZERO; span.len()];
    for (counted, digit) in digits(count) {
        for (_, rows) in slack.iter().filter(|(known, _)| known == counted) {
            for (bit, row) in rows.clone().enumerate() {
                if span.contains(&row) {
                    column[row - span.start] = digit * F::from_u64(1 << bit);
                }
            }
        }
    }
    column
}

/// What is counted in a shared column, with the power of [`BASE`] it is counted in.
fn digits(count: &Count) -> impl Iterator<Item = (&Counted, F)> {
    let power = |at: usize| F::from_u64(BASE).exp_u64(at as u64);
    count
        .counted
        .iter()
        .enumerate()
        .map(move |(at, counted)| (counted, power(at)))
}
