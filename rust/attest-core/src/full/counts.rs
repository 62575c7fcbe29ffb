//! Counts against budgets.
//!
//! Every count must come out at its budget exactly. Where claiming too much only hurts the prover
//! (violating rows, severe rows, violating windows, switches and blocks) it claims until the budget is spent; where flags
//! are exact (rows in transition, segment starts) slack is added in powers of two on scheduled rows,
//! from one column of flags. Either way the proof says nothing of the true count. Several counts
//! share a column, in digits of base [`BASE`], which no count can overflow.

use p3_field::{Dup, PrimeCharacteristicRing};

use super::columns::{Column, Columns, F, Rows, Schedule};
use super::layout::Layout;
use super::statement::Statement;

/// The base in which counts share a column.
pub const BASE: u64 = 1 << 21;

/// The most rows of a batch: a count and its slack, less than three times as many, stay below
/// [`BASE`], and three counts below the field's order.
pub const MOST_ROWS: usize = 1 << 19;

const _: () = assert!(3 * MOST_ROWS as u64 <= BASE && SHARING as u32 * BASE.ilog2() < 64);

const SHARING: usize = 3;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Rows that violate.
    Violating,
    /// Rows that are severe.
    Severe,
    /// Windows of a rule that violate.
    Window(usize),
    /// Switches of a rule that are out of band.
    Switch(usize),
    /// Blocks of a spectrum that violate.
    Block(usize),
    /// Segments.
    Segments,
    /// Rows on which a coupling is in transition or beside a running standby pump.
    Unsteady(usize),
}

impl Counted {
    /// Whether the prover may claim more than there is.
    #[must_use]
    pub fn claimed(self) -> bool {
        !matches!(self, Self::Segments | Self::Unsteady(_))
    }
}

/// The counts that share a column.
#[derive(Debug)]
pub struct Count {
    /// What is counted, the lowest digit first.
    pub counted: Vec<Counted>,
    /// The sum over the rows before this one.
    pub so_far: Column,
    slack: Option<usize>,
}

/// Every count.
#[derive(Debug)]
pub struct Counts {
    /// By shared column.
    pub counts: Vec<Count>,
    slack: Option<Column>,
    last: usize,
}

impl Counts {
    /// Hand out the columns.
    pub fn new(statement: &Statement, columns: &mut Columns) -> Self {
        let mut claimed = vec![Counted::Violating];
        if statement.severe {
            claimed.push(Counted::Severe);
        }
        claimed.extend((0..statement.windows.len()).map(Counted::Window));
        claimed.extend((0..statement.switches.len()).map(Counted::Switch));
        claimed.extend((0..statement.spectra.len()).map(Counted::Block));
        let mut exact: Vec<_> = (0..statement.couplings.len())
            .map(Counted::Unsteady)
            .collect();
        if statement.jumps {
            exact.push(Counted::Segments);
        }
        let slack = (!exact.is_empty()).then(|| columns.flag());
        let mut counts = Vec::new();
        for counted in claimed.chunks(SHARING).chain(exact.chunks(SHARING)) {
            let filled = !counted[0].claimed();
            let index = counts.len();
            counts.push(Count {
                counted: counted.to_vec(),
                so_far: columns.cell(),
                slack: filled.then(|| columns.schedule(Schedule::Slack(index))),
            });
        }
        Self {
            counts,
            slack,
            last: columns.schedule(Schedule::Last),
        }
    }

    /// Nothing is counted before the first row.
    pub fn first<R: Rows>(&self, rows: &mut R) {
        for count in &self.counts {
            rows.define(count.so_far, R::Value::ZERO);
        }
    }

    /// What the row adds to each count.
    pub fn added<R: Rows>(&self, layout: &Layout, rows: &R) -> Vec<R::Value> {
        let channels = &layout.channels;
        let unsteady = layout.couplings.unsteady(channels, rows);
        let windows: Vec<Column> = layout.windows.violating().collect();
        let switches: Vec<Column> = layout.switches.violating().collect();
        let blocks: Vec<(Column, usize)> = layout.spectra.marks().collect();
        let flag = |counted: &Counted| match counted {
            Counted::Violating => rows.here(channels.violating),
            Counted::Severe => rows.here(channels.severe.expect("counted where it can be")),
            Counted::Window(index) => rows.here(windows[*index]),
            Counted::Switch(index) => rows.here(switches[*index]),
            Counted::Block(index) => {
                let (violating, end) = blocks[*index];
                rows.here(violating) * rows.public(end)
            }
            Counted::Segments => rows.here(channels.start.expect("counted where it can be")),
            Counted::Unsteady(index) => unsteady[*index].dup(),
        };
        let sum = |count: &Count| {
            let mut digit = F::ONE;
            let mut sum = R::Value::ZERO;
            for counted in &count.counted {
                sum += flag(counted) * digit;
                digit *= F::from_u64(BASE);
            }
            if let (Some(schedule), Some(slack)) = (count.slack, self.slack) {
                sum += rows.public(schedule) * rows.here(slack);
            }
            sum
        };
        self.counts.iter().map(sum).collect()
    }

    /// The row is counted, and on the batch's last row every count is its budget.
    pub fn judge<R: Rows>(&self, added: Vec<R::Value>, rows: &mut R, budgets: &[F]) {
        let last = rows.public(self.last);
        for ((count, added), budget) in self.counts.iter().zip(added).zip(budgets) {
            let total = rows.here(count.so_far) + added;
            rows.lead(count.so_far, total.dup());
            rows.zero(last.dup() * (total - *budget));
        }
    }

    /// The public column in which the slack of a count is weighted.
    #[must_use]
    pub fn slack_weights(&self, counted: Counted) -> Option<usize> {
        self.counts
            .iter()
            .find(|count| count.counted.contains(&counted))?
            .slack
    }

    /// The column of flags that add slack.
    #[must_use]
    pub fn slack(&self) -> Option<Column> {
        self.slack
    }
}
