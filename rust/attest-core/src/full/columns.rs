//! Columns as they are handed out, and what a gadget may do with them.
//!
//! Every gadget is written once, against [`Rows`], and read three times: as constraints, as the
//! witness that satisfies them, and as a probe that asks whether a row could satisfy them.

use p3_field::{Algebra, PrimeCharacteristicRing};
use p3_goldilocks::Goldilocks;

use super::ladder::{Digit, Ladder, RADIX};

/// The field of the circuit.
pub type F = Goldilocks;

/// A column of the trace.
pub type Column = usize;

/// A public column, known to both sides from the number of rows alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// One on the rows of the batch, zero on the padding.
    Real,
    /// One where the next row is one of the batch.
    Coming,
    /// One on the batch's last row.
    Last,
    /// One where a window of so many rows begins, in either chain.
    Boundary(u64),
    /// One where a window of so many rows is judged.
    Anchor(u64),
    /// One where it is judged on the next row.
    AnchorComing(u64),
    /// One where the next row begins a block of liveness, of so many rows.
    Fresh(u64),
    /// One on the last row of such a block.
    End(u64),
    /// One on the last row of a block of a spectrum: so many rows, from a row on. What lies before
    /// the first block ends like one.
    BlockEnd(u64, u64),
    /// Powers of two, each on a row of its own, that fill a count up to its budget.
    Slack(usize),
    /// The weight of a row in a statistic of so many lags: a trapezoid over the rows that end a
    /// whole window.
    Weight(usize),
}

/// Which of two neighbouring rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// The row that is judged.
    Here,
    /// The row before it.
    Before,
}

/// Which of two values is worth keeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extreme {
    /// The larger one.
    Largest,
    /// The smaller one.
    Least,
}

/// The columns handed out so far.
#[derive(Debug, Default)]
pub struct Columns {
    /// How many columns there are.
    pub width: usize,
    /// The columns that hold digits; a flag is a digit of radix two.
    pub digits: Vec<Digit>,
    /// The digits that are summed.
    pub ladders: Vec<Ladder>,
    /// The public columns.
    pub schedules: Vec<Schedule>,
}

impl Columns {
    /// Hand out a column for any field element.
    pub fn cell(&mut self) -> Column {
        self.width += 1;
        self.width - 1
    }

    /// Hand out a column for one of so many small values.
    pub fn digit(&mut self, radix: u64) -> Column {
        let column = self.cell();
        self.digits.push(Digit {
            column,
            weight: 1,
            radix,
        });
        column
    }

    /// Hand out a column for zero or one.
    pub fn flag(&mut self) -> Column {
        self.digit(2)
    }

    /// Hand out the columns of a ladder.
    pub fn ladder(&mut self, reach: u64, beyond: u64) -> Ladder {
        let ladder = Ladder::new(self.width, reach, beyond);
        self.width += ladder.width();
        self.digits.extend(ladder.digits());
        self.ladders.push(ladder.clone());
        ladder
    }

    /// Hand out digits of the largest radix, whose weights differ from row to row; most often they
    /// are these.
    pub fn shared(&mut self, weights: &[u64]) -> Vec<Column> {
        let columns: Vec<Column> = weights.iter().map(|_| self.digit(RADIX)).collect();
        self.ladders.extend(Ladder::weighing(&columns, weights));
        columns
    }

    /// Name a public column, once.
    pub fn schedule(&mut self, schedule: Schedule) -> usize {
        if let Some(found) = self.schedules.iter().position(|known| *known == schedule) {
            return found;
        }
        self.schedules.push(schedule);
        self.schedules.len() - 1
    }
}

/// Two neighbouring rows, or one, as a gadget sees them.
pub trait Rows {
    /// What a cell holds: a field element, a packed one, or a formula.
    type Value: Algebra<F>;

    /// What a cell holds.
    fn cell(&self, row: Row, column: Column) -> Self::Value;

    /// What a register holds.
    fn register(&self, row: Row, index: usize) -> Self::Value;

    /// A public column on this row; where two rows are looked at, on the row before.
    fn public(&self, schedule: usize) -> Self::Value;

    /// The row's cell holds this value, and nothing else.
    fn define(&mut self, column: Column, value: Self::Value) -> Self::Value;

    /// The next row's cell holds this value; the last row has none.
    fn lead(&mut self, column: Column, value: Self::Value);

    /// The value is zero.
    fn zero(&mut self, value: Self::Value);

    /// `any` is one where the value is not zero, and zero where it is; `inverse` shows it.
    fn nonzero(&mut self, value: Self::Value, any: Column, inverse: Column);

    /// The cell holds one of two values: the larger one, if the prover cares, or the smaller.
    fn capture(&mut self, column: Column, values: [Self::Value; 2], extreme: Extreme);

    /// The value lies on the ladder; beyond its base only where the row is flagged.
    fn within(&mut self, ladder: &Ladder, value: Self::Value);

    /// The value is the sum of digits of the largest radix at these weights.
    fn spread(&mut self, digits: &[Column], weights: Vec<Self::Value>, value: Self::Value);

    /// The judged row's cell.
    fn here(&self, column: Column) -> Self::Value {
        self.cell(Row::Here, column)
    }
}

/// A constant of the field.
pub fn constant<V: Algebra<F>>(value: i128) -> V {
    V::from(element(value))
}

/// An integer below half the field's order, as an element.
pub fn element(value: i128) -> F {
    let size = u64::try_from(value.unsigned_abs()).expect("an integer that was checked");
    let size = F::from_u64(size);
    if value < 0 { -size } else { size }
}

/// One less a value.
pub fn not<V: PrimeCharacteristicRing>(value: V) -> V {
    V::ONE - value
}
