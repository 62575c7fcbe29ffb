//! Budgets are spent to the last unit, so that a proof does not tell what was left.

use p3_field::{PrimeCharacteristicRing, PrimeField64};

use super::super::Refused;
use super::super::columns::{Column, F};
use super::super::counts::Counted;
use super::rows::Probe;
use super::{Batch, Trace};

impl Trace<'_> {
    /// Claim violations until their budgets are spent.
    pub(super) fn claim(&mut self, batch: &Batch) -> Result<(), Refused> {
        let channels = &self.layout.channels;
        let rows = 0..self.public.rows;
        let violating = rows.clone().rev().collect();
        self.spend(Counted::Violating, channels.violating, violating)?;
        if let Some(severe) = channels.severe {
            let flagged = |row: &usize| self.cell(*row, channels.violating) == F::ONE;
            let candidates = rows.clone().filter(flagged).collect();
            self.spend(Counted::Severe, severe, candidates)?;
            (0..self.public.rows).for_each(|row| self.write_registers(row, row, batch));
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
        let switches: Vec<Column> = self.layout.switches.violating().collect();
        for (index, column) in switches.into_iter().enumerate() {
            self.spend(Counted::Switch(index), column, rows.clone().collect())?;
        }
        let blocks: Vec<(Column, usize)> = self.layout.spectra.marks().collect();
        for (index, (column, end)) in blocks.into_iter().enumerate() {
            let ends = |row: &usize| self.public.schedules[end][*row] == F::ONE;
            self.spend(
                Counted::Block(index),
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
        let claimed = match counted {
            // Rules that share a column claim on the rows where their own blocks end.
            Counted::Block(_) => candidates.iter().map(|row| self.cell(*row, column)).sum(),
            _ => (0..self.public.rows)
                .map(|row| self.cell(row, column))
                .sum::<F>(),
        };
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
    pub(super) fn balance(&mut self) -> Result<(), Refused> {
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
}
