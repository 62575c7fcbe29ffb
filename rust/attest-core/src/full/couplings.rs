//! Couplings: an actuator's state fixes the flow past it, once it has settled.

use p3_field::{Dup, PrimeCharacteristicRing};

use super::channels::Channels;
use super::columns::{Column, Columns, F, Row, Rows, element, not};
use super::ladder::{Ladder, RADIX};
use super::statement::{self, Flows, REGISTER_TOP, Statement};

/// Whether an actuator switched on this row, or a segment began.
#[derive(Debug)]
struct Switch {
    actuator: usize,
    codes: u64,
    switched: Column,
}

impl Switch {
    fn step<R: Rows>(&self, channels: &Channels, rows: &mut R) {
        let actuator = &channels.actuators[self.actuator];
        let same: R::Value = (0..=self.codes)
            .map(|code| {
                actuator.shows(rows, Row::Before, code) * actuator.shows(rows, Row::Here, code)
            })
            .sum();
        let same = match channels.start {
            Some(start) => same * not(rows.here(start)),
            None => same,
        };
        rows.define(self.switched, not(same));
    }
}

/// How many rows of settling are left, this one among them, and whether any are.
#[derive(Debug)]
struct Countdown {
    switched: Column,
    settle: u64,
    left: Column,
    any: Column,
    inverse: Column,
}

impl Countdown {
    fn step<R: Rows>(&self, rows: &mut R) {
        let switched = rows.here(self.switched);
        let one_less = rows.cell(Row::Before, self.left) - rows.cell(Row::Before, self.any);
        let left = switched.dup() * F::from_u64(self.settle) + not(switched) * one_less;
        rows.define(self.left, left);
    }
}

/// One where all of several standby pumps are off: their product, few enough at a time.
#[derive(Debug)]
struct Quiet {
    standby: Vec<(usize, u64)>,
    products: Vec<Column>,
}

const FACTORS: usize = RADIX as usize - 1;

impl Quiet {
    fn local<R: Rows>(&self, channels: &Channels, rows: &mut R) {
        let mut so_far = R::Value::ONE;
        for (pumps, product) in self.standby.chunks(FACTORS).zip(&self.products) {
            for (pump, off) in pumps {
                so_far *= channels.actuators[*pump].shows(rows, Row::Here, *off);
            }
            so_far = rows.define(*product, so_far);
        }
    }

    fn value<R: Rows>(&self, channels: &Channels, rows: &R) -> R::Value {
        match (self.products.last(), self.standby.first()) {
            (Some(product), _) => rows.here(*product),
            (None, Some((pump, off))) => channels.actuators[*pump].shows(rows, Row::Here, *off),
            (None, None) => R::Value::ONE,
        }
    }
}

/// A coupling and where its parts stand.
#[derive(Debug)]
struct Coupling {
    rule: statement::Coupling,
    settling: Option<Column>,
    quiet: usize,
    above_low: Ladder,
    below_high: Ladder,
}

impl Coupling {
    /// One where the steady relation holds, summed over the steady codes.
    fn steady<R: Rows>(&self, channels: &Channels, rows: &R, row: Row) -> R::Value {
        let actuator = &channels.actuators[self.rule.actuator];
        let codes = self.rule.steady.iter();
        let shown: R::Value = codes
            .map(|steady| actuator.shows(rows, row, steady.code))
            .sum();
        match self.settling {
            Some(settling) => shown * not(rows.cell(row, settling)),
            None => shown,
        }
    }

    /// Each way to be judged: the flows, and one where they are what is demanded.
    fn cases<R: Rows>(&self, channels: &Channels, rows: &R) -> Vec<(Flows, R::Value)> {
        let actuator = &channels.actuators[self.rule.actuator];
        let calm = match self.settling {
            Some(settling) => not(rows.here(settling)),
            None => R::Value::ONE,
        };
        let case = |steady: &statement::Steady| {
            (
                steady.flows,
                actuator.shows(rows, Row::Here, steady.code) * calm.dup(),
            )
        };
        let mut cases: Vec<_> = self.rule.steady.iter().map(case).collect();
        let moving = not(self.steady(channels, rows, Row::Here));
        cases.push((self.rule.envelope, moving));
        cases
    }

    /// The flow lies between the limits of the case at hand, which a flag widens.
    fn judge<R: Rows>(&self, channels: &Channels, quiet: &Quiet, rows: &mut R) {
        let violating = rows.here(channels.violating);
        let judged = channels.judged(rows) * quiet.value(channels, rows);
        let [mut low, mut high] = [R::Value::ZERO, R::Value::ZERO];
        let [mut flagged, mut hopeless] = [None, None];
        for (flows, here) in self.cases(channels, rows) {
            let severe = flows.severe.unwrap_or([0, REGISTER_TOP]);
            let usual = flows.usual.unwrap_or(severe);
            let limit = |usual: u64, severe: u64| {
                let moved = element(i128::from(severe) - i128::from(usual));
                (violating.dup() * moved + F::from_u64(usual)) * here.dup()
            };
            low += limit(usual[0], severe[0]);
            high += limit(usual[1], severe[1]);
            let none = match (flows.usual, flows.severe) {
                (_, None) => Some(&mut hopeless),
                (None, Some(_)) => Some(&mut flagged),
                _ => None,
            };
            if let Some(sum) = none {
                *sum = Some(sum.take().unwrap_or(R::Value::ZERO) + here);
            }
        }
        let flow = rows.register(Row::Here, self.rule.flow);
        rows.within(&self.above_low, judged.dup() * (flow.dup() - low));
        rows.within(&self.below_high, judged.dup() * (high - flow));
        if let Some(flagged) = flagged {
            rows.zero(judged.dup() * flagged * not(violating));
        }
        if let Some(hopeless) = hopeless {
            rows.zero(judged * hopeless);
        }
    }
}

