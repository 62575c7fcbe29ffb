//! A row of a trace, read by the gadgets as they fill it or ask about it.

use p3_field::{Field, PrimeCharacteristicRing, PrimeField64};

use super::super::columns::{Column, Extreme, F, Row, Rows};
use super::super::ladder::{Dual, Ladder};
use super::Trace;

/// A row of a trace as it is filled, with the row before where `stepping`.
pub(super) struct Filling<'a, 'b> {
    pub(super) trace: &'a mut Trace<'b>,
    pub(super) row: usize,
    pub(super) stepping: bool,
}

/// A row of a trace as it is asked whether it satisfies the circuit.
pub(super) struct Probe<'a, 'b> {
    pub(super) trace: &'a Trace<'b>,
    pub(super) row: usize,
    pub(super) stepping: bool,
    pub(super) holds: bool,
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
            let row = self.row - usize::from(self.stepping);
            self.trace.public.at(schedule, row)
        }
    };
}

fn weighing(digits: &[Column], weights: &[F]) -> Option<Ladder> {
    let weights: Vec<u64> = weights.iter().map(F::as_canonical_u64).collect();
    Ladder::weighing(digits, &weights)
}

impl Rows for Filling<'_, '_> {
    read_rows!();

    fn define(&mut self, column: Column, value: F) -> F {
        self.trace.write(self.row, column, value);
        self.trace.cell(self.row, column)
    }

    fn lead(&mut self, column: Column, value: F) {
        if self.row + 1 < self.trace.fresh.end {
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

    fn spread(&mut self, digits: &[Column], weights: Vec<F>, value: F) {
        match weighing(digits, &weights) {
            Some(ladder) => self.trace.split(self.row, &ladder, value, false),
            None => digits
                .iter()
                .for_each(|digit| self.trace.write(self.row, *digit, F::ZERO)),
        }
    }

    fn either(&mut self, dual: &Dual, flag: F, value: F) {
        if flag == F::ZERO {
            self.trace.split(self.row, &dual.plain, value, false);
        } else if flag == F::ONE {
            self.trace.split(self.row, &dual.flagged, value, false);
        } else {
            let ladders = [&dual.plain, &dual.flagged];
            self.trace.bend(self.row, ladders, flag, value);
        }
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

    fn spread(&mut self, digits: &[Column], weights: Vec<F>, value: F) {
        let split = weighing(digits, &weights)
            .and_then(|ladder| ladder.split(value.as_canonical_u64(), false));
        self.holds &= split.is_some();
    }

    fn either(&mut self, dual: &Dual, flag: F, value: F) {
        let ladder = if flag == F::ONE {
            &dual.flagged
        } else {
            &dual.plain
        };
        self.holds &= ladder.split(value.as_canonical_u64(), false).is_some();
    }

    fn within(&mut self, ladder: &Ladder, value: F) {
        let flagged = self.trace.flagged(self.row);
        self.holds &= ladder.split(value.as_canonical_u64(), flagged).is_some();
    }
}
