//! Window rules: balances summed over several rows, judged where two staggered chains end.
//!
//! Windows begin on public boundary rows, half a window apart. Two running sums, since the last
//! boundary and since the one before, are all that is carried: where a window ends, the second one
//! is its sum.
//!
//! A ladder is only needed where windows end. Where two rules' windows all end on even rows, they
//! share one: the first rule's sums stand on it on their own rows, the second's a row later. No row
//! is needed after the trace's last, for that one is odd.

use p3_field::{Dup, PrimeCharacteristicRing};

use super::channels::Channels;
use super::columns::{Column, Columns, F, Row, Rows, Schedule, not};
use super::ladder::Ladder;
use super::relations::Residual;
use super::statement::{self, Statement};

/// Something summed since the last boundary and since the one before.
#[derive(Debug)]
struct Sums {
    boundary: usize,
    since_last: Column,
    since_before: Column,
}

impl Sums {
    fn new(rows: u64, columns: &mut Columns) -> Self {
        Self {
            boundary: columns.schedule(Schedule::Boundary(rows)),
            since_last: columns.cell(),
            since_before: columns.cell(),
        }
    }

    fn first<R: Rows>(&self, rows: &mut R) {
        rows.define(self.since_last, R::Value::ZERO);
        rows.define(self.since_before, R::Value::ZERO);
    }

    fn step<R: Rows>(&self, rows: &mut R, added: R::Value) {
        let boundary = rows.public(self.boundary);
        let last = rows.cell(Row::Before, self.since_last);
        let before = rows.cell(Row::Before, self.since_before);
        let kept = not(boundary.dup());
        rows.define(self.since_last, kept.dup() * last.dup() + added.dup());
        rows.define(self.since_before, boundary * last + kept * before + added);
    }
}

/// A window rule and where its parts stand.
#[derive(Debug)]
struct Window {
    residual: Residual,
    rows: u64,
    anchor: usize,
    sums: Sums,
    jumps: Option<usize>,
    violating: Column,
}

impl Window {
    /// The sum of the window that ends on a row, where it ends and is not counted as violating.
    fn sum<R: Rows>(&self, rows: &R, row: Row, anchor: R::Value) -> R::Value {
        let judged = anchor * not(rows.cell(row, self.violating));
        judged * rows.cell(row, self.sums.since_before)
    }
}

/// What stands on a ladder: one rule's sums, or two rules' in turn.
#[derive(Debug)]
enum Judged {
    Alone(usize),
    Sharing {
        own_row: usize,
        coming: usize,
        row_later: usize,
    },
}

/// Every window rule, and how often a segment started within the windows of each length.
#[derive(Debug)]
pub struct Windows {
    windows: Vec<Window>,
    jumps: Vec<(u64, Sums)>,
    ladders: Vec<(Judged, u64, Ladder)>,
}

impl Windows {
    /// Hand out the columns.
    pub fn new(statement: &Statement, columns: &mut Columns) -> Self {
        let mut made = Self {
            windows: Vec::new(),
            jumps: Vec::new(),
            ladders: Vec::new(),
        };
        for rule in &statement.windows {
            let window = Window {
                residual: Residual(rule.residual.clone()),
                rows: rule.rows,
                anchor: columns.schedule(Schedule::Anchor(rule.rows)),
                sums: Sums::new(rule.rows, columns),
                jumps: statement.jumps.then(|| made.jumps(rule.rows, columns)),
                violating: columns.flag(),
            };
            made.windows.push(window);
        }
        for judged in pairs(&statement.windows) {
            let (judged, usual) = match judged {
                (index, None) => (Judged::Alone(index), statement.windows[index].usual),
                (own_row, Some(row_later)) => {
                    let rule = &statement.windows[own_row];
                    let coming = columns.schedule(Schedule::AnchorComing(rule.rows));
                    (
                        Judged::Sharing {
                            own_row,
                            coming,
                            row_later,
                        },
                        rule.usual,
                    )
                }
            };
            made.ladders
                .push((judged, usual, columns.ladder(2 * usual, 0)));
        }
        made
    }

    fn jumps(&mut self, rows: u64, columns: &mut Columns) -> usize {
        let known = self.jumps.iter().position(|(length, _)| *length == rows);
        known.unwrap_or_else(|| {
            self.jumps.push((rows, Sums::new(rows, columns)));
            self.jumps.len() - 1
        })
    }

