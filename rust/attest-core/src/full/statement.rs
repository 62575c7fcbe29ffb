//! What is proven of a batch, as integers that Python derived from a rules file and a policy.
//!
//! Nothing numeric is derived here: a statement is read, checked for being one the circuit can state
//! soundly, and handed on. Its bytes are hashed into the circuit's identity as they came.

use serde::Deserialize;

use super::Malformed;

/// The largest register: readings are quantised to sixteen bits.
pub const REGISTER_TOP: u64 = (1 << 16) - 1;

/// Residuals stay below half the field's order, so that none wraps round into tolerance.
pub const LARGEST_RESIDUAL: i128 = 1 << 62;

/// The version of the format.
pub const VERSION: u32 = 1;

const MOST_CODES: u64 = 64;
const LONGEST: u64 = 1 << 16;

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
    /// How many codes are told apart.
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
        }
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

    fn check(&self) -> Result<(), Malformed> {
        demand(self.version == VERSION, || {
            format!("version {} is not {VERSION}", self.version)
        })?;
        let digits =
            self.encoding.len() == 64 && self.encoding.bytes().all(|c| c.is_ascii_hexdigit());
        demand(digits, || "the encoding is no hash".into())?;
        for register in &self.registers {
            interval([register.low, register.high])?;
        }
        for actuator in &self.actuators {
            demand((1..=MOST_CODES).contains(&actuator.codes), || {
                format!("an actuator has {} codes", actuator.codes)
            })?;
            let known = actuator.legal.iter().all(|code| *code < actuator.codes);
            demand(known, || "a legal code has no index".into())?;
        }
        self.check_lanes()?;
        self.check_rows()?;
        self.couplings
            .iter()
            .try_for_each(|c| self.check_coupling(c))?;
        for balance in &self.balances {
            self.check_residual(&balance.residual, 1)?;
            tolerance(balance.usual, balance.severe)?;
        }
        for window in &self.windows {
            let rows = (2..=LONGEST).contains(&window.rows);
            demand(rows, || format!("a window of {} rows", window.rows))?;
            self.check_residual(&window.residual, i128::from(window.rows))?;
            tolerance(window.usual, window.usual)?;
        }
        Ok(())
    }

    fn check_rows(&self) -> Result<(), Malformed> {
        for bound in &self.bounds {
            self.register(bound.register)?;
            interval([bound.low, bound.high])?;
        }
        for rate in &self.rates {
            self.register(rate.register)?;
            demand(rate.usual <= rate.severe, || {
                "a severe step is the longer one".into()
            })?;
        }
        for fact in &self.liveness {
            self.register(fact.register)?;
            demand((1..=LONGEST).contains(&fact.rows), || {
                format!("a block of {} rows", fact.rows)
            })?;
            demand(fact.least <= REGISTER_TOP, || {
                format!("a range of {}", fact.least)
            })?;
        }
        Ok(())
    }

    /// Every channel stands in one lane, once, in mixed radix below the field's order: packing is
    /// injective, so that the digest binds every channel.
    fn check_lanes(&self) -> Result<(), Malformed> {
        let mut expected: Vec<Source> = (0..self.registers.len()).map(Source::Register).collect();
        expected.extend((0..self.actuators.len()).map(Source::Actuator));
        if self.jumps {
            expected.push(Source::Start);
        }
        for lane in &self.lanes {
            let mut product: u128 = 1;
            for packed in lane {
                let at = expected.iter().position(|source| *source == packed.source);
                let at = at.ok_or_else(|| {
                    Malformed(format!("{:?} is packed twice or unknown", packed.source))
                })?;
                expected.swap_remove(at);
                demand(u128::from(packed.weight) == product, || {
                    format!("the weight of {:?} is not {product}", packed.source)
                })?;
                product *= u128::from(self.radix(packed.source));
                demand(product < u128::from(super::ORDER), || {
                    "a lane overflows the field".into()
                })?;
            }
        }
        demand(expected.is_empty() && !self.lanes.is_empty(), || {
            format!("{expected:?} is in no lane")
        })
    }

    fn check_coupling(&self, coupling: &Coupling) -> Result<(), Malformed> {
        self.register(coupling.flow)?;
        demand(coupling.settle <= LONGEST, || {
            format!("{} rows to settle", coupling.settle)
        })?;
        for (pump, off) in &coupling.standby {
            self.code(*pump, *off)?;
        }
        let mut seen = Vec::new();
        for steady in &coupling.steady {
            self.code(coupling.actuator, steady.code)?;
            demand(!seen.contains(&steady.code), || {
                "a steady code stands twice".into()
            })?;
            seen.push(steady.code);
            flows(steady.flows)?;
        }
        flows(coupling.envelope)
    }

    fn check_residual(&self, residual: &Residual, rows: i128) -> Result<(), Malformed> {
        let top = i128::from(REGISTER_TOP);
        let share = if residual.averaged { 2 } else { 1 };
        self.register(residual.level)?;
        let mut flows = i128::from(residual.constant).abs();
        for term in &residual.terms {
            flows += share
                * match term {
                    Term::Register { register, weight } => {
                        self.register(*register)?;
                        i128::from(*weight).abs() * top
                    }
                    Term::Indicator {
                        actuator,
                        codes,
                        weight,
                    } => {
                        for code in codes {
                            self.code(*actuator, *code)?;
                        }
                        i128::from(*weight).abs()
                    }
                };
        }
        let reach = i128::from(residual.weight).abs() * top + rows * flows;
        demand(reach < LARGEST_RESIDUAL, || {
            format!("a residual could reach {reach}")
        })
    }

    fn register(&self, index: usize) -> Result<(), Malformed> {
        demand(index < self.registers.len(), || {
            format!("there is no register {index}")
        })
    }

    fn code(&self, actuator: usize, code: u64) -> Result<(), Malformed> {
        let known = self.actuators.get(actuator);
        demand(
            known.is_some_and(|found| found.read && code < found.codes),
            || format!("actuator {actuator} has no code {code} that a rule may read"),
        )
    }
}

fn demand(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Malformed> {
    if holds {
        Ok(())
    } else {
        Err(Malformed(otherwise()))
    }
}

fn interval([low, high]: Interval) -> Result<(), Malformed> {
    demand(low <= high && high <= REGISTER_TOP, || {
        format!("{low} to {high} is no interval")
    })
}

fn tolerance(usual: u64, severe: u64) -> Result<(), Malformed> {
    let fits = (1..=1 << 62).contains(&severe) && (1..=severe).contains(&usual);
    demand(fits, || format!("tolerances of {usual} and {severe}"))
}

/// The severe flows include the usual ones: a flag only ever relaxes.
fn flows(flows: Flows) -> Result<(), Malformed> {
    for found in [flows.usual, flows.severe].into_iter().flatten() {
        interval(found)?;
    }
    let nested = match (flows.usual, flows.severe) {
        (Some(usual), Some(severe)) => severe[0] <= usual[0] && usual[1] <= severe[1],
        (usual, _) => usual.is_none(),
    };
    demand(nested, || "usual flows lie within the severe ones".into())
}
