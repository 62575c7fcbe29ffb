//! Whether a circuit can state it: every index is known, no lane overflows, no residual wraps.

use super::super::ladder::RADIX;
use super::super::{Malformed, ORDER};
use super::{
    Coupling, Flows, Interval, LARGEST_RESIDUAL, REGISTER_TOP, Register, Residual, Source,
    Spectrum, Statement, Statistic, Summed, SwitchBand, Term, Tie, VERSION,
};

const MOST_CODES: u64 = 64;
const LONGEST: u64 = 1 << 16;

/// The longest block of a spectrum: a time jump in every row of it does not wrap its sum.
const LONGEST_SPECTRUM: u64 = 1 << 12;

/// The most lags and channels of a statistic: its integers stay below 36 MB.
const MOST_LAGS: usize = 64;
const MOST_SUMMED: usize = 256;

/// The narrowest band and the narrowest sums: their digits, at most 6 and 16, all weigh something.
const LEAST_BAND: u64 = 6 * (RADIX - 1);
const LEAST_SUMS: u64 = 16 * (RADIX - 1);

impl Statement {
    pub(super) fn check(&self) -> Result<(), Malformed> {
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
        for idle in &self.idle {
            let known = self.actuators.get(idle.actuator);
            demand(known.is_some_and(|found| idle.code < found.codes), || {
                format!("actuator {} has no code {}", idle.actuator, idle.code)
            })?;
        }
        self.ties.iter().try_for_each(|tie| self.check_tie(tie))?;
        self.switches
            .iter()
            .try_for_each(|band| self.check_switches(band))?;
        self.spectra
            .iter()
            .try_for_each(|noise| self.check_spectrum(noise))?;
        self.statistic
            .as_ref()
            .map_or(Ok(()), |statistic| self.check_statistic(statistic))
    }

    /// Every channel is committed to, can change, and is read by a rule if it is an actuator.
    fn check_statistic(&self, statistic: &Statistic) -> Result<(), Malformed> {
        let named = statistic.settings.len() == 64
            && statistic
                .settings
                .bytes()
                .all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
        demand(named, || "the settings of the statistic are no hash".into())?;
        demand((1..=MOST_LAGS).contains(&statistic.lags), || {
            format!("a statistic of {} lags", statistic.lags)
        })?;
        let channels = statistic.channels.len();
        demand((1..=MOST_SUMMED).contains(&channels), || {
            format!("a statistic of {channels} channels")
        })?;
        let mut seen = Vec::new();
        for summed in &statistic.channels {
            let source = match summed {
                Summed::Register(index) => {
                    self.register(*index)?;
                    let Register { low, high } = self.registers[*index];
                    demand(low < high, || format!("register {index} cannot change"))?;
                    Source::Register(*index)
                }
                Summed::Actuator { actuator, codes } => {
                    let last = codes.len() as u64;
                    demand(last > 0, || "an actuator is summed without codes".into())?;
                    self.code(*actuator, last - 1)?;
                    demand(self.actuators[*actuator].codes == last, || {
                        format!("actuator {actuator} has other codes than are summed")
                    })?;
                    demand(codes.iter().all(|code| *code <= REGISTER_TOP), || {
                        "a code is no register".into()
                    })?;
                    Source::Actuator(*actuator)
                }
            };
            demand(!seen.contains(&source), || {
                format!("{source:?} is summed twice")
            })?;
            seen.push(source);
        }
        Ok(())
    }

    fn check_tie(&self, tie: &Tie) -> Result<(), Malformed> {
        self.register(tie.register)?;
        tolerance(tie.usual, tie.severe)?;
        let own = i128::from(tie.weight).abs() * i128::from(REGISTER_TOP);
        let terms = self.reach(&tie.terms)?;
        let reach = own + terms + i128::from(tie.constant).abs();
        demand(reach < LARGEST_RESIDUAL, || {
            format!("a residual could reach {reach}")
        })
    }

    fn check_switches(&self, band: &SwitchBand) -> Result<(), Malformed> {
        self.register(band.register)?;
        for (at, code) in band.codes.iter().enumerate() {
            self.code(band.actuator, *code)?;
            demand(!band.codes[..at].contains(code), || {
                "an on code stands twice".into()
            })?;
        }
        demand(!band.codes.is_empty(), || "no code counts as on".into())?;
        for [low, high] in [band.on, band.off] {
            demand(low <= REGISTER_TOP, || format!("{low} is no register"))?;
            shared([low, high], LEAST_BAND, REGISTER_TOP + RADIX)?;
        }
        Ok(())
    }

    fn check_spectrum(&self, noise: &Spectrum) -> Result<(), Malformed> {
        self.register(noise.register)?;
        let rows = (3..=LONGEST_SPECTRUM).contains(&noise.rows) && noise.offset < noise.rows;
        demand(rows, || {
            format!("a block of {} rows from row {}", noise.rows, noise.offset)
        })?;
        let most = 4 * noise.rows * REGISTER_TOP * REGISTER_TOP + LEAST_SUMS;
        for [low, high] in [noise.first, noise.second] {
            demand(low <= most && high <= 2 * most, || {
                format!("sums of {low} to {high}")
            })?;
            shared([low, high], LEAST_SUMS, most)?;
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
                demand(product < u128::from(ORDER), || {
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
        let share = if residual.averaged { 2 } else { 1 };
        self.register(residual.level)?;
        let flows = i128::from(residual.constant).abs() + share * self.reach(&residual.terms)?;
        let level = i128::from(residual.weight).abs() * i128::from(REGISTER_TOP);
        let reach = level + rows * flows;
        demand(reach < LARGEST_RESIDUAL, || {
            format!("a residual could reach {reach}")
        })
    }

    /// How far terms can get on one row.
    fn reach(&self, terms: &[Term]) -> Result<i128, Malformed> {
        let mut sum = 0;
        for term in terms {
            sum += match term {
                Term::Register { register, weight } => {
                    self.register(*register)?;
                    i128::from(*weight).abs() * i128::from(REGISTER_TOP)
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
        Ok(sum)
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

/// Digits that several intervals share all have the largest radix: the width is a multiple.
fn shared([low, high]: Interval, least: u64, most: u64) -> Result<(), Malformed> {
    let width = high.saturating_sub(low);
    let fits = (least..=most).contains(&width) && width.is_multiple_of(RADIX - 1);
    demand(fits, || {
        format!("{low} to {high} has no width that digits can share")
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
