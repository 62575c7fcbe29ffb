//! The flags of a whole batch, and its budgets, which are spent to the last unit: so a proof does not
//! tell what was left.
//!
//! Flags are few. They are noted while the rows are looked at part by part, and written into each part
//! when it is filled.

use std::collections::BTreeMap;

use p3_field::{PrimeCharacteristicRing, PrimeField64};

use super::super::Refused;
use super::super::columns::{Column, F};
use super::super::counts::Counted;
use super::super::layout::Layout;
use super::super::public::Public;
use super::rows::Probe;
use super::{Manner, Trace};

/// The flags of every row, as far as they are not zero, and what is counted beside them.
#[derive(Debug)]
pub struct Marks {
    flags: BTreeMap<Column, BTreeMap<usize, F>>,
    /// What the counts without flags come to.
    exact: Vec<(Counted, F)>,
    manner: Manner,
}

impl Marks {
    pub(super) fn new(layout: &Layout, public: &Public, manner: Manner) -> Self {
        let channels = &layout.channels;
        let flags = [channels.violating]
            .into_iter()
            .chain(channels.severe)
            .chain(layout.windows.violating())
            .chain(layout.switches.violating())
            .chain(layout.spectra.violating())
            .chain(layout.counts.slack());
        let exact = public.slack.iter().map(|(counted, _)| (*counted, F::ZERO));
        Self {
            flags: flags.map(|column| (column, BTreeMap::new())).collect(),
            exact: exact.collect(),
            manner,
        }
    }

    /// Note the flags of a row, and count what it adds to the counts without flags.
    pub(super) fn note(&mut self, trace: &Trace, row: usize) {
        let layout = trace.layout;
        for (column, marked) in &mut self.flags {
            let value = trace.cell(row, *column);
            if value != F::ZERO {
                marked.insert(row, value);
            }
        }
        let probe = Probe {
            trace,
            row,
            stepping: false,
            holds: true,
        };
        let unsteady = layout.couplings.unsteady(&layout.channels, &probe);
        for (counted, sum) in &mut self.exact {
            *sum += match counted {
                Counted::Unsteady(index) => unsteady[*index],
                _ => trace.cell(row, layout.channels.start.expect("counted where it can be")),
            };
        }
    }

    /// The flags of a row, by column.
    pub(super) fn on(&self, row: usize) -> impl Iterator<Item = (Column, F)> {
        let flag = move |(column, marked): (&Column, &BTreeMap<usize, F>)| {
            (*column, marked.get(&row).copied().unwrap_or(F::ZERO))
        };
        self.flags.iter().map(flag)
    }

    /// Spend every budget: claim violations, and add slack to the counts that are exact.
    ///
    /// # Errors
    /// [`Refused`] where a budget is exceeded.
    pub(super) fn settle(&mut self, layout: &Layout, public: &Public) -> Result<(), Refused> {
        let manner = self.manner;
        let claimed = self.claim(layout, public);
        manner.fatal(claimed)?;
        let balanced = self.balance(layout, public);
        manner.fatal(balanced)
    }

    fn marked(&self, row: usize, column: Column) -> F {
        self.flags[&column].get(&row).copied().unwrap_or(F::ZERO)
    }

    fn mark(&mut self, row: usize, column: Column) {
        let value = self.manner.of(row, column, F::ONE);
        let marked = self.flags.get_mut(&column);
        marked.expect("a column of flags").insert(row, value);
    }

    /// Claim violations until their budgets are spent.
    fn claim(&mut self, layout: &Layout, public: &Public) -> Result<(), Refused> {
        let channels = &layout.channels;
        let rows = 0..public.rows;
        let all = |spent| public.budget(spent);
        let budget = all(Counted::Violating);
        self.spend(
            Counted::Violating,
            channels.violating,
            budget,
            rows.clone().rev(),
        )?;
        if let Some(severe) = channels.severe {
            let violating = self.flags[&channels.violating].iter();
            let flagged = violating.filter(|(_, value)| **value == F::ONE);
            let candidates: Vec<usize> = flagged.map(|(row, _)| *row).collect();
            let budget = all(Counted::Severe);
            self.spend(Counted::Severe, severe, budget, candidates.into_iter())?;
        }
        let windows: Vec<Column> = layout.windows.violating().collect();
        for (index, column) in windows.into_iter().enumerate() {
            let anchor = layout.schedules[layout.windows.anchors(index)];
            let ends = rows.clone().filter(|row| public.marks(anchor, *row));
            let counted = Counted::Window(index);
            self.spend(counted, column, all(counted), ends)?;
        }
        let switches: Vec<Column> = layout.switches.violating().collect();
        for (index, column) in switches.into_iter().enumerate() {
            let counted = Counted::Switch(index);
            self.spend(counted, column, all(counted), rows.clone())?;
        }
        let blocks: Vec<(Column, usize)> = layout.spectra.marks().collect();
        for (index, (column, end)) in blocks.into_iter().enumerate() {
            let end = layout.schedules[end];
            let ends = rows.clone().filter(|row| public.marks(end, *row));
            let counted = Counted::Block(index);
            self.spend(counted, column, all(counted), ends)?;
        }
        Ok(())
    }

    fn spend(
        &mut self,
        counted: Counted,
        column: Column,
        budget: u64,
        candidates: impl Iterator<Item = usize> + Clone,
    ) -> Result<(), Refused> {
        let claimed: F = match counted {
            // Rules that share a column claim on the rows where their own blocks end.
            Counted::Block(_) => candidates.clone().map(|row| self.marked(row, column)).sum(),
            _ => self.flags[&column].values().copied().sum(),
        };
        let mut left = left_of(counted, claimed, budget)?;
        for row in candidates {
            if left == 0 {
                break;
            }
            if self.marked(row, column) == F::ZERO {
                self.mark(row, column);
                left -= 1;
            }
        }
        Ok(())
    }

    /// Add slack to the counts that are exact.
    fn balance(&mut self, layout: &Layout, public: &Public) -> Result<(), Refused> {
        let Some(column) = layout.counts.slack() else {
            return Ok(());
        };
        let exact = self.exact.clone();
        for ((counted, rows), (_, count)) in public.slack.iter().zip(exact) {
            let slack = left_of(*counted, count, public.budget(*counted))?;
            for (bit, row) in rows.clone().enumerate() {
                if slack >> bit & 1 == 1 {
                    self.mark(row, column);
                }
            }
        }
        Ok(())
    }
}

/// What a count leaves of its budget.
fn left_of(counted: Counted, count: F, budget: u64) -> Result<u64, Refused> {
    let count = count.as_canonical_u64();
    budget
        .checked_sub(count)
        .ok_or_else(|| Refused(format!("{counted:?}: {count} exceed a budget of {budget}")))
}
