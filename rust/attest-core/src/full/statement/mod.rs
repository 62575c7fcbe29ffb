//! What is proven of a batch, as integers that Python derived from a rules file and a policy.
//!
//! Nothing numeric is derived here: a statement is read, checked for being one the circuit can state
//! soundly, and handed on. Its bytes are hashed into the circuit's identity as they came.

use serde::Deserialize;

use super::Malformed;

mod checks;
mod rules;

pub use rules::{
    Balance, Bound, Coupling, Flows, Idle, Interval, Liveness, Rate, Residual, Spectrum, Statistic,
    Steady, Summed, SwitchBand, Term, Tie, Window,
};

/// The largest register: readings are quantised to sixteen bits.
pub const REGISTER_TOP: u64 = (1 << 16) - 1;

/// Residuals stay below half the field's order, so that none wraps round into tolerance.
pub const LARGEST_RESIDUAL: i128 = 1 << 62;

/// How many registers a full lane holds.
pub const FULL: usize = 4;

/// The most full lanes: the guard stays below the field's order.
pub const MOST_FULL: usize = 40;

/// The version of the format.
pub const VERSION: u32 = 2;

/// Every integer of the statement.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// [`VERSION`].
    pub version: u32,
    /// A hash of which channels these are and how their readings became integers, in hexadecimal.
    pub encoding: String,
    /// The continuous channels.
    pub registers: Vec<Register>,
    /// The channels that show codes.
    pub actuators: Vec<Actuator>,
    /// How a row is packed into field elements for the digest.
    pub lanes: Vec<Vec<Packed>>,
    /// Whether the policy lets a batch hold time jumps.
    pub jumps: bool,
    /// Whether the policy lets a row be severe.
    pub severe: bool,
    /// Bounds that a flagged row may break; the others are the registers' own limits.
    pub bounds: Vec<Bound>,
    /// Steps from row to row.
    pub rates: Vec<Rate>,
    /// Actuators that fix a flow.
    pub couplings: Vec<Coupling>,
    /// Levels that move as their flows say, from row to row.
    pub balances: Vec<Balance>,
    /// The same over several rows, at anchor rows.
    pub windows: Vec<Window>,
    /// Levels that must move within every block of rows.
    pub liveness: Vec<Liveness>,
    /// Actuators that show one code alone.
    pub idle: Vec<Idle>,
    /// Registers that other channels of the row predict.
    pub ties: Vec<Tie>,
    /// Registers at which an actuator switches.
    pub switches: Vec<SwitchBand>,
    /// Registers whose noise stays within limits.
    pub spectra: Vec<Spectrum>,
    /// Which sums of the rows are proven too. A statement without one does not name it.
    #[serde(default)]
    pub statistic: Option<Statistic>,
}

/// A continuous channel: every committed row holds a register within these limits.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Register {
    /// The least register.
    pub low: u64,
    /// The largest.
    pub high: u64,
}

/// A channel that shows one of so many codes, or another one, which has the index `codes`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Actuator {
    /// How many codes are distinguished.
    pub codes: u64,
    /// The indices of the codes that do not make a row violate.
    pub legal: Vec<u64>,
    /// Whether a rule reads it: then an illegal code makes the row violate.
    pub read: bool,
}

/// What a lane holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// A register, less its least value.
    Register(usize),
    /// The index of the code an actuator shows.
    Actuator(usize),
    /// Whether a segment starts on this row.
    Start,
    /// The last registers of the full lanes, each times two to the number of full lanes before it.
    Guard,
}

/// A value and its weight in a lane of mixed radix.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packed {
    /// The value.
    pub source: Source,
    /// The product of the radices before it.
    pub weight: u64,
}

impl Statement {
    /// Read a statement and check that the circuit can state it.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let statement: Self = serde_json::from_slice(bytes)
            .map_err(|error| Malformed(format!("not a statement: {error}")))?;
        statement.check()?;
        Ok(statement)
    }

    /// How many values a source may take.
    #[must_use]
    pub fn radix(&self, source: Source) -> u64 {
        match source {
            Source::Register(index) => self.registers[index].high - self.registers[index].low + 1,
            Source::Actuator(index) => self.actuators[index].codes + 1,
            Source::Start => 2,
            Source::Guard => {
                let tops = u32::try_from(self.tops().len()).expect("few lanes");
                REGISTER_TOP * (2_u64.pow(tops) - 1) + 1
            }
        }
    }

    /// Whether a lane is full: four registers of sixteen bits, which could overflow the field.
    #[must_use]
    pub fn full(&self, lane: &[Packed]) -> bool {
        let whole = |packed: &Packed| {
            matches!(packed.source, Source::Register(_))
                && self.radix(packed.source) == REGISTER_TOP + 1
        };
        lane.len() == FULL && lane.iter().all(whole)
    }

    /// The last register of every full lane.
    #[must_use]
    pub fn tops(&self) -> Vec<usize> {
        let full = self.lanes.iter().filter(|lane| self.full(lane));
        let top = |lane: &Vec<Packed>| match lane.last()?.source {
            Source::Register(index) => Some(index),
            _ => None,
        };
        full.filter_map(top).collect()
    }

    /// Hash what a commitment is to: which channels, how encoded, how packed. Rules and policy may
    /// change and leave it as it is.
    #[must_use]
    pub fn packing(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("sluice full packing 1");
        let mut number = |value: u64| {
            hasher.update(&value.to_le_bytes());
        };
        self.encoding.bytes().for_each(|byte| number(byte.into()));
        for lane in &self.lanes {
            number(lane.len() as u64);
            for packed in lane {
                let (kind, index, low) = match packed.source {
                    Source::Register(index) => (0, index, self.registers[index].low),
                    Source::Actuator(index) => (1, index, 0),
                    Source::Start => (2, 0, 0),
                    Source::Guard => (3, 0, 0),
                };
                [
                    kind,
                    index as u64,
                    low,
                    self.radix(packed.source),
                    packed.weight,
                ]
                .into_iter()
                .for_each(&mut number);
            }
        }
        hasher.finalize().into()
    }
}
