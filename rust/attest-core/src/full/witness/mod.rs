//! The trace: rows filled by the same gadgets that constrain them.

use std::ops::Range;
use std::sync::Arc;

use p3_field::{PrimeCharacteristicRing, PrimeField64};
use p3_matrix::dense::RowMajorMatrix;

use super::channels::Actuator;
use super::columns::{Column, F, element};
use super::digest::{CHAIN, MASKS};
use super::ladder::Ladder;
use super::layout::Layout;
use super::moments::Form;
use super::public::Public;
use super::{ORDER, Refused};

mod batch;
mod bent;
mod flags;
mod marks;
mod parts;
mod rows;

pub use batch::Batch;
use marks::Marks;
use parts::Before;
pub use parts::Parts;
use rows::{Filling, Probe};

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
    /// Whether the parts of a short batch are filled twice too, as those of a long one are.
    pub refilled: bool,
}

impl Manner {
    /// What a cell is to hold where it should hold a value.
    fn of(&self, row: usize, column: Column, value: F) -> F {
        let faults = self.faults.into_iter().flatten();
        let mut here = faults.filter(|fault| (fault.row, fault.column) == (row, column));
        here.next().map_or(value, |fault| fault.value)
    }

    /// Go on where a prover that lies would.
    fn fatal(&self, refused: Result<(), Refused>) -> Result<(), Refused> {
        if self.forced { Ok(()) } else { refused }
    }
}

/// A trace as it is filled: of a whole batch, or of some of its rows. Rows are those of the batch.
#[derive(Debug)]
pub struct Trace<'a> {
    layout: &'a Layout,
    public: Arc<Public>,
    /// Row after row.
    pub cells: Vec<F>,
    manner: Manner,
    /// The rows that are not known from the part before.
    fresh: Range<usize>,
}

impl<'a> Trace<'a> {
    /// Fill a trace, if the batch satisfies the statement.
    ///
    /// # Errors
    /// [`Refused`] says what does not hold.
    pub fn fill(
        layout: &'a Layout,
        public: &Arc<Public>,
        batch: &Batch,
        salt: [F; CHAIN],
        manner: Manner,
    ) -> Result<Self, Refused> {
        manner.fatal(batch.fits(layout))?;
        let mut trace = Self::begin(layout, public.clone(), manner, Before::Salt(salt));
        let mut marks = Marks::new(layout, public, manner);
        trace.show(batch);
        trace.survey(batch, &mut marks)?;
        marks.settle(layout, public)?;
        trace.complete(batch, &marks);
        Ok(trace)
    }

    /// Begin with a part of the rows: with the first one of the batch, or after the last row of the
    /// part before, which is also the first of this one.
    fn begin(layout: &'a Layout, public: Arc<Public>, manner: Manner, before: Before) -> Self {
        let end = public.start + public.height;
        let mut trace = Self {
            layout,
            cells: F::zero_vec(layout.width * public.height),
            fresh: public.start..end,
            public,
            manner,
        };
        match before {
            Before::Salt(salt) => {
                for (column, value) in layout.digest.chain.into_iter().zip(salt) {
                    trace.write(0, column, value);
                }
            }
            Before::Row(row) => trace.enter(row),
        }
        trace
    }

    /// Take over the last row of the part before.
    fn enter(&mut self, row: &[F]) {
        self.cells[..row.len()].copy_from_slice(row);
        self.fresh.start = self.public.start + 1;
    }

    /// The last row.
    fn last(&self) -> &[F] {
        &self.cells[self.cells.len() - self.layout.width..]
    }

    /// Write what the rows show, and what each takes over from the one before.
    fn show(&mut self, batch: &Batch) {
        for row in self.fresh.clone() {
            self.write_channels(row, row, batch);
            self.carry(row);
        }
    }

