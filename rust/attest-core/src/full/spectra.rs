//! Spectra: the noise of a register, as sums of squared differences over blocks of rows.
//!
//! A rule carries the last step and two sums, which start from zero where a block begins. The sums only
//! matter where a block ends. Rules whose blocks never end on the same row share the digits that
//! they are judged by, with the weights of the rule at hand, and the flag of a violating block.
//!
//! A time jump adds more than the upper limit to the first sum, so a block with one inside can only
//! be counted. So does the beginning of a batch where rows lie before the first block: they end like
//! a block, are counted, and the budget is one larger for it.

use p3_field::{Dup, PrimeCharacteristicRing};

use super::channels::Channels;
use super::columns::{Column, Columns, F, Row, Rows, Schedule, element, not};
use super::ladder::{digits_for, weights};
use super::statement::{self, Interval, Statement};

#[derive(Debug)]
struct Noise {
    rule: statement::Spectrum,
    /// One where a block ends, and so where the next row begins one.
    end: usize,
    /// One where the next row is the second of a block.
    begun: usize,
    step: Column,
    sums: [Column; 2],
    group: usize,
}

impl Noise {
    fn limits(&self) -> [Interval; 2] {
        [self.rule.first, self.rule.second]
    }

    /// What no sum within the limits reaches.
    fn beyond(&self) -> F {
        F::from_u64(self.rule.first[1] + 1)
    }

    fn first<R: Rows>(&self, rows: &mut R) {
        rows.define(self.step, R::Value::ZERO);
        let early = if self.rule.offset > 0 {
            self.beyond()
        } else {
            F::ZERO
        };
        rows.define(self.sums[0], R::Value::from(early));
        rows.define(self.sums[1], R::Value::ZERO);
    }

    fn step<R: Rows>(&self, channels: &Channels, rows: &mut R) {
        let kept = not(rows.public(self.end));
        let bends = not(rows.public(self.begun));
        let register = |row| rows.register(row, self.rule.register);
        let moved = register(Row::Here) - register(Row::Before);
        let bent = moved.dup() - rows.cell(Row::Before, self.step);
        let [first, second] = self.sums.map(|sum| rows.cell(Row::Before, sum));
        let mut added = moved.square();
        if let Some(start) = channels.start {
            added += rows.here(start) * self.beyond();
        }
        rows.define(self.sums[0], kept.dup() * (first + added));
        rows.define(self.sums[1], kept * (second + bends * bent.square()));
        rows.define(self.step, moved);
    }
}

/// Rules whose blocks never end on the same row.
#[derive(Debug)]
struct Group {
    rules: Vec<usize>,
    violating: Column,
    digits: [Vec<Column>; 2],
}

/// Every spectrum.
#[derive(Debug)]
pub struct Spectra {
    noises: Vec<Noise>,
    groups: Vec<Group>,
}

impl Spectra {
    /// Hand out the columns.
    pub fn new(statement: &Statement, columns: &mut Columns) -> Self {
        let sharing = sharing(&statement.spectra);
        let group = |index: usize| {
            let found = sharing.iter().position(|rules| rules.contains(&index));
            found.expect("every rule is in a group")
        };
        let noise = |(index, rule): (usize, &statement::Spectrum)| Noise {
            rule: *rule,
            end: columns.schedule(Schedule::BlockEnd(rule.rows, rule.offset)),
            begun: columns.schedule(Schedule::BlockEnd(rule.rows, (rule.offset + 1) % rule.rows)),
            step: columns.cell(),
            sums: [columns.cell(), columns.cell()],
            group: group(index),
        };
        let noises: Vec<Noise> = statement.spectra.iter().enumerate().map(noise).collect();
        let made = |rules: &Vec<usize>| {
            let width = |index: &usize, side: usize| {
                let [low, high] = noises[*index].limits()[side];
                high - low
            };
            let usual = |side: usize| {
                let widest = rules.iter().map(|index| width(index, side)).max();
                weights(width(&rules[0], side), digits_for(widest.unwrap_or(0)))
            };
            Group {
                rules: rules.clone(),
                violating: columns.flag(),
                digits: [0, 1].map(|side| columns.shared(&usual(side))),
            }
        };
        let groups = sharing.iter().map(made).collect();
        Self { noises, groups }
    }

