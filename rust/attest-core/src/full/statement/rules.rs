//! The rules of a statement, one kind after the other.

use serde::Deserialize;

/// Registers between two limits, both allowed.
pub type Interval = [u64; 2];

/// A register inside its limits, unless the row is flagged.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// The register.
    pub register: usize,
    /// The least value.
    pub low: u64,
    /// The largest.
    pub high: u64,
    /// Whether breaking it is severe.
    pub severe: bool,
}

/// The largest steps of a register: on a row that does not violate, and on one that is not severe.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// The register.
    pub register: usize,
    /// The largest step of a row that does not violate.
    pub usual: u64,
    /// The largest step of a row that is not severe.
    pub severe: u64,
}

/// The flows that go with a state; none where no register would do.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flows {
    /// On a row that does not violate.
    pub usual: Option<Interval>,
    /// On a row that is not severe.
    pub severe: Option<Interval>,
}

/// A code in which an actuator is steady, and its flows.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steady {
    /// The index of the code.
    pub code: u64,
    /// The flows.
    pub flows: Flows,
}

/// An actuator's state fixes the flow past it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coupling {
    /// The register of the flow.
    pub flow: usize,
    /// The actuator.
    pub actuator: usize,
    /// Rows after a switch, the switch among them, on which the envelope holds instead.
    pub settle: u64,
    /// Pumps and their off codes: no relation holds while another code shows.
    pub standby: Vec<(usize, u64)>,
    /// The steady codes.
    pub steady: Vec<Steady>,
    /// The flows in transition.
    pub envelope: Flows,
}

/// A weighted register, or with codes a weighted indicator that one of them shows.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Term {
    /// A register and its weight.
    Register {
        /// The register.
        register: usize,
        /// Its weight.
        weight: i64,
    },
    /// An indicator and its weight.
    Indicator {
        /// The actuator.
        actuator: usize,
        /// The codes it is one on.
        codes: Vec<u64>,
        /// Its weight.
        weight: i64,
    },
}

/// `weight * (level - level before) - (terms + terms before where averaged + constant)`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Residual {
    /// The register of the level.
    pub level: usize,
    /// Its weight.
    pub weight: i64,
    /// What flows in and out.
    pub terms: Vec<Term>,
    /// Whether the row before counts too.
    pub averaged: bool,
    /// What flows besides, a row.
    pub constant: i64,
}

/// A level moves as its flows say, from row to row.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Balance {
    /// The relation.
    pub residual: Residual,
    /// The largest residual of a row that does not violate.
    pub usual: u64,
    /// The largest residual of a row that is not severe.
    pub severe: u64,
}

/// The same, summed over rows and judged at anchors.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The relation of one row.
    pub residual: Residual,
    /// How many rows are summed.
    pub rows: u64,
    /// The largest sum of a window that does not violate.
    pub usual: u64,
}

/// An actuator that shows one code, unless the row is flagged.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idle {
    /// The actuator.
    pub actuator: usize,
    /// The index of the code.
    pub code: u64,
}

/// Other channels of the row predict a register: `weight * register - (terms + constant)`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tie {
    /// The register.
    pub register: usize,
    /// Its weight.
    pub weight: i64,
    /// What predicts it.
    pub terms: Vec<Term>,
    /// What is predicted besides.
    pub constant: i64,
    /// The largest residual of a row that does not violate.
    pub usual: u64,
    /// The largest residual of a row that is not severe.
    pub severe: u64,
}

/// An actuator switches on where a register lies in one interval, and off where it lies in another.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchBand {
    /// The actuator.
    pub actuator: usize,
    /// The codes that count as on.
    pub codes: Vec<u64>,
    /// The register.
    pub register: usize,
    /// Whether the register of the row before the switch decides.
    pub before: bool,
    /// Where it switches on. The upper end may lie beyond all registers.
    pub on: Interval,
    /// Where it switches off.
    pub off: Interval,
}

/// Sums of squared first and second differences of a register over blocks that lie side by side.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spectrum {
    /// The register.
    pub register: usize,
    /// The length of a block.
    pub rows: u64,
    /// The rows before the first block.
    pub offset: u64,
    /// The sum of squared first differences.
    pub first: Interval,
    /// The sum of squared second differences.
    pub second: Interval,
}

/// A level moves within every block of rows.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Liveness {
    /// The register of the level.
    pub register: usize,
    /// The length of a block.
    pub rows: u64,
    /// The least distance between its largest and its least register.
    pub least: u64,
}

/// What is summed over the rows: products of channels and of channels so many rows earlier.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistic {
    /// A hash of which channels these are and how their readings became integers, in hexadecimal.
    pub settings: String,
    /// How many lags, the row itself among them.
    pub lags: usize,
    /// The channels, in the order of the sums.
    pub channels: Vec<Summed>,
    /// Whether the sums stay hidden: the form comes out with a mask added. A statement that shows
    /// its sums does not name it.
    #[serde(default)]
    pub masked: bool,
}

/// A channel of a statistic.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Summed {
    /// A register as it is.
    Register(usize),
    /// The code an actuator shows; one that is not known counts as zero.
    Actuator {
        /// The actuator.
        actuator: usize,
        /// Its codes, by index.
        codes: Vec<u64>,
    },
}