    /// Flag every row as far as it needs, and note the flags.
    ///
    /// # Errors
    /// [`Refused`] says what no flag makes up for.
    fn survey(&mut self, batch: &Batch, marks: &mut Marks) -> Result<(), Refused> {
        let manner = self.manner;
        for row in self.fresh.start..self.fresh.end.min(self.public.rows) {
            manner.fatal(self.flag(row, batch))?;
            manner.fatal(self.check_blocks(row))?;
            marks.note(self, row);
        }
        Ok(())
    }

    /// Write the flags that were settled, and fill what is left: digits, counts, digest.
    fn complete(&mut self, batch: &Batch, marks: &Marks) {
        for row in self.fresh.start..self.fresh.end.min(self.public.rows) {
            for (column, value) in marks.on(row) {
                self.write(row, column, value);
            }
            if self.layout.channels.severe.is_some() {
                self.write_registers(row, row, batch);
            }
        }
        for row in self.public.start..self.fresh.end {
            self.complete_row(row);
        }
    }

    /// Fill the columns of a statistic, with the weights that were drawn for it.
    pub fn bind(&mut self, form: Option<&Form>) {
        let layout = self.layout;
        let Some((moments, form)) = layout.moments.as_ref().zip(form) else {
            return;
        };
        let unclaimed = F::zero_vec(form.0.len());
        for row in self.public.start..self.fresh.end {
            let mut filling = Filling {
                trace: self,
                row,
                stepping: false,
            };
            if row == 0 {
                moments.first(&mut filling);
                let (_, masks) = layout.digest.absorb(&layout.channels, &mut filling);
                moments.mask(&mut filling, masks);
            }
            moments.judge(&layout.channels, &mut filling, form, &unclaimed);
        }
    }

