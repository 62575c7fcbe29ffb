//! The trace: rows filled by the same gadgets that constrain them.

use p3_field::{Field, PrimeCharacteristicRing, PrimeField64};
use p3_matrix::dense::RowMajorMatrix;

use super::channels::Actuator;
use super::columns::{Column, Extreme, F, Row, Rows, element};
use super::counts::Counted;
use super::digest::CHAIN;
use super::ladder::Ladder;
use super::layout::Layout;
use super::public::Public;
use super::{Malformed, ORDER, Refused};

/// A batch as the circuit sees it: registers and code indices row by row.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// How many rows.
    pub rows: usize,
    /// Registers, row after row.
    pub registers: &'a [u16],
    /// Indices of codes, row after row.
    pub codes: &'a [u8],
    /// One where a segment starts.
    pub starts: &'a [u8],
    /// One where the row violates for a reason outside the circuit, as a missing reading is.
    pub flagged: &'a [u8],
}

impl Batch<'_> {
    /// Check that the parts are those of so many rows of this layout.
    ///
    /// # Errors
    /// [`Malformed`] says which part is not.
    pub fn check(&self, layout: &Layout) -> Result<(), Malformed> {
        let channels = &layout.channels;
        let parts = [
            ("registers", self.registers.len(), channels.registers.len()),
            ("codes", self.codes.len(), channels.actuators.len()),
            ("starts", self.starts.len(), 1),
            ("flags", self.flagged.len(), 1),
        ];
        for (part, got, each) in parts {
            let expected = self.rows * each;
            if got != expected {
                return Err(Malformed(format!(
                    "{got} {part}; {} rows have {expected}",
                    self.rows
                )));
            }
        }
        let radices: Vec<u64> = channels.actuators.iter().map(Actuator::radix).collect();
        let known = |(code, radix): (&u8, &u64)| u64::from(*code) < *radix;
        if !self.codes.iter().zip(radices.iter().cycle()).all(known) {
            return Err(Malformed("a code has no index".into()));
        }
        if self.starts.first() != Some(&1) {
            return Err(Malformed("the first row starts a segment".into()));
        }
        Ok(())
    }

    /// Check that there is a commitment to it: no time jump where the policy lets a batch hold none,
    /// and no register beyond the limits that no row may break.
    ///
    /// # Errors
    /// [`Refused`] says what no row of this layout can show.
    pub fn fits(&self, layout: &Layout) -> Result<(), Refused> {
        let channels = &layout.channels;
        if channels.start.is_none() && self.starts.iter().skip(1).any(|start| *start != 0) {
            return Err(Refused("the policy lets a batch hold no time jump".into()));
        }
        let registers = &channels.registers;
        for (row, held) in self.registers.chunks(registers.len().max(1)).enumerate() {
            for (index, (value, register)) in held.iter().zip(registers).enumerate() {
                let above = u64::from(*value).checked_sub(register.low);
                if above.is_none_or(|above| above > register.ladder.reach) {
                    return Err(Refused(format!(
                        "register {index} is out of bounds on row {row}"
                    )));
                }
            }
        }
        Ok(())
    }
}

/// A cell that is to be filled with something else, to see whether anyone notices.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// The row.
    pub row: usize,
    /// The column.
    pub column: Column,
    /// What it holds instead.
    pub value: F,
}

/// How a trace is filled.
#[derive(Debug, Clone, Copy, Default)]
pub struct Manner {
    /// Cells that are to be wrong; what depends on them follows them.
    pub faults: [Option<Fault>; 2],
    /// Whether to go on, with flags and digits as good as they get, where a batch does not satisfy
    /// the statement: what a prover that lies would do.
    pub forced: bool,
}

/// A trace as it is filled.
#[derive(Debug)]
pub struct Trace<'a> {
    layout: &'a Layout,
    public: &'a Public,
    /// Row after row.
    pub cells: Vec<F>,
    manner: Manner,
}

