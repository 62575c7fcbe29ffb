//! What a row holds: registers, codes, where a segment starts, and the flags.

use p3_field::{Dup, PrimeCharacteristicRing};

use super::columns::{Column, Columns, F, Row, Rows, Schedule, not};
use super::ladder::{Dual, Ladder};
use super::statement::{self, Statement};

/// A register is nothing but its digits: there is no other column that could disagree.
#[derive(Debug)]
pub struct Register {
    /// The least value.
    pub low: u64,
    /// What lies above it.
    pub ladder: Ladder,
    /// The least value, and what lies above it, on a row that is not severe: the same digits with
    /// other weights, which reach from one end of the register's bound to the other.
    pub bounded: Option<(u64, Ladder)>,
}

impl Register {
    fn new(index: usize, statement: &Statement, columns: &mut Columns) -> Self {
        let limits = &statement.registers[index];
        let reach = limits.high - limits.low;
        if let Some(bound) = own_bound(index, statement).map(|at| &statement.bounds[at]) {
            let dual = columns.dual(bound.high - bound.low, reach);
            let dual = dual.expect("a register's own bound has digits");
            return Self {
                low: limits.low,
                ladder: dual.flagged,
                bounded: Some((bound.low, dual.plain)),
            };
        }
        Self {
            low: limits.low,
            ladder: columns.ladder(reach, 0),
            bounded: None,
        }
    }
}

/// Which bound a register's own digits keep on rows that are not severe: its first one that only a
/// severe row may break, if digits can.
#[must_use]
pub fn own_bound(register: usize, statement: &Statement) -> Option<usize> {
    let limits = &statement.registers[register];
    let own = |bound: &statement::Bound| bound.register == register && bound.severe;
    let at = statement.bounds.iter().position(own)?;
    let bound = &statement.bounds[at];
    let inside = limits.low <= bound.low && bound.high <= limits.high;
    let digits = inside
        .then(|| Dual::new(0, bound.high - bound.low, limits.high - limits.low))
        .flatten();
    (statement.severe && digits.is_some()).then_some(at)
}

/// How an actuator's code is held.
#[derive(Debug)]
pub enum Actuator {
    /// As an index of so many, the unknown code's among them: no rule reads it.
    Index(Column, u64),
    /// As one flag a code; where none is set, another code shows.
    Flags(Vec<Column>),
}

impl Actuator {
    /// One where the code shows; the index after the last known code is any other.
    pub fn shows<R: Rows>(&self, rows: &R, row: Row, code: u64) -> R::Value {
        match self {
            Self::Flags(flags) => match flags.get(usize::try_from(code).expect("a small index")) {
                Some(flag) => rows.cell(row, *flag),
                None => not(Self::known(flags, rows, row)),
            },
            Self::Index(..) => unreachable!("no rule reads this actuator"),
        }
    }

    /// The index of the code that shows.
    pub fn index<R: Rows>(&self, rows: &R, row: Row) -> R::Value {
        match self {
            Self::Index(column, _) => rows.cell(row, *column),
            Self::Flags(flags) => {
                let other = not(Self::known(flags, rows, row)) * F::from_usize(flags.len());
                flags.iter().enumerate().fold(other, |sum, (code, flag)| {
                    sum + rows.cell(row, *flag) * F::from_usize(code)
                })
            }
        }
    }

    /// How many indices there are, the unknown code's among them.
    #[must_use]
    pub fn radix(&self) -> u64 {
        match self {
            Self::Index(_, radix) => *radix,
            Self::Flags(flags) => flags.len() as u64 + 1,
        }
    }

    fn known<R: Rows>(flags: &[Column], rows: &R, row: Row) -> R::Value {
        flags.iter().map(|flag| rows.cell(row, *flag)).sum()
    }
}