    /// Nothing is summed yet.
    pub fn first<R: Rows>(&self, rows: &mut R) {
        self.noises.iter().for_each(|noise| noise.first(rows));
    }

    /// The row's differences are added, or a block begins.
    pub fn step<R: Rows>(&self, channels: &Channels, rows: &mut R) {
        self.noises
            .iter()
            .for_each(|noise| noise.step(channels, rows));
    }

    /// Where a block ends its sums are within their limits, or it is counted.
    pub fn judge<R: Rows>(&self, rows: &mut R) {
        (0..self.groups.len()).for_each(|group| self.ask(group, rows));
    }

    /// Whether the rules of one group hold on a row.
    pub fn ask<R: Rows>(&self, group: usize, rows: &mut R) {
        let group = &self.groups[group];
        let violating = rows.here(group.violating);
        let rules: Vec<&Noise> = group.rules.iter().map(|at| &self.noises[*at]).collect();
        let ends: Vec<R::Value> = rules.iter().map(|noise| rows.public(noise.end)).collect();
        let any: R::Value = ends.iter().map(R::Value::dup).sum();
        rows.zero(violating.dup() * not(any));
        for (side, digits) in group.digits.iter().enumerate() {
            let mut value = R::Value::ZERO;
            let mut shared: Vec<R::Value> = Vec::new();
            for (noise, end) in rules.iter().zip(&ends) {
                let [low, high] = noise.limits()[side];
                let above = rows.here(noise.sums[side]) - F::from_u64(low);
                value += end.dup() * above;
                let own = weights(high - low, digits.len());
                if shared.is_empty() {
                    shared = own
                        .iter()
                        .map(|w| R::Value::from(F::from_u64(*w)))
                        .collect();
                    continue;
                }
                let [low, high] = rules[0].limits()[side];
                let usual = weights(high - low, digits.len());
                for ((sum, own), usual) in shared.iter_mut().zip(own).zip(usual) {
                    *sum += end.dup() * element(i128::from(own) - i128::from(usual));
                }
            }
            rows.spread(digits, shared, value * not(violating.dup()));
        }
    }

    /// The columns in which the violating blocks of a group are marked.
    pub fn violating(&self) -> impl Iterator<Item = Column> {
        self.groups.iter().map(|group| group.violating)
    }

    /// Where the violating blocks of each rule are marked: the column, and the public column that is
    /// one where they end.
    pub fn marks(&self) -> impl Iterator<Item = (Column, usize)> {
        self.noises
            .iter()
            .map(|noise| (self.groups[noise.group].violating, noise.end))
    }

    /// The length of each rule's blocks, and the rows before the first.
    #[must_use]
    pub fn blocks(&self) -> Vec<(u64, u64)> {
        self.noises
            .iter()
            .map(|noise| (noise.rule.rows, noise.rule.offset))
            .collect()
    }
}

/// Which rules share digits: those whose blocks never end on the same row, the first ones first.
fn sharing(rules: &[statement::Spectrum]) -> Vec<Vec<usize>> {
    let apart = |one: usize, other: usize| {
        let (one, other) = (&rules[one], &rules[other]);
        let distance = one.offset.abs_diff(other.offset);
        !distance.is_multiple_of(common(one.rows, other.rows))
    };
    let mut made: Vec<Vec<usize>> = Vec::new();
    for index in 0..rules.len() {
        let free = |group: &&mut Vec<usize>| group.iter().all(|other| apart(index, *other));
        match made.iter_mut().find(free) {
            Some(group) => group.push(index),
            None => made.push(vec![index]),
        }
    }
    made
}

/// The greatest common divisor.
fn common(one: u64, other: u64) -> u64 {
    if other == 0 {
        one
    } else {
        common(other, one % other)
    }
}