impl<'a> Trace<'a> {
    /// Fill a trace, if the batch satisfies the statement.
    ///
    /// # Errors
    /// [`Refused`] says what does not hold.
    pub fn fill(
        layout: &'a Layout,
        public: &'a Public,
        batch: &Batch,
        salt: [F; CHAIN],
        manner: Manner,
    ) -> Result<Self, Refused> {
        let cells = F::zero_vec(layout.width * public.height);
        let mut trace = Self {
            layout,
            public,
            cells,
            manner,
        };
        let fatal = |refused: Result<(), Refused>| if manner.forced { Ok(()) } else { refused };
        fatal(batch.fits(layout))?;
        for row in 0..public.height {
            trace.write_channels(row, row, batch);
            trace.carry(row);
        }
        for row in 0..public.rows {
            fatal(trace.flag(row, batch))?;
            fatal(trace.check_blocks(row))?;
        }
        fatal(trace.claim())?;
        fatal(trace.balance())?;
        for (column, value) in layout.digest.chain.into_iter().zip(salt) {
            trace.write(0, column, value);
        }
        for row in 0..public.height {
            trace.complete(row);
        }
        Ok(trace)
    }

    /// The trace as a matrix.
    #[must_use]
    pub fn matrix(self) -> RowMajorMatrix<F> {
        RowMajorMatrix::new(self.cells, self.layout.width)
    }

    /// Write what the row shows; padding repeats the last row.
    fn write_channels(&mut self, row: usize, source: usize, batch: &Batch) {
        let channels = &self.layout.channels;
        let padding = source >= batch.rows;
        let source = source.min(batch.rows - 1);
        let held = &batch.registers[source * channels.registers.len()..];
        for (register, value) in channels.registers.iter().zip(held) {
            self.split(
                row,
                &register.ladder,
                F::from_u64(u64::from(*value)) - F::from_u64(register.low),
                false,
            );
        }
        let shown = &batch.codes[source * channels.actuators.len()..];
        for (actuator, code) in channels.actuators.iter().zip(shown) {
            match actuator {
                Actuator::Index(column, _) => self.write(row, *column, F::from_u8(*code)),
                Actuator::Flags(flags) => {
                    for (index, column) in flags.iter().enumerate() {
                        let shows = index == usize::from(*code);
                        self.write(row, *column, F::from_bool(shows));
                    }
                }
            }
        }
        if let Some(start) = channels.start {
            let starts = !padding && batch.starts[source] != 0;
            self.write(row, start, F::from_bool(starts));
        }
    }

    /// Carry over what the row takes from the one before.
    fn carry(&mut self, row: usize) {
        let layout = self.layout;
        let mut filling = Filling {
            trace: self,
            row,
            stepping: row > 0,
        };
        if row == 0 {
            layout.first(&mut filling);
        } else {
            layout.step(&mut filling);
        }
        filling.stepping = false;
        layout.local(&mut filling);
    }

    /// Flag the row as far as it needs.
    fn flag(&mut self, row: usize, batch: &Batch) -> Result<(), Refused> {
        let layout = self.layout;
        let violating: Vec<Column> = layout.windows.violating().collect();
        for (index, column) in violating.into_iter().enumerate() {
            let holds = self.probe(row, false, |rows| layout.windows.ask(index, rows));
            self.write(row, column, F::from_bool(!holds));
        }
        let starts = batch.starts[row] != 0;
        let told = starts || batch.flagged[row] != 0;
        self.write(row, layout.channels.violating, F::from_bool(told));
        if let Some(severe) = layout.channels.severe {
            self.write(row, severe, F::ZERO);
        }
        if self.holds(row) {
            return Ok(());
        }
        self.write(row, layout.channels.violating, F::ONE);
        if self.holds(row) {
            return Ok(());
        }
        if let Some(severe) = layout.channels.severe {
            self.write(row, severe, F::ONE);
            if self.holds(row) {
                return Ok(());
            }
            self.write(row, severe, F::ZERO);
        }
        Err(Refused(format!(
            "no flag makes up for what row {row} shows"
        )))
    }

    fn check_blocks(&mut self, row: usize) -> Result<(), Refused> {
        let layout = self.layout;
        if self.probe(row, false, |rows| layout.judge_blocks(rows)) {
            return Ok(());
        }
        Err(Refused(format!(
            "a level stands still in the block that ends on row {row}"
        )))
    }

    fn holds(&mut self, row: usize) -> bool {
        let layout = self.layout;
        self.probe(row, false, |rows| layout.judge_row(rows))
            && (row == 0 || self.probe(row, true, |rows| layout.judge_step(rows)))
    }

    fn probe(&mut self, row: usize, stepping: bool, judge: impl FnOnce(&mut Probe)) -> bool {
        let mut probe = Probe {
            trace: self,
            row,
            stepping,
            holds: true,
        };
        judge(&mut probe);
        probe.holds
    }

