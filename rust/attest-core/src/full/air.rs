//! The gadgets as constraints.

use std::borrow::Cow;
use std::sync::Arc;

use p3_air::{Air, AirBuilder, BaseAir, WindowAccess};
use p3_field::{Dup, PrimeCharacteristicRing};

use super::channels::Channels;
use super::columns::{Column, Extreme, F, Row, Rows, element, not};
use super::digest::CHAIN;
use super::ladder::{Digit, Dual, Ladder};
use super::layout::Layout;
use super::moments::{Form, Moments};
use super::public::Public;
use super::seam::{self, Seam};

/// The algebraic intermediate representation of one statement and one number of rows.
#[derive(Debug, Clone)]
pub struct FullAir {
    /// The gadgets.
    pub layout: Arc<Layout>,
    /// What is public.
    pub public: Arc<Public>,
    /// The weights of the form that ties a statistic to the rows, where the statement has one.
    pub form: Option<Arc<Form>>,
    /// What ties the trace to its neighbours, where it is a segment of a chain.
    pub seam: Option<Arc<Seam>>,
}

impl FullAir {
    /// The statistic's columns with the weights that are drawn for it, where there is one.
    fn bound(&self) -> Option<(&Moments, &Form)> {
        self.layout.moments.as_ref().zip(self.form.as_deref())
    }

    /// Whether the first row of the trace is the first row of the batch.
    fn begins(&self) -> bool {
        self.seam.as_ref().is_none_or(|seam| seam.enters.is_none())
    }
}

impl BaseAir<F> for FullAir {
    fn width(&self) -> usize {
        self.layout.width + self.seam.as_ref().map_or(0, |_| seam::REPETITIONS)
    }

    fn num_public_values(&self) -> usize {
        let ends = self.seam.as_ref().map_or(0, |_| 2 * seam::REPETITIONS);
        CHAIN + self.bound().map_or(0, |(_, form)| form.0.len()) + ends
    }

    fn num_periodic_columns(&self) -> usize {
        self.public.schedules.len()
    }

    fn periodic_columns(&self) -> Cow<'_, [Vec<F>]> {
        Cow::Borrowed(&self.public.schedules)
    }
}

impl<AB: AirBuilder<F = F>> Air<AB> for FullAir {
    fn eval(&self, builder: &mut AB) {
        let main = builder.main();
        let (here, next) = (main.current_slice(), main.next_slice());
        let public: Vec<AB::PeriodicVar> = builder.periodic_values().to_vec();
        let digest: [AB::Expr; CHAIN] =
            std::array::from_fn(|index| builder.public_values()[index].into());
        let beside: Vec<AB::Expr> = builder.public_values()[CHAIN..]
            .iter()
            .map(|value| (*value).into())
            .collect();
        let (totals, ends) = beside.split_at(self.bound().map_or(0, |(_, form)| form.0.len()));
        for digit in &self.layout.digits {
            builder.assert_zero(member::<AB>(here[digit.column].into(), digit));
        }
        let registers = |row: &[AB::Var]| registers::<AB>(&self.layout.channels, row);
        let (of_here, of_next) = (registers(here), registers(next));
        let (first, transition) = (builder.is_first_row(), builder.is_transition());
        let mut rows = Constraints::<AB> {
            builder,
            here,
            before: &[],
            after: next,
            registers: [of_here, Vec::new()],
            public: &public,
            violating: self.layout.channels.violating,
            only: Some(first.dup()),
            transition: transition.dup(),
        };
        if self.begins() {
            self.layout.first(&mut rows);
            self.layout.judge_first(&mut rows);
            if let Some((moments, _)) = self.bound() {
                moments.first(&mut rows);
            }
        }
        rows.only = None;
        self.layout.local(&mut rows);
        self.layout.judge_row(&mut rows);
        self.layout.judge_blocks(&mut rows);
        let masks = self
            .layout
            .judge_batch(&mut rows, &self.public.totals, digest);
        if let Some((moments, form)) = self.bound() {
            moments.judge(&self.layout.channels, &mut rows, form, totals);
            if self.begins() {
                rows.only = Some(first);
                moments.mask(&mut rows, masks);
            }
        }
        let [of_here, _] = rows.registers;
        let mut rows = Constraints::<AB> {
            builder: rows.builder,
            here: next,
            before: here,
            after: &[],
            registers: [of_next, of_here],
            public: &public,
            violating: self.layout.channels.violating,
            only: Some(transition.dup()),
            transition,
        };
        self.layout.step(&mut rows);
        self.layout.judge_step(&mut rows);
        if let Some((moments, _)) = self.bound() {
            moments.judge_step(&mut rows);
        }
        if let Some(seam) = &self.seam {
            seam.judge(rows.builder, here, self.layout.width, ends);
        }
    }
}