/// Every coupling, with what several of them share.
#[derive(Debug)]
pub struct Couplings {
    switches: Vec<Switch>,
    countdowns: Vec<Countdown>,
    quiets: Vec<Quiet>,
    couplings: Vec<Coupling>,
}

impl Couplings {
    /// Hand out the columns.
    pub fn new(statement: &Statement, columns: &mut Columns) -> Self {
        let mut made = Self {
            switches: Vec::new(),
            countdowns: Vec::new(),
            quiets: Vec::new(),
            couplings: Vec::new(),
        };
        for rule in &statement.couplings {
            let widest = widest(rule);
            let coupling = Coupling {
                settling: made.settling(statement, rule, columns),
                quiet: made.quiet(&rule.standby, columns),
                above_low: columns.ladder(widest, 0),
                below_high: columns.ladder(widest, 0),
                rule: rule.clone(),
            };
            made.couplings.push(coupling);
        }
        made
    }

    fn settling(
        &mut self,
        statement: &Statement,
        rule: &statement::Coupling,
        columns: &mut Columns,
    ) -> Option<Column> {
        if rule.settle == 0 {
            return None;
        }
        let known = self
            .switches
            .iter()
            .find(|switch| switch.actuator == rule.actuator);
        let switched = known.map(|switch| switch.switched).unwrap_or_else(|| {
            let switched = columns.cell();
            let codes = statement.actuators[rule.actuator].codes;
            self.switches.push(Switch {
                actuator: rule.actuator,
                codes,
                switched,
            });
            switched
        });
        if rule.settle == 1 {
            return Some(switched);
        }
        let settle = rule.settle;
        let known = |count: &&Countdown| count.switched == switched && count.settle == settle;
        let any = self.countdowns.iter().find(known).map(|count| count.any);
        Some(any.unwrap_or_else(|| {
            let [left, any, inverse] = [(); 3].map(|()| columns.cell());
            self.countdowns.push(Countdown {
                switched,
                settle,
                left,
                any,
                inverse,
            });
            any
        }))
    }

    fn quiet(&mut self, standby: &[(usize, u64)], columns: &mut Columns) -> usize {
        if let Some(found) = self
            .quiets
            .iter()
            .position(|quiet| quiet.standby == standby)
        {
            return found;
        }
        let products = if standby.len() < 2 {
            0
        } else {
            standby.len().div_ceil(FACTORS)
        };
        let products = (0..products).map(|_| columns.cell()).collect();
        self.quiets.push(Quiet {
            standby: standby.to_vec(),
            products,
        });
        self.quiets.len() - 1
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.couplings.len()
    }

    /// The columns that say whether an actuator still settles, and that show it.
    pub fn countdowns(&self) -> impl Iterator<Item = (Column, Column)> {
        self.countdowns
            .iter()
            .map(|count| (count.any, count.inverse))
    }

    /// A batch begins with every actuator unsettled.
    pub fn first<R: Rows>(&self, rows: &mut R) {
        for switch in &self.switches {
            rows.define(switch.switched, R::Value::ONE);
        }
        for countdown in &self.countdowns {
            rows.define(
                countdown.left,
                R::Value::from(F::from_u64(countdown.settle)),
            );
        }
    }

    /// What the row before leads to.
    pub fn step<R: Rows>(&self, channels: &Channels, rows: &mut R) {
        self.switches
            .iter()
            .for_each(|switch| switch.step(channels, rows));
        self.countdowns
            .iter()
            .for_each(|countdown| countdown.step(rows));
    }

    /// What follows from the row itself.
    pub fn local<R: Rows>(&self, channels: &Channels, rows: &mut R) {
        for countdown in &self.countdowns {
            rows.nonzero(rows.here(countdown.left), countdown.any, countdown.inverse);
        }
        self.quiets
            .iter()
            .for_each(|quiet| quiet.local(channels, rows));
    }

    /// Every flow is within its limits.
    pub fn judge<R: Rows>(&self, channels: &Channels, rows: &mut R) {
        for coupling in &self.couplings {
            coupling.judge(channels, &self.quiets[coupling.quiet], rows);
        }
    }

    /// One, for each coupling, on rows under the envelope or beside a running standby pump.
    pub fn unsteady<R: Rows>(&self, channels: &Channels, rows: &R) -> Vec<R::Value> {
        let unsteady = |coupling: &Coupling| {
            let quiet = self.quiets[coupling.quiet].value(channels, rows);
            not(quiet * coupling.steady(channels, rows, Row::Here))
        };
        self.couplings.iter().map(unsteady).collect()
    }
}

/// How far apart the limits of any case are: no slack within them is larger.
fn widest(rule: &statement::Coupling) -> u64 {
    let cases = rule
        .steady
        .iter()
        .map(|steady| steady.flows)
        .chain([rule.envelope]);
    let width = |flows: Flows| flows.severe.map_or(REGISTER_TOP, |[low, high]| high - low);
    cases.map(width).max().unwrap_or(REGISTER_TOP)
}