    /// Claim violations until their budgets are spent.
    fn claim(&mut self) -> Result<(), Refused> {
        let channels = &self.layout.channels;
        let rows = 0..self.public.rows;
        self.spend(
            Counted::Violating,
            channels.violating,
            rows.clone().rev().collect(),
        )?;
        if let Some(severe) = channels.severe {
            let flagged = |row: &usize| self.cell(*row, channels.violating) == F::ONE;
            let candidates = rows.clone().filter(flagged).collect();
            self.spend(Counted::Severe, severe, candidates)?;
        }
        let windows: Vec<Column> = self.layout.windows.violating().collect();
        for (index, column) in windows.into_iter().enumerate() {
            let anchors = self.layout.windows.anchors(index);
            let ends = |row: &usize| self.public.schedules[anchors][*row] == F::ONE;
            self.spend(
                Counted::Window(index),
                column,
                rows.clone().filter(ends).collect(),
            )?;
        }
        Ok(())
    }

    fn spend(
        &mut self,
        counted: Counted,
        column: Column,
        candidates: Vec<usize>,
    ) -> Result<(), Refused> {
        let budget = self.public.budget(counted);
        let claimed: F = (0..self.public.rows)
            .map(|row| self.cell(row, column))
            .sum();
        let claimed = claimed.as_canonical_u64();
        let mut left = budget.checked_sub(claimed).ok_or_else(|| {
            Refused(format!(
                "{counted:?}: {claimed} exceed a budget of {budget}"
            ))
        })?;
        for row in candidates {
            if left > 0 && self.cell(row, column) == F::ZERO {
                self.write(row, column, F::ONE);
                left -= 1;
            }
        }
        Ok(())
    }

    /// Add slack to the counts that are exact.
    fn balance(&mut self) -> Result<(), Refused> {
        let public = self.public;
        let Some(column) = self.layout.counts.slack() else {
            return Ok(());
        };
        for (counted, rows) in &public.slack {
            let count = self.count(*counted);
            let budget = public.budget(*counted);
            let slack = budget.checked_sub(count).ok_or_else(|| {
                Refused(format!("{counted:?}: {count} exceed a budget of {budget}"))
            })?;
            for (bit, row) in rows.clone().enumerate() {
                self.write(row, column, F::from_bool(slack >> bit & 1 == 1));
            }
        }
        Ok(())
    }

    fn count(&mut self, counted: Counted) -> u64 {
        let layout = self.layout;
        let flag = |row: usize, trace: &mut Self| match counted {
            Counted::Unsteady(index) => {
                let probe = Probe {
                    trace,
                    row,
                    stepping: false,
                    holds: true,
                };
                layout.couplings.unsteady(&layout.channels, &probe)[index]
            }
            _ => trace.cell(row, layout.channels.start.expect("counted where it can be")),
        };
        (0..self.public.rows)
            .map(|row| flag(row, self))
            .sum::<F>()
            .as_canonical_u64()
    }

    /// Fill what is left: digits, counts, digest.
    fn complete(&mut self, row: usize) {
        let layout = self.layout;
        let totals = &self.public.totals;
        if row > 0 {
            layout.judge_step(&mut Filling {
                trace: self,
                row,
                stepping: true,
            });
        }
        let mut filling = Filling {
            trace: self,
            row,
            stepping: false,
        };
        layout.judge_row(&mut filling);
        layout.judge_blocks(&mut filling);
        layout.judge_batch(&mut filling, totals, [F::ZERO; CHAIN]);
    }

    fn cell(&self, row: usize, column: Column) -> F {
        self.cells[row * self.layout.width + column]
    }

    fn write(&mut self, row: usize, column: Column, value: F) {
        let faults = self.manner.faults.into_iter().flatten();
        let mut here = faults.filter(|fault| (fault.row, fault.column) == (row, column));
        let value = here.next().map_or(value, |fault| fault.value);
        self.cells[row * self.layout.width + column] = value;
    }

    /// Write a value's digits; one that is out of range only comes up where the prover lies.
    fn split(&mut self, row: usize, ladder: &Ladder, value: F, flagged: bool) {
        let digits = match ladder.split(value.as_canonical_u64(), flagged) {
            Some(digits) => digits.into_iter().map(F::from_u64).collect(),
            None => ladder
                .stuff(signed(value))
                .into_iter()
                .map(element)
                .collect::<Vec<F>>(),
        };
        for (digit, value) in ladder.digits().zip(digits) {
            self.write(row, digit.column, value);
        }
    }