    /// Nothing is summed yet.
    pub fn first<R: Rows>(&self, rows: &mut R) {
        self.windows
            .iter()
            .for_each(|window| window.sums.first(rows));
        self.jumps.iter().for_each(|(_, sums)| sums.first(rows));
    }

    /// The row's own residual is added to either sum.
    pub fn step<R: Rows>(&self, channels: &Channels, rows: &mut R) {
        for window in &self.windows {
            let added = window.residual.value(channels, rows);
            window.sums.step(rows, added);
        }
        for (_, sums) in &self.jumps {
            let start = channels
                .start
                .expect("time jumps are counted where there can be any");
            sums.step(rows, rows.here(start));
        }
    }

    /// Only a window that ends can be counted as violating, and one in which a segment started must
    /// be; the sums that have a ladder of their own are within tolerance or counted.
    pub fn judge<R: Rows>(&self, rows: &mut R) {
        self.windows
            .iter()
            .for_each(|window| self.judge_flag(window, rows));
        for (judged, usual, ladder) in &self.ladders {
            if let Judged::Alone(index) = judged {
                let window = &self.windows[*index];
                let sum = window.sum(rows, Row::Here, rows.public(window.anchor));
                rows.within(ladder, sum + F::from_u64(*usual));
            }
        }
    }

    /// The sums that share a ladder are within tolerance or counted.
    pub fn judge_step<R: Rows>(&self, rows: &mut R) {
        for (judged, usual, ladder) in &self.ladders {
            if let Judged::Sharing {
                own_row,
                coming,
                row_later,
            } = judged
            {
                let own = self.windows[*own_row].sum(rows, Row::Here, rows.public(*coming));
                let later = &self.windows[*row_later];
                let later = later.sum(rows, Row::Before, rows.public(later.anchor));
                rows.within(ladder, own + later + F::from_u64(*usual));
            }
        }
    }

    fn judge_flag<R: Rows>(&self, window: &Window, rows: &mut R) {
        let anchor = rows.public(window.anchor);
        let violating = rows.here(window.violating);
        rows.zero(violating.dup() * not(anchor.dup()));
        if let Some(jumps) = window.jumps {
            let (_, sums) = &self.jumps[jumps];
            rows.zero(anchor * not(violating) * rows.here(sums.since_before));
        }
    }

    /// Whether one rule's window holds, asked on the row where it ends.
    pub fn ask<R: Rows>(&self, index: usize, rows: &mut R) {
        let window = &self.windows[index];
        self.judge_flag(window, rows);
        let on = |judged: &Judged| match judged {
            Judged::Alone(alone) => *alone == index,
            Judged::Sharing {
                own_row, row_later, ..
            } => *own_row == index || *row_later == index,
        };
        for (_, usual, ladder) in self.ladders.iter().filter(|(judged, ..)| on(judged)) {
            let sum = window.sum(rows, Row::Here, rows.public(window.anchor));
            rows.within(ladder, sum + F::from_u64(*usual));
        }
    }

    /// Whether a column belongs to a sum over two rows, which no constraint reads on the first.
    #[must_use]
    pub fn reads_two_rows(&self, column: Column) -> bool {
        let sharing = |judged: &Judged| matches!(judged, Judged::Sharing { .. });
        let ladders = self.ladders.iter().filter(|(judged, ..)| sharing(judged));
        ladders
            .flat_map(|(.., ladder)| ladder.digits())
            .any(|digit| digit.column == column)
    }

    /// The columns in which a rule's violating windows are marked.
    pub fn violating(&self) -> impl Iterator<Item = Column> {
        self.windows.iter().map(|window| window.violating)
    }

    /// The public column that is one where a rule's windows end.
    #[must_use]
    pub fn anchors(&self, index: usize) -> usize {
        self.windows[index].anchor
    }

    /// The length of each rule's windows.
    #[must_use]
    pub fn lengths(&self) -> Vec<u64> {
        self.windows.iter().map(|window| window.rows).collect()
    }
}

/// Which rules share a ladder: those of one tolerance whose windows all end on even rows, by twos.
fn pairs(rules: &[statement::Window]) -> Vec<(usize, Option<usize>)> {
    let even = |index: usize| rules[index].rows.is_multiple_of(4);
    let mut made: Vec<(usize, Option<usize>)> = Vec::new();
    for index in 0..rules.len() {
        let partner = made.iter_mut().find(|(first, second)| {
            second.is_none() && even(*first) && rules[*first].usual == rules[index].usual
        });
        match partner {
            Some((_, second)) if even(index) => *second = Some(index),
            _ => made.push((index, None)),
        }
    }
    made
}