    /// What the form of a statistic comes to on the last row of the batch, which is one of these:
    /// what is claimed, or where nothing is, what the rows and the masks give.
    ///
    /// # Errors
    /// [`Refused`] where the statistic is not that of these rows.
    pub fn totals(&self, form: Option<&Form>, claimed: Option<&[F]>) -> Result<Vec<F>, Refused> {
        let layout = self.layout;
        let Some((moments, form)) = layout.moments.as_ref().zip(form) else {
            return Ok(vec![]);
        };
        let mut last = Probe {
            trace: self,
            row: self.public.rows - 1,
            stepping: false,
            holds: true,
        };
        let added = moments.added(&layout.channels, &last, form);
        let added = || added.iter().map(|(sum, _)| *sum).collect();
        let totals = claimed.map_or_else(added, <[F]>::to_vec);
        moments.judge(&layout.channels, &mut last, form, &totals);
        if !last.holds && !self.manner.forced {
            return Err(Refused("the statistic is not that of this batch".into()));
        }
        Ok(totals)
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
        if let Some(severe) = channels.severe {
            let beyond = batch.breaks_own_bound(source, channels);
            self.write(row, severe, F::from_bool(beyond));
            if padding {
                self.write(row, channels.violating, F::from_bool(beyond));
            }
        }
        self.write_registers(row, source, batch);
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

    /// Write the digits of every register: which ones depends on whether the row counts as severe.
    fn write_registers(&mut self, row: usize, source: usize, batch: &Batch) {
        let channels = &self.layout.channels;
        let held = &batch.registers[source * channels.registers.len()..];
        for (register, value) in channels.registers.iter().zip(held) {
            let value = F::from_u64(u64::from(*value));
            let severe = channels
                .severe
                .map_or(F::ZERO, |severe| self.cell(row, severe));
            match &register.bounded {
                Some((low, ladder)) if severe == F::ZERO => {
                    self.split(row, ladder, value - F::from_u64(*low), false);
                }
                Some((low, ladder)) if severe != F::ONE => {
                    let [any, least] = [register.low, *low].map(F::from_u64);
                    let above = value - least - severe * (any - least);
                    self.bend(row, [ladder, &register.ladder], severe, above);
                }
                _ => self.split(
                    row,
                    &register.ladder,
                    value - F::from_u64(register.low),
                    false,
                ),
            }
        }
    }

    /// Count a row as severe or not.
    fn set_severe(&mut self, row: usize, severe: bool, batch: &Batch) {
        if let Some(column) = self.layout.channels.severe {
            self.write(row, column, F::from_bool(severe));
            self.write_registers(row, row, batch);
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

    /// Fill what is left of a row; what leads to the next row is filled there.
    fn complete_row(&mut self, row: usize) {
        let layout = self.layout;
        let public = self.public.clone();
        if row > public.start {
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
        let _ = layout.judge_batch(&mut filling, &public.totals, [F::ZERO; CHAIN]);
    }

    fn cell(&self, row: usize, column: Column) -> F {
        self.cells[(row - self.public.start) * self.layout.width + column]
    }

    fn write(&mut self, row: usize, column: Column, value: F) {
        let at = (row - self.public.start) * self.layout.width + column;
        self.cells[at] = self.manner.of(row, column, value);
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
        let channels = &self.layout.channels;
        let register = &channels.registers[index];
        let sum = |low: u64, ladder: &Ladder| {
            ladder.digits().fold(F::from_u64(low), |sum, digit| {
                sum + self.cell(row, digit.column) * F::from_u64(digit.weight)
            })
        };
        match (&register.bounded, channels.severe) {
            (Some((low, ladder)), Some(severe)) => {
                let bounded = sum(*low, ladder);
                let any = sum(register.low, &register.ladder);
                bounded + self.cell(row, severe) * (any - bounded)
            }
            _ => sum(register.low, &register.ladder),
        }
    }

    /// Write digits that give a value where a flag is neither zero nor one, which only comes up where
    /// the prover lies; if there are none, those of the first ladder.
    fn bend(&mut self, row: usize, ladders: [&Ladder; 2], flag: F, value: F) {
        let [plain, flagged] = ladders;
        let weights = plain.digits().zip(flagged.digits()).map(|(plain, other)| {
            let [plain, other] = [plain, other].map(|digit| F::from_u64(digit.weight));
            signed(plain + flag * (other - plain))
        });
        let weights: Vec<i128> = weights.collect();
        let radices: Vec<u64> = plain.digits().map(|digit| digit.radix).collect();
        match bent::digits(&weights, &radices, signed(value)) {
            Some(digits) => {
                for (digit, held) in plain.digits().zip(digits) {
                    self.write(row, digit.column, F::from_u64(held));
                }
            }
            None => self.split(row, plain, value, false),
        }
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

/// The chaining value after every row of a batch: what the commitment is made of, where the batch
/// fits.
pub fn digest(layout: &Layout, batch: &Batch, salt: [F; CHAIN]) -> [F; CHAIN] {
    let mut trace = alone(layout);
    (0..batch.rows).fold(salt, |chain, row| absorb(&mut trace, batch, row, chain).0)
}

/// The masks of a batch's first row under a salt.
pub fn masks(layout: &Layout, batch: &Batch, salt: [F; CHAIN]) -> [F; MASKS] {
    absorb(&mut alone(layout), batch, 0, salt).1
}

/// A trace of one row.
fn alone(layout: &Layout) -> Trace<'_> {
    Trace {
        layout,
        public: Arc::new(Public::unbudgeted(layout, 1)),
        cells: F::zero_vec(layout.width),
        manner: Manner::default(),
        fresh: 0..1,
    }
}

/// Write a row of a batch into a trace of one row, and absorb it.
fn absorb(
    trace: &mut Trace,
    batch: &Batch,
    row: usize,
    chain: [F; CHAIN],
) -> ([F; CHAIN], [F; MASKS]) {
    let layout = trace.layout;
    trace.write_channels(0, row, batch);
    for (column, value) in layout.digest.chain.into_iter().zip(chain) {
        trace.write(0, column, value);
    }
    let mut filling = Filling {
        trace,
        row: 0,
        stepping: false,
    };
    layout.digest.absorb(&layout.channels, &mut filling)
}
