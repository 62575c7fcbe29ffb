//! A batch as the circuit sees it, and whether it is one that the circuit can hold.

use super::super::channels::Actuator;
use super::super::layout::Layout;
use super::super::{Malformed, Refused};

/// A batch as the circuit sees it: registers and code indices row by row.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// How many rows.
    pub rows: usize,
    /// Registers, row after row.
    pub registers: &'a [u16],
    /// Indices of codes, row after row.
    pub codes: &'a [u8],
    /// One where a segment starts.
    pub starts: &'a [u8],
    /// One where the row violates for a reason outside the circuit, as a missing reading is.
    pub flagged: &'a [u8],
}

impl Batch<'_> {
    /// Check that the parts are those of so many rows of this layout.
    ///
    /// # Errors
    /// [`Malformed`] says which part is not.
    pub fn check(&self, layout: &Layout) -> Result<(), Malformed> {
        let channels = &layout.channels;
        let parts = [
            ("registers", self.registers.len(), channels.registers.len()),
            ("codes", self.codes.len(), channels.actuators.len()),
            ("starts", self.starts.len(), 1),
            ("flags", self.flagged.len(), 1),
        ];
        for (part, got, each) in parts {
            let expected = self.rows * each;
            if got != expected {
                return Err(Malformed(format!(
                    "{got} {part}; {} rows have {expected}",
                    self.rows
                )));
            }
        }
        let radices: Vec<u64> = channels.actuators.iter().map(Actuator::radix).collect();
        let known = |(code, radix): (&u8, &u64)| u64::from(*code) < *radix;
        if !self.codes.iter().zip(radices.iter().cycle()).all(known) {
            return Err(Malformed("a code has no index".into()));
        }
        if self.starts.first() != Some(&1) {
            return Err(Malformed("the first row starts a segment".into()));
        }
        Ok(())
    }

    /// Check that there is a commitment to it: no time jump where the policy lets a batch hold none,
    /// and no register beyond the limits that no row may break.
    ///
    /// # Errors
    /// [`Refused`] says what no row of this layout can show.
    pub fn fits(&self, layout: &Layout) -> Result<(), Refused> {
        let channels = &layout.channels;
        if channels.start.is_none() && self.starts.iter().skip(1).any(|start| *start != 0) {
            return Err(Refused("the policy lets a batch hold no time jump".into()));
        }
        if let Some(moments) = &layout.moments {
            if self.starts.iter().skip(1).any(|start| *start != 0) {
                return Err(Refused(
                    "a batch with a statistic is one segment, and this one holds a time jump"
                        .into(),
                ));
            }
            if self.rows < moments.lags {
                return Err(Refused(format!(
                    "a statistic of {} lags needs as many rows",
                    moments.lags
                )));
            }
        }
        let registers = &channels.registers;
        for (row, held) in self.registers.chunks(registers.len().max(1)).enumerate() {
            for (index, (value, register)) in held.iter().zip(registers).enumerate() {
                let above = u64::from(*value).checked_sub(register.low);
                if above.is_none_or(|above| above > register.ladder.reach) {
                    return Err(Refused(format!(
                        "register {index} is out of bounds on row {row}"
                    )));
                }
            }
        }
        Ok(())
    }
}
