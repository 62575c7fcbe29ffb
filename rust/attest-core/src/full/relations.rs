//! Rules of one row and its predecessor: bounds, ties, rates, balances.

use p3_field::{Dup, PrimeCharacteristicRing};

use super::channels::{Channels, own_bound};
use super::columns::{Column, Columns, F, Row, Rows, constant, element, not};
use super::ladder::{Digit, Dual, Ladder};
use super::statement::{self, REGISTER_TOP, Statement, Term};

/// A bound that a flagged row may break.
#[derive(Debug)]
pub struct Bound {
    rule: statement::Bound,
    ladder: Ladder,
}

impl Bound {
    /// Hand out the columns.
    pub fn new(rule: &statement::Bound, columns: &mut Columns) -> Self {
        Self {
            rule: *rule,
            ladder: columns.ladder(rule.high - rule.low, 0),
        }
    }

    /// The register less the lower limit is between zero and the upper one.
    pub fn local<R: Rows>(&self, channels: &Channels, rows: &mut R) {
        let held = if self.rule.severe {
            channels.judged(rows)
        } else {
            rows.public(channels.real) * not(rows.here(channels.violating))
        };
        let above = rows.register(Row::Here, self.rule.register) - F::from_u64(self.rule.low);
        rows.within(&self.ladder, held * above);
    }
}

/// A value within a usual bound either way, or within a severe one on a flagged row.
#[derive(Debug)]
struct Tolerance {
    usual: u64,
    severe: u64,
    reach: Reach,
}

/// The digits of a tolerance.
#[derive(Debug)]
enum Reach {
    /// Other weights on a flagged row.
    Either(Dual),
    /// More digits on a flagged row, if it reaches further at all.
    Further(Ladder),
}

impl Tolerance {
    fn new(usual: u64, severe: u64, columns: &mut Columns) -> Self {
        let either = if usual < severe {
            columns.dual(2 * usual, 2 * severe)
        } else {
            None
        };
        Self {
            usual,
            severe,
            reach: either
                .map(Reach::Either)
                .unwrap_or_else(|| Reach::Further(columns.ladder(2 * usual, 2 * (severe - usual)))),
        }
    }

    fn hold<R: Rows>(&self, channels: &Channels, rows: &mut R, value: R::Value) {
        let further = element(i128::from(self.severe - self.usual));
        let violating = rows.here(channels.violating);
        let above = value + violating.dup() * further + F::from_u64(self.usual);
        match &self.reach {
            Reach::Either(dual) => rows.either(dual, violating, above),
            Reach::Further(ladder) => rows.within(ladder, above),
        }
    }

    fn digits(&self) -> Vec<Digit> {
        match &self.reach {
            Reach::Either(dual) => dual.digits().to_vec(),
            Reach::Further(ladder) => ladder.digits().copied().collect(),
        }
    }
}

/// A register's step from row to row.
#[derive(Debug)]
pub struct Rate {
    register: usize,
    tolerance: Tolerance,
}

impl Rate {
    /// Hand out the columns; none for a rate that no step could break.
    pub fn new(rule: &statement::Rate, columns: &mut Columns) -> Option<Self> {
        let severe = rule.severe.min(REGISTER_TOP);
        (rule.usual < REGISTER_TOP).then(|| Self {
            register: rule.register,
            tolerance: Tolerance::new(rule.usual, severe, columns),
        })
    }

    /// The step is within tolerance, where a row follows in the same segment.
    pub fn step<R: Rows>(&self, channels: &Channels, rows: &mut R) {
        let step =
            rows.register(Row::Here, self.register) - rows.register(Row::Before, self.register);
        self.tolerance
            .hold(channels, rows, channels.following(rows) * step);
    }
}

/// A balance from row to row.
#[derive(Debug)]
pub struct Balance {
    residual: Residual,
    tolerance: Tolerance,
}

impl Balance {
    /// Hand out the columns.
    pub fn new(rule: &statement::Balance, columns: &mut Columns) -> Self {
        Self {
            residual: Residual(rule.residual.clone()),
            tolerance: Tolerance::new(rule.usual, rule.severe, columns),
        }
    }

    /// The residual is within tolerance, where a row follows in the same segment.
    pub fn step<R: Rows>(&self, channels: &Channels, rows: &mut R) {
        let residual = self.residual.value(channels, rows);
        self.tolerance
            .hold(channels, rows, channels.following(rows) * residual);
    }
}

