//! Liveness: within every block of rows a level moves at least so far.
//!
//! Blocks begin every quarter of their length and overlap. For each block that is under way the
//! prover keeps one reading as largest and one as least: a kept reading stays or gives way to the
//! row's own, so whatever is kept was shown in the block, and a distance between the two that is
//! large enough proves that the level moved. Blocks move one place on whenever a new one begins, so
//! a block always ends in the last place.

use p3_field::{Dup, PrimeCharacteristicRing};

use super::columns::{Column, Columns, Extreme, F, Row, Rows, Schedule, not};
use super::ladder::Ladder;
use super::statement::{self, REGISTER_TOP, Statement};

/// Blocks begin every so many rows.
#[must_use]
pub fn stride(rows: u64) -> u64 {
    (rows / 4).max(1)
}

#[derive(Debug)]
struct Level {
    fact: statement::Liveness,
    fresh: usize,
    end: usize,
    kept: Vec<(Extreme, Vec<Column>)>,
    ladder: Ladder,
}

impl Level {
    fn new(fact: &statement::Liveness, columns: &mut Columns) -> Self {
        let places = (fact.rows - 1) / stride(fact.rows) + 1;
        let mut keep = |extreme| (extreme, (0..places).map(|_| columns.cell()).collect());
        let kept = vec![keep(Extreme::Largest), keep(Extreme::Least)];
        Self {
            fact: *fact,
            fresh: columns.schedule(Schedule::Fresh(fact.rows)),
            end: columns.schedule(Schedule::End(fact.rows)),
            kept,
            ladder: columns.ladder(REGISTER_TOP, 0),
        }
    }

    fn first<R: Rows>(&self, rows: &mut R) {
        for column in self.kept.iter().flat_map(|(_, places)| places) {
            let shown = rows.register(Row::Here, self.fact.register);
            rows.define(*column, shown);
        }
    }

    fn step<R: Rows>(&self, rows: &mut R) {
        let fresh = rows.public(self.fresh);
        let shown = rows.register(Row::Here, self.fact.register);
        for (extreme, places) in &self.kept {
            let mut moving_in = shown.dup();
            for column in places {
                let stayed = rows.cell(Row::Before, *column);
                let kept = fresh.dup() * moving_in + not(fresh.dup()) * stayed.dup();
                rows.capture(*column, [shown.dup(), kept], *extreme);
                moving_in = stayed;
            }
        }
    }

    fn judge<R: Rows>(&self, rows: &mut R) {
        let [largest, least] = [0, 1].map(|side: usize| {
            let (_, places) = &self.kept[side];
            rows.here(*places.last().expect("a block takes a place"))
        });
        let moved = largest - least - F::from_u64(self.fact.least);
        rows.within(&self.ladder, rows.public(self.end) * moved);
    }
}

/// Every level and block length.
#[derive(Debug)]
pub struct Levels(Vec<Level>);

impl Levels {
    /// Hand out the columns; none for a level that need not move.
    pub fn new(statement: &Statement, columns: &mut Columns) -> Self {
        let moving = statement.liveness.iter().filter(|fact| fact.least > 0);
        Self(moving.map(|fact| Level::new(fact, columns)).collect())
    }

    /// The first block begins.
    pub fn first<R: Rows>(&self, rows: &mut R) {
        self.0.iter().for_each(|level| level.first(rows));
    }

    /// Blocks keep what they had or what the row shows.
    pub fn step<R: Rows>(&self, rows: &mut R) {
        self.0.iter().for_each(|level| level.step(rows));
    }

    /// Where a block ends the level has moved far enough.
    pub fn judge<R: Rows>(&self, rows: &mut R) {
        self.0.iter().for_each(|level| level.judge(rows));
    }
}