/// Zero exactly where a cell holds one of the digit's values: pairs of values, from both ends.
fn member<AB: AirBuilder<F = F>>(value: AB::Expr, digit: &Digit) -> AB::Expr {
    let top = digit.radix - 1;
    let ends = value.dup() * (value.dup() - F::from_u64(top));
    let mut product = ends.dup();
    for low in 1..digit.radix / 2 {
        product *= ends.dup() + F::from_u64(low * (top - low));
    }
    if digit.radix % 2 == 1 && digit.radix > 1 {
        product *= value - F::from_u64(top / 2);
    }
    product
}

fn registers<AB: AirBuilder<F = F>>(channels: &Channels, row: &[AB::Var]) -> Vec<AB::Expr> {
    let register = |register: &super::channels::Register| {
        let sum = |low: u64, ladder: &Ladder| {
            let low = AB::Expr::from(F::from_u64(low));
            ladder.digits().fold(low, |sum, digit| {
                sum + row[digit.column].into() * F::from_u64(digit.weight)
            })
        };
        let any = sum(register.low, &register.ladder);
        match (&register.bounded, channels.severe) {
            (Some((low, ladder)), Some(severe)) => {
                let bounded = sum(*low, ladder);
                bounded.dup() + row[severe].into() * (any - bounded)
            }
            _ => any,
        }
    };
    channels.registers.iter().map(register).collect()
}

struct Constraints<'a, AB: AirBuilder<F = F>> {
    builder: &'a mut AB,
    here: &'a [AB::Var],
    before: &'a [AB::Var],
    after: &'a [AB::Var],
    registers: [Vec<AB::Expr>; 2],
    public: &'a [AB::PeriodicVar],
    violating: Column,
    only: Option<AB::Expr>,
    transition: AB::Expr,
}

impl<AB: AirBuilder<F = F>> Rows for Constraints<'_, AB> {
    type Value = AB::Expr;

    fn cell(&self, row: Row, column: Column) -> AB::Expr {
        match row {
            Row::Here => self.here[column].into(),
            Row::Before => self.before[column].into(),
        }
    }

    fn register(&self, row: Row, index: usize) -> AB::Expr {
        self.registers[usize::from(row == Row::Before)][index].dup()
    }

    fn public(&self, schedule: usize) -> AB::Expr {
        self.public[schedule].into()
    }

    fn define(&mut self, column: Column, value: AB::Expr) -> AB::Expr {
        let cell = self.here(column);
        self.zero(value - cell.dup());
        cell
    }

    fn lead(&mut self, column: Column, value: AB::Expr) {
        let cell: AB::Expr = self.after[column].into();
        self.builder
            .assert_zero(self.transition.dup() * (value - cell));
    }

    fn zero(&mut self, value: AB::Expr) {
        match &self.only {
            Some(only) => self.builder.assert_zero(only.dup() * value),
            None => self.builder.assert_zero(value),
        }
    }

    fn nonzero(&mut self, value: AB::Expr, any: Column, inverse: Column) {
        let (any, inverse) = (self.here(any), self.here(inverse));
        self.zero(value.dup() * inverse.dup() - any.dup());
        self.zero(value * not(any.dup()));
        self.zero(inverse * not(any));
    }

    fn capture(&mut self, column: Column, values: [AB::Expr; 2], _extreme: Extreme) {
        let cell = self.here(column);
        let [one, other] = values;
        self.zero((cell.dup() - one) * (cell - other));
    }

    fn either(&mut self, dual: &Dual, flag: AB::Expr, value: AB::Expr) {
        let plain = |digit: &Digit| self.here(digit.column) * F::from_u64(digit.weight);
        let more = |(column, more)| self.here(column) * element(more);
        let sum: AB::Expr = dual.digits().iter().map(plain).sum();
        let added: AB::Expr = dual.added().map(more).sum();
        self.zero(value - sum - flag * added);
    }

    fn spread(&mut self, digits: &[Column], weights: Vec<AB::Expr>, value: AB::Expr) {
        let terms = digits.iter().zip(weights);
        let sum: AB::Expr = terms
            .map(|(digit, weight)| self.here(*digit) * weight)
            .sum();
        self.zero(value - sum);
    }

    fn within(&mut self, ladder: &Ladder, value: AB::Expr) {
        let sum = |digits: &[Digit], rows: &Self| -> AB::Expr {
            let term = |digit: &Digit| rows.here(digit.column) * F::from_u64(digit.weight);
            digits.iter().map(term).sum()
        };
        let mut total = sum(&ladder.base, self);
        if !ladder.extra.is_empty() {
            let extra = sum(&ladder.extra, self);
            total += extra.dup();
            self.zero(extra * not(self.here(self.violating)));
        }
        self.zero(value - total);
    }
}
