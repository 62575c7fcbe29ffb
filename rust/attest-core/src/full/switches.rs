//! Switch bands: where a register lies when an actuator switches on, and when it switches off.
//!
//! On a row without a switch nothing is demanded. On one with a switch the register's distance from
//! the lower end of the band is spread over digits, whose weights are those of the band at hand. A
//! switch out of band is counted; no row can hold two of one rule.

use p3_field::{Dup, PrimeCharacteristicRing};

use super::channels::Channels;
use super::columns::{Column, Columns, F, Row, Rows, element, not};
use super::ladder::{digits_for, weights};
use super::statement::{self, Interval, Statement};

#[derive(Debug)]
struct Band {
    rule: statement::SwitchBand,
    violating: Column,
    digits: Vec<Column>,
    on: Vec<u64>,
    off: Vec<u64>,
}

impl Band {
    fn new(rule: &statement::SwitchBand, columns: &mut Columns) -> Self {
        let width = |[low, high]: Interval| high - low;
        let digits = digits_for(width(rule.on).max(width(rule.off)));
        let [on, off] = [rule.on, rule.off].map(|band| weights(width(band), digits));
        Self {
            rule: rule.clone(),
            violating: columns.flag(),
            digits: columns.shared(&on),
            on,
            off,
        }
    }

    /// One where the actuator shows a code that counts as on.
    fn runs<R: Rows>(&self, channels: &Channels, rows: &R, row: Row) -> R::Value {
        let actuator = &channels.actuators[self.rule.actuator];
        let codes = self.rule.codes.iter();
        codes.map(|code| actuator.shows(rows, row, *code)).sum()
    }

    fn judge<R: Rows>(&self, channels: &Channels, rows: &mut R) {
        let [before, here] = [Row::Before, Row::Here].map(|row| self.runs(channels, rows, row));
        let judged = not(rows.here(self.violating));
        let judged = match channels.start {
            Some(start) => judged * not(rows.here(start)),
            None => judged,
        };
        let went_on = judged.dup() * not(before.dup()) * here.dup();
        let went_off = judged * before * not(here);
        let deciding = if self.rule.before {
            Row::Before
        } else {
            Row::Here
        };
        let reading = rows.register(deciding, self.rule.register);
        let above = |low: u64| reading.dup() - F::from_u64(low);
        let value = went_on * above(self.rule.on[0]) + went_off.dup() * above(self.rule.off[0]);
        let weight = |(on, off): (&u64, &u64)| {
            let other = element(i128::from(*off) - i128::from(*on));
            went_off.dup() * other + F::from_u64(*on)
        };
        let weights = self.on.iter().zip(&self.off).map(weight).collect();
        rows.spread(&self.digits, weights, value);
    }
}

/// Every switch band.
#[derive(Debug)]
pub struct Switches(Vec<Band>);

impl Switches {
    /// Hand out the columns.
    pub fn new(statement: &Statement, columns: &mut Columns) -> Self {
        let bands = statement.switches.iter();
        Self(bands.map(|rule| Band::new(rule, columns)).collect())
    }

    /// Every switch is in its band or counted.
    pub fn judge_step<R: Rows>(&self, channels: &Channels, rows: &mut R) {
        self.0.iter().for_each(|band| band.judge(channels, rows));
    }

    /// Whether one rule holds on a row.
    pub fn ask<R: Rows>(&self, index: usize, channels: &Channels, rows: &mut R) {
        self.0[index].judge(channels, rows);
    }

    /// The columns in which a rule's switches out of band are marked.
    pub fn violating(&self) -> impl Iterator<Item = Column> {
        self.0.iter().map(|band| band.violating)
    }

    /// How many rules there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether a column belongs to a sum over two rows, which no constraint reads on the first.
    #[must_use]
    pub fn reads_two_rows(&self, column: Column) -> bool {
        self.0.iter().any(|band| band.digits.contains(&column))
    }
}
