//! What is proven about sampled rows, as integers that Python derived from a rules file.
//!
//! Readings are `round(x * 2^16) + 2^31`, thirty-two bits; a residual is a weighted sum of readings
//! without their bias, of codes times `2^16`, and a constant. Nothing numeric is derived here.

use serde::Deserialize;

use super::Malformed;

/// The format's version.
pub const VERSION: u32 = 1;
/// Bits of a reading.
pub const READING_BITS: usize = 32;
/// Added to a reading, so that it is not negative.
pub const BIAS: i128 = 1 << 31;
/// The fixed-point scale: one unit of a code.
pub const SCALE: i128 = 1 << 16;
/// Residuals and tolerances stay below this, which is far below the field's order.
pub const LARGEST_RESIDUAL: i128 = 1 << 100;

const MOST_CODES: usize = 64;
const MOST_CHANNELS: usize = 1 << 10;
const MOST_SAMPLES: usize = 1 << 10;
const DEEPEST: usize = 20;

/// Every integer of the statement.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// [`VERSION`].
    pub version: u32,
    /// A hexadecimal hash of the channels and of how their readings became integers.
    pub encoding: String,
    /// How many rows are opened, each with the row before it.
    pub samples: usize,
    /// The tree has `2^depth` leaves.
    pub depth: usize,
    /// How many continuous channels a row has.
    pub readings: usize,
    /// The legal codes of each actuator.
    pub actuators: Vec<Vec<i64>>,
    /// Couplings: an actuator determines a flow.
    pub couplings: Vec<Coupling>,
    /// Balances: a level moves by its flows.
    pub balances: Vec<Balance>,
}

/// `flow_weight * flow + code_weight * code + constant`, while the actuator shows on or off.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coupling {
    /// The flow, among the readings.
    pub flow: usize,
    /// Its weight.
    pub flow_weight: i64,
    /// The actuator.
    pub actuator: usize,
    /// The weight of its code times [`SCALE`].
    pub code_weight: i64,
    /// The constant that is added.
    pub constant: i64,
    /// The places of its off and its on code among the legal ones.
    pub states: [usize; 2],
    /// Whether the row before must show the same code for the rule to apply.
    pub steady: bool,
    /// The largest residual that does not violate the rule.
    pub tolerance: i64,
}

/// Weighted readings of a row and of the row before it, and a constant.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Balance {
    /// Readings of the row before, and their weights.
    pub before: Vec<(usize, i64)>,
    /// Readings of the row, and their weights.
    pub now: Vec<(usize, i64)>,
    /// The constant that is added.
    pub constant: i64,
    /// The largest residual that does not violate the rule.
    pub tolerance: i64,
}

impl Statement {
    /// Read a statement and check that the circuit can state it soundly.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let statement: Self = serde_json::from_slice(bytes)
            .map_err(|error| Malformed(format!("not a statement: {error}")))?;
        statement.check().map_err(Malformed)?;
        Ok(statement)
    }

    fn check(&self) -> Result<(), String> {
        demand(self.version == VERSION, || {
            format!("version {} is not {VERSION}", self.version)
        })?;
        demand((1..=DEEPEST).contains(&self.depth), || {
            format!("a tree of depth {} is not 1 to {DEEPEST} deep", self.depth)
        })?;
        let most = MOST_SAMPLES.min((1 << self.depth) - 1);
        demand((1..=most).contains(&self.samples), || {
            format!("{} samples are not 1 to {most}", self.samples)
        })?;
        let channels = self.readings.saturating_add(self.actuators.len());
        demand(channels <= MOST_CHANNELS, || {
            format!("a row of {channels} channels has more than {MOST_CHANNELS}")
        })?;
        for codes in &self.actuators {
            let mut distinct = codes.clone();
            distinct.sort_unstable();
            distinct.dedup();
            demand(
                distinct.len() == codes.len() && (1..=MOST_CODES).contains(&codes.len()),
                || format!("an actuator has 1 to {MOST_CODES} codes, each once"),
            )?;
        }
        demand(
            !self.couplings.is_empty() || !self.balances.is_empty(),
            || "there is no rule to prove".into(),
        )?;
        self.couplings
            .iter()
            .try_for_each(|rule| self.check_coupling(rule))?;
        self.balances
            .iter()
            .try_for_each(|rule| self.check_balance(rule))
    }

    fn check_coupling(&self, rule: &Coupling) -> Result<(), String> {
        self.demand_reading(rule.flow)?;
        let codes = self.actuators.get(rule.actuator);
        let codes = codes.ok_or_else(|| format!("no actuator {}", rule.actuator))?;
        let [off, on] = rule.states;
        demand(off != on && off.max(on) < codes.len(), || {
            format!("{off} and {on} are not two of {} codes", codes.len())
        })?;
        let code = codes.iter().map(|code| i128::from(*code).abs()).max();
        // Saturating: what would overflow is far beyond the bound, and must not wrap below it.
        let largest = (i128::from(rule.code_weight).abs() * SCALE)
            .saturating_mul(code.unwrap_or(0))
            .saturating_add(i128::from(rule.flow_weight).abs() * BIAS)
            .saturating_add(i128::from(rule.constant).abs());
        demand_bounded(largest, rule.tolerance)
    }

    fn check_balance(&self, rule: &Balance) -> Result<(), String> {
        let mut largest = i128::from(rule.constant).abs();
        for (reading, weight) in rule.before.iter().chain(&rule.now) {
            self.demand_reading(*reading)?;
            largest = largest.saturating_add(i128::from(*weight).abs() * BIAS);
        }
        demand_bounded(largest, rule.tolerance)
    }

    fn demand_reading(&self, reading: usize) -> Result<(), String> {
        demand(reading < self.readings, || format!("no reading {reading}"))
    }
}

fn demand_bounded(largest: i128, tolerance: i64) -> Result<(), String> {
    demand(tolerance >= 0 && largest < LARGEST_RESIDUAL, || {
        format!("a residual could reach {largest}, or its tolerance {tolerance} is negative")
    })
}

fn demand(held: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if held { Ok(()) } else { Err(why()) }
}
