//! Flags: a row is flagged as far as it needs, and no further.

use p3_field::PrimeCharacteristicRing;

use super::super::Refused;
use super::super::columns::{Column, F};
use super::rows::Probe;
use super::{Batch, Trace};

impl Trace<'_> {
    /// Flag the row as far as it needs.
    pub(super) fn flag(&mut self, row: usize, batch: &Batch) -> Result<(), Refused> {
        let layout = self.layout;
        let violating: Vec<Column> = layout.windows.violating().collect();
        for (index, column) in violating.into_iter().enumerate() {
            let holds = self.probe(row, false, |rows| layout.windows.ask(index, rows));
            self.write(row, column, F::from_bool(!holds));
        }
        self.flag_switches(row);
        self.flag_blocks(row);
        let starts = batch.starts[row] != 0;
        let severe = batch.breaks_own_bound(row, &layout.channels);
        let marked = starts || severe || batch.flagged[row] != 0;
        self.write(row, layout.channels.violating, F::from_bool(marked));
        self.set_severe(row, severe, batch);
        if self.holds(row) {
            return Ok(());
        }
        self.write(row, layout.channels.violating, F::ONE);
        if self.holds(row) {
            return Ok(());
        }
        if layout.channels.severe.is_some() && !severe {
            self.set_severe(row, true, batch);
            if self.holds(row) {
                return Ok(());
            }
            self.set_severe(row, false, batch);
        }
        Err(Refused(format!(
            "no flag makes up for what row {row} shows"
        )))
    }

    /// Mark the switches that are out of band; the first row holds none.
    fn flag_switches(&mut self, row: usize) {
        let layout = self.layout;
        let violating: Vec<Column> = layout.switches.violating().collect();
        for (index, column) in violating.into_iter().enumerate() {
            let ask = |rows: &mut Probe| layout.switches.ask(index, &layout.channels, rows);
            let holds = row == 0 || self.probe(row, true, ask);
            self.write(row, column, F::from_bool(!holds));
        }
    }

    /// Mark the blocks that violate where they end.
    fn flag_blocks(&mut self, row: usize) {
        let layout = self.layout;
        let violating: Vec<Column> = layout.spectra.violating().collect();
        for (group, column) in violating.into_iter().enumerate() {
            let holds = self.probe(row, false, |rows| layout.spectra.ask(group, rows));
            self.write(row, column, F::from_bool(!holds));
        }
    }

    pub(super) fn check_blocks(&mut self, row: usize) -> Result<(), Refused> {
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
}