/// The channels of a row and its flags.
#[derive(Debug)]
pub struct Channels {
    /// The continuous channels.
    pub registers: Vec<Register>,
    /// The channels that show codes.
    pub actuators: Vec<Actuator>,
    /// Whether a segment starts here, where the policy lets a batch hold time jumps.
    pub start: Option<Column>,
    /// Whether the row counts as violating. Claiming so where it does not is allowed.
    pub violating: Column,
    /// Whether the row counts as severe, where the policy lets a row be.
    pub severe: Option<Column>,
    /// One on the rows of the batch.
    pub real: usize,
    /// One where the next row is one of the batch.
    pub coming: usize,
    illegal: Vec<(usize, Vec<u64>)>,
    idle: Vec<statement::Idle>,
}

impl Channels {
    /// Hand out the columns.
    pub fn new(statement: &Statement, columns: &mut Columns) -> Self {
        let registers = (0..statement.registers.len())
            .map(|index| Register::new(index, statement, columns))
            .collect();
        let actuators = statement
            .actuators
            .iter()
            .map(|found| actuator(found, columns))
            .collect();
        let illegal = |(index, found): (usize, &statement::Actuator)| {
            let codes = (0..=found.codes).filter(|code| !found.legal.contains(code));
            found.read.then(|| (index, codes.collect()))
        };
        Self {
            registers,
            actuators,
            start: statement.jumps.then(|| columns.flag()),
            violating: columns.flag(),
            severe: statement.severe.then(|| columns.flag()),
            real: columns.schedule(Schedule::Real),
            coming: columns.schedule(Schedule::Coming),
            illegal: statement
                .actuators
                .iter()
                .enumerate()
                .filter_map(illegal)
                .collect(),
            idle: statement.idle.clone(),
        }
    }

    /// On the first row a segment starts, and so it violates.
    pub fn first<R: Rows>(&self, rows: &mut R) {
        rows.zero(not(rows.here(self.start.unwrap_or(self.violating))));
    }

    /// At most one code shows; rows that start a segment, show an illegal code, wake an idle
    /// actuator or are severe violate.
    pub fn local<R: Rows>(&self, rows: &mut R) {
        for actuator in &self.actuators {
            if let Actuator::Flags(flags) = actuator {
                let known = Actuator::known(flags, rows, Row::Here);
                rows.zero(known.bool_check());
            }
        }
        let silent = rows.public(self.real) * not(rows.here(self.violating));
        let illegal: R::Value = self
            .illegal
            .iter()
            .flat_map(|(index, codes)| codes.iter().map(|code| (&self.actuators[*index], *code)))
            .map(|(actuator, code)| actuator.shows(rows, Row::Here, code))
            .sum();
        rows.zero(silent.dup() * illegal);
        for idle in &self.idle {
            let shown = self.actuators[idle.actuator].index(rows, Row::Here);
            rows.zero(silent.dup() * (shown - F::from_u64(idle.code)));
        }
        if let Some(start) = self.start {
            rows.zero(silent * rows.here(start));
        }
        if let Some(severe) = self.severe {
            rows.zero(rows.here(severe) * not(rows.here(self.violating)));
        }
    }

    /// One on a row of the batch that is not severe.
    pub fn judged<R: Rows>(&self, rows: &R) -> R::Value {
        self.not_severe(rows, rows.public(self.real))
    }

    /// One where a row of the batch follows its neighbour in the same segment and is not severe.
    pub fn following<R: Rows>(&self, rows: &R) -> R::Value {
        let coming = rows.public(self.coming);
        let coming = match self.start {
            Some(start) => coming * not(rows.here(start)),
            None => coming,
        };
        self.not_severe(rows, coming)
    }

    fn not_severe<R: Rows>(&self, rows: &R, value: R::Value) -> R::Value {
        match self.severe {
            Some(severe) => value * not(rows.here(severe)),
            None => value,
        }
    }
}

fn actuator(found: &statement::Actuator, columns: &mut Columns) -> Actuator {
    if !found.read && found.codes < super::ladder::RADIX {
        return Actuator::Index(columns.digit(found.codes + 1), found.codes + 1);
    }
    Actuator::Flags((0..found.codes).map(|_| columns.flag()).collect())
}