    fn register(&self, row: usize, index: usize) -> F {
        let register = &self.layout.channels.registers[index];
        let low = F::from_u64(register.low);
        register.ladder.digits().fold(low, |sum, digit| {
            sum + self.cell(row, digit.column) * F::from_u64(digit.weight)
        })
    }

    fn flagged(&self, row: usize) -> bool {
        self.cell(row, self.layout.channels.violating) == F::ONE
    }
}

/// The integer of least size that an element stands for.
fn signed(value: F) -> i128 {
    let value = value.as_canonical_u64();
    let wrapped = if value > ORDER / 2 { ORDER } else { 0 };
    i128::from(value) - i128::from(wrapped)
}

/// A row of a trace as it is filled, with the row before where `stepping`.
struct Filling<'a, 'b> {
    trace: &'a mut Trace<'b>,
    row: usize,
    stepping: bool,
}

/// A row of a trace as it is asked whether it satisfies the circuit.
struct Probe<'a, 'b> {
    trace: &'a Trace<'b>,
    row: usize,
    stepping: bool,
    holds: bool,
}

macro_rules! read_rows {
    () => {
        type Value = F;

        fn cell(&self, row: Row, column: Column) -> F {
            self.trace
                .cell(self.row - usize::from(row == Row::Before), column)
        }

        fn register(&self, row: Row, index: usize) -> F {
            self.trace
                .register(self.row - usize::from(row == Row::Before), index)
        }

        fn public(&self, schedule: usize) -> F {
            self.trace.public.schedules[schedule][self.row - usize::from(self.stepping)]
        }
    };
}

impl Rows for Filling<'_, '_> {
    read_rows!();

    fn define(&mut self, column: Column, value: F) -> F {
        self.trace.write(self.row, column, value);
        self.trace.cell(self.row, column)
    }

    fn lead(&mut self, column: Column, value: F) {
        if self.row + 1 < self.trace.public.height {
            self.trace.write(self.row + 1, column, value);
        }
    }

    fn zero(&mut self, _value: F) {}

    fn nonzero(&mut self, value: F, any: Column, inverse: Column) {
        let _ = self.define(any, F::from_bool(value != F::ZERO));
        let _ = self.define(inverse, value.try_inverse().unwrap_or(F::ZERO));
    }

    fn capture(&mut self, column: Column, values: [F; 2], extreme: Extreme) {
        let [one, other] = values;
        let one_is_larger = one.as_canonical_u64() > other.as_canonical_u64();
        let take_one = one_is_larger == (extreme == Extreme::Largest);
        let _ = self.define(column, if take_one { one } else { other });
    }

    fn within(&mut self, ladder: &Ladder, value: F) {
        let flagged = self.trace.flagged(self.row);
        self.trace.split(self.row, ladder, value, flagged);
    }
}

impl Rows for Probe<'_, '_> {
    read_rows!();

    fn define(&mut self, column: Column, _value: F) -> F {
        self.here(column)
    }

    fn lead(&mut self, _column: Column, _value: F) {}

    fn zero(&mut self, value: F) {
        self.holds &= value == F::ZERO;
    }

    fn nonzero(&mut self, _value: F, _any: Column, _inverse: Column) {}

    fn capture(&mut self, _column: Column, _values: [F; 2], _extreme: Extreme) {}

    fn within(&mut self, ladder: &Ladder, value: F) {
        let flagged = self.trace.flagged(self.row);
        self.holds &= ladder.split(value.as_canonical_u64(), flagged).is_some();
    }
}

/// The chaining value after every row of a batch: what the commitment is made of, where the batch
/// fits.
pub fn digest(layout: &Layout, batch: &Batch, salt: [F; CHAIN]) -> [F; CHAIN] {
    let public = Public::unbudgeted(layout, 1);
    let manner = Manner::default();
    let mut trace = Trace {
        layout,
        public: &public,
        cells: F::zero_vec(layout.width),
        manner,
    };
    (0..batch.rows).fold(salt, |chain, row| {
        trace.write_channels(0, row, batch);
        for (column, value) in layout.digest.chain.into_iter().zip(chain) {
            trace.write(0, column, value);
        }
        let mut filling = Filling {
            trace: &mut trace,
            row: 0,
            stepping: false,
        };
        layout.digest.absorb(&layout.channels, &mut filling)
    })
}