/// What a level moved less what its flows say.
#[derive(Debug)]
pub struct Residual(pub statement::Residual);

impl Residual {
    /// Its value on the judged row.
    pub fn value<R: Rows>(&self, channels: &Channels, rows: &R) -> R::Value {
        let level = |row| rows.register(row, self.0.level);
        let risen = (level(Row::Here) - level(Row::Before)) * element(self.0.weight.into());
        let mut flow = self.flow(channels, rows, Row::Here);
        if self.0.averaged {
            flow += self.flow(channels, rows, Row::Before);
        }
        risen - flow - constant::<R::Value>(self.0.constant.into())
    }

    fn flow<R: Rows>(&self, channels: &Channels, rows: &R, row: Row) -> R::Value {
        sum(&self.0.terms, channels, rows, row)
    }
}

/// The weighted terms of a row.
fn sum<R: Rows>(terms: &[Term], channels: &Channels, rows: &R, row: Row) -> R::Value {
    let term = |term: &Term| match term {
        Term::Register { register, weight } => {
            rows.register(row, *register) * element((*weight).into())
        }
        Term::Indicator {
            actuator,
            codes,
            weight,
        } => {
            let actuator = &channels.actuators[*actuator];
            let shown: R::Value = codes
                .iter()
                .map(|code| actuator.shows(rows, row, *code))
                .sum();
            shown * element((*weight).into())
        }
    };
    terms.iter().map(term).sum()
}

/// A register that other channels of the row predict.
#[derive(Debug)]
pub struct Tie {
    rule: statement::Tie,
    tolerance: Tolerance,
}

impl Tie {
    /// Hand out the columns.
    pub fn new(rule: &statement::Tie, columns: &mut Columns) -> Self {
        Self {
            rule: rule.clone(),
            tolerance: Tolerance::new(rule.usual, rule.severe, columns),
        }
    }

    /// The residual is within tolerance on every row of the batch.
    pub fn local<R: Rows>(&self, channels: &Channels, rows: &mut R) {
        let shown = rows.register(Row::Here, self.rule.register) * element(self.rule.weight.into());
        let predicted = sum(&self.rule.terms, channels, rows, Row::Here)
            + constant::<R::Value>(self.rule.constant.into());
        self.tolerance
            .hold(channels, rows, channels.judged(rows) * (shown - predicted));
    }
}

/// Every rule of this kind.
#[derive(Debug)]
pub struct Relations {
    bounds: Vec<Bound>,
    rates: Vec<Rate>,
    balances: Vec<Balance>,
    ties: Vec<Tie>,
}

impl Relations {
    /// Hand out the columns.
    pub fn new(statement: &Statement, columns: &mut Columns) -> Self {
        Self {
            bounds: (0..statement.bounds.len())
                .map(|at| (at, &statement.bounds[at]))
                .filter(|(at, rule)| own_bound(rule.register, statement) != Some(*at))
                .map(|(_, rule)| Bound::new(rule, columns))
                .collect(),
            rates: statement
                .rates
                .iter()
                .filter_map(|rule| Rate::new(rule, columns))
                .collect(),
            balances: statement
                .balances
                .iter()
                .map(|rule| Balance::new(rule, columns))
                .collect(),
            ties: statement
                .ties
                .iter()
                .map(|rule| Tie::new(rule, columns))
                .collect(),
        }
    }

    /// Whether a column belongs to a sum over two rows, which no constraint reads on the first.
    #[must_use]
    pub fn reads_two_rows(&self, column: Column) -> bool {
        let rates = self.rates.iter().map(|rate| &rate.tolerance);
        let balances = self.balances.iter().map(|balance| &balance.tolerance);
        rates
            .chain(balances)
            .flat_map(Tolerance::digits)
            .any(|digit| digit.column == column)
    }

    /// What holds on one row.
    pub fn local<R: Rows>(&self, channels: &Channels, rows: &mut R) {
        self.bounds
            .iter()
            .for_each(|bound| bound.local(channels, rows));
        self.ties.iter().for_each(|tie| tie.local(channels, rows));
    }

    /// What holds between neighbours.
    pub fn step<R: Rows>(&self, channels: &Channels, rows: &mut R) {
        self.rates.iter().for_each(|rate| rate.step(channels, rows));
        self.balances
            .iter()
            .for_each(|balance| balance.step(channels, rows));
    }
}
