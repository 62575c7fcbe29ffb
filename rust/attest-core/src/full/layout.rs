//! The whole row: every gadget and where its columns stand.

use super::channels::Channels;
use super::columns::{Columns, F, Rows, Schedule};
use super::counts::Counts;
use super::couplings::Couplings;
use super::digest::{CHAIN, Digest, MASKS};
use super::ladder::{Digit, Ladder};
use super::liveness::Levels;
use super::moments::Moments;
use super::relations::Relations;
use super::spectra::Spectra;
use super::statement::Statement;
use super::switches::Switches;
use super::windows::Windows;

/// The gadgets of a statement. It depends on the statement alone, never on the number of rows.
#[derive(Debug)]
pub struct Layout {
    /// What a row holds.
    pub channels: Channels,
    /// Settling, transitions, flows.
    pub couplings: Couplings,
    /// Bounds, ties, rates, balances.
    pub relations: Relations,
    /// Balances over several rows.
    pub windows: Windows,
    /// Registers at which actuators switch.
    pub switches: Switches,
    /// Registers whose noise stays within limits.
    pub spectra: Spectra,
    /// Levels that must move.
    pub levels: Levels,
    /// Counts against budgets.
    pub counts: Counts,
    /// What ties the rows to the commitment.
    pub digest: Digest,
    /// What ties a statistic to the rows, where the statement has one.
    pub moments: Option<Moments>,
    /// How many columns there are.
    pub width: usize,
    /// The columns that hold digits.
    pub digits: Vec<Digit>,
    /// The digits that are summed.
    pub ladders: Vec<Ladder>,
    /// The public columns.
    pub schedules: Vec<Schedule>,
}

impl Layout {
    /// Lay out a statement.
    #[must_use]
    pub fn new(statement: &Statement) -> Self {
        let mut columns = Columns::default();
        let channels = Channels::new(statement, &mut columns);
        let couplings = Couplings::new(statement, &mut columns);
        let relations = Relations::new(statement, &mut columns);
        let windows = Windows::new(statement, &mut columns);
        let switches = Switches::new(statement, &mut columns);
        let spectra = Spectra::new(statement, &mut columns);
        let levels = Levels::new(statement, &mut columns);
        let counts = Counts::new(statement, &mut columns);
        let digest = Digest::new(statement, &mut columns);
        let moments = Moments::new(statement, &channels, &mut columns);
        Self {
            channels,
            couplings,
            relations,
            windows,
            switches,
            spectra,
            levels,
            counts,
            digest,
            moments,
            width: columns.width,
            digits: columns.digits,
            ladders: columns.ladders,
            schedules: columns.schedules,
        }
    }

    /// What the first row begins with.
    pub fn first<R: Rows>(&self, rows: &mut R) {
        self.couplings.first(rows);
        self.windows.first(rows);
        self.spectra.first(rows);
        self.levels.first(rows);
        self.counts.first(rows);
    }

    /// What a row takes over from the row before.
    pub fn step<R: Rows>(&self, rows: &mut R) {
        self.couplings.step(&self.channels, rows);
        self.windows.step(&self.channels, rows);
        self.spectra.step(&self.channels, rows);
        self.levels.step(rows);
    }

    /// What follows from a row's own cells.
    pub fn local<R: Rows>(&self, rows: &mut R) {
        self.couplings.local(&self.channels, rows);
    }

    /// What the first row must satisfy.
    pub fn judge_first<R: Rows>(&self, rows: &mut R) {
        self.channels.first(rows);
    }

    /// What neighbouring rows must satisfy.
    pub fn judge_step<R: Rows>(&self, rows: &mut R) {
        self.relations.step(&self.channels, rows);
        self.windows.judge_step(rows);
        self.switches.judge_step(&self.channels, rows);
    }

    /// What a row must satisfy by itself, or else be flagged.
    pub fn judge_row<R: Rows>(&self, rows: &mut R) {
        self.channels.local(rows);
        self.couplings.judge(&self.channels, rows);
        self.relations.local(&self.channels, rows);
        self.windows.judge(rows);
        self.spectra.judge(rows);
    }

    /// What the rows of a block must satisfy where it ends; no flag makes up for it.
    pub fn judge_blocks<R: Rows>(&self, rows: &mut R) {
        self.levels.judge(rows);
    }

    /// What the batch as a whole must satisfy. Returns the row's masks.
    pub fn judge_batch<R: Rows>(
        &self,
        rows: &mut R,
        budgets: &[F],
        digest: [R::Value; CHAIN],
    ) -> [R::Value; MASKS] {
        let added = self.counts.added(self, rows);
        self.counts.judge(added, rows, budgets);
        self.digest.judge(&self.channels, rows, digest)
    }
}
