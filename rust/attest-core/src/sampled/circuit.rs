//! The constraints: sampled rows belong to the committed root, and the rules hold on all but a few of them.

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, Field};

use super::Batch;
use super::constraints::{Constraints, Part, Sum, Wire, weighted};
use super::hashing::hash;
use super::public::Public;
use super::statement::{BIAS, Balance, Coupling, READING_BITS, SCALE, Statement};
use super::tree::{Channel, Shape, Tree, power, salt_of};

/// What the prover knows.
#[derive(Debug, Clone, Copy)]
pub struct Secret<'a> {
    /// The rows.
    pub batch: &'a Batch<'a>,
    /// Their tree.
    pub tree: &'a Tree,
    /// The salt that hides them.
    pub salt: &'a [u8; 32],
}

/// An opened row.
struct Opened {
    readings: Vec<Sum>,   // without their bias
    shows: Vec<Vec<Sum>>, // by actuator, one flag a legal code
}

/// Sums over all samples.
struct Totals {
    violating: Sum,
    inapplicable: Vec<Sum>, // by coupling
}

/// Constrain and assign everything. `flags` says which samples are marked as violating.
pub fn fill(
    constraints: &mut Constraints,
    statement: &Statement,
    shape: &Shape,
    public: &Public<'_>,
    secret: &Secret<'_>,
    flags: &[bool],
) {
    let mut totals = Totals {
        violating: Sum::zero(),
        inapplicable: vec![Sum::zero(); statement.couplings.len()],
    };
    let mut opening = Opening {
        constraints,
        statement,
        shape,
        secret,
    };
    for (sample, (row, flag)) in public.rows.iter().zip(flags).enumerate() {
        let draw = opening.constraints.public(1 + sample);
        let now = opening.open(&draw, *row);
        let before = opening.open(&draw.shifted(-Fr::ONE), row.saturating_sub(1));
        opening.judge(&before, &now, *flag, &mut totals);
    }
    demand_budgets(constraints, statement, &totals);
}

/// Counters stay within the public budgets. The context is squared, so that the system contains it.
fn demand_budgets(constraints: &mut Constraints, statement: &Statement, totals: &Totals) {
    let width = (usize::BITS - statement.samples.leading_zeros()) as usize;
    let first = 1 + statement.samples;
    let counted = std::iter::once(&totals.violating).chain(&totals.inapplicable);
    for (at, total) in counted.enumerate() {
        let left = constraints.public(first + at).less(total);
        constraints.demand_bits(Part::Budgets, &left, width);
    }
    let context = first + 1 + totals.inapplicable.len();
    for half in [context, context + 1] {
        let half = constraints.public(half);
        constraints.product(Part::Context, &half, &half);
    }
}

/// The constraints that do not depend on the number of samples.
pub fn budgets_only(statement: &Statement) -> Constraints {
    let mut constraints = Constraints::new(&vec![Fr::ZERO; super::public::count(statement)], true);
    let totals = Totals {
        violating: Sum::zero(),
        inapplicable: vec![Sum::zero(); statement.couplings.len()],
    };
    demand_budgets(&mut constraints, statement, &totals);
    constraints
}

/// What is needed to open a row.
struct Opening<'a> {
    constraints: &'a mut Constraints,
    statement: &'a Statement,
    shape: &'a Shape,
    secret: &'a Secret<'a>,
}

impl Opening<'_> {
    /// Open the row at `index`. The prover claims that its number in the batch is `row`.
    fn open(&mut self, index: &Sum, row: usize) -> Opened {
        let bits = self
            .constraints
            .demand_bits(Part::Indices, index, self.statement.depth);
        let batch = self.secret.batch;
        let readings: Vec<Sum> = (0..self.statement.readings)
            .map(|at| {
                let draw = Fr::from(batch.reading(row, at));
                weighted(&self.constraints.bits(Part::Readings, draw, READING_BITS))
            })
            .collect();
        let shows: Vec<Vec<Sum>> = (0..self.statement.actuators.len())
            .map(|at| self.show(at, usize::from(batch.code(row, at))))
            .collect();
        let leaf = self.leaf(row, &readings, &shows);
        self.climb(leaf, row, &bits);
        let bias = -signed(BIAS);
        Opened {
            readings: readings
                .into_iter()
                .map(|each| each.shifted(bias))
                .collect(),
            shows,
        }
    }

    /// One flag for each legal code, of which exactly one is set.
    fn show(&mut self, actuator: usize, code: usize) -> Vec<Sum> {
        let codes = self.statement.actuators[actuator].len();
        let rest: Vec<Sum> = (1..codes)
            .map(|at| self.constraints.flag(Part::Codes, at == code))
            .collect();
        let any = rest
            .iter()
            .fold(Sum::zero(), |sum, each| sum.plus(Fr::ONE, each));
        if codes > 2 {
            self.constraints.demand_flag(Part::Codes, &any);
        }
        std::iter::once(any.negated()).chain(rest).collect()
    }

    fn leaf(&mut self, row: usize, readings: &[Sum], shows: &[Vec<Sum>]) -> Sum {
        let salt = salt_of(self.secret.salt, row);
        let mut inputs = vec![self.constraints.private(salt)];
        for channels in &self.shape.elements {
            let mut sum = Sum::zero();
            for (channel, low) in channels {
                sum = match channel {
                    Channel::Reading(at) => sum.plus(power(*low), &readings[*at]),
                    Channel::Code(at) => sum.plus(power(*low), &place(&shows[*at])),
                };
            }
            let element = self.constraints.private(sum.value);
            self.constraints.equal(Part::Packing, &sum, &element.into());
            inputs.push(element);
        }
        hash(self.constraints, Part::Leaf, &inputs)
    }

    /// Hash from a leaf to the root. The bits of the leaf's number say which child each node is.
    fn climb(&mut self, leaf: Sum, row: usize, bits: &[Sum]) {
        let path = self.secret.tree.path(row);
        let (mut node, mut bits) = (leaf, bits);
        for children in path {
            let children: Vec<Wire> = children
                .iter()
                .map(|child| self.constraints.private(*child))
                .collect();
            let (these, above) = bits.split_at(children.len().ilog2() as usize);
            self.select(&children, these, &node);
            node = hash(self.constraints, Part::Tree, &children);
            bits = above;
        }
        let root = self.constraints.public(0);
        self.constraints.equal(Part::Tree, &node, &root);
    }

    /// Demand that the child at this place is the node.
    fn select(&mut self, children: &[Wire], bits: &[Sum], node: &Sum) {
        let mut layer: Vec<Sum> = children.iter().map(|child| (*child).into()).collect();
        for bit in bits {
            let pairs = layer.as_chunks::<2>().0;
            let last = pairs.len() == 1;
            let mut next = Vec::with_capacity(pairs.len());
            for [even, odd] in pairs {
                let apart = odd.clone().less(even);
                let chosen = if last {
                    node.clone()
                } else {
                    let value = even.value + bit.value * apart.value;
                    self.constraints.private(value).into()
                };
                let moved = chosen.clone().less(even);
                self.constraints.enforce(Part::Place, bit, &apart, &moved);
                next.push(chosen);
            }
            layer = next;
        }
    }

    /// Judge a row by every rule: a row without a flag breaks no applicable rule.
    fn judge(&mut self, before: &Opened, now: &Opened, flag: bool, totals: &mut Totals) {
        let flag = self.constraints.flag(Part::Flags, flag);
        totals.violating =
            std::mem::replace(&mut totals.violating, Sum::zero()).plus(Fr::ONE, &flag);
        let held = flag.negated();
        let statement = self.statement;
        for (rule, total) in statement.couplings.iter().zip(&mut totals.inapplicable) {
            let applies = self.applies(rule, before, now);
            *total = std::mem::replace(total, Sum::zero()).plus(Fr::ONE, &applies.negated());
            let residual = self.coupling(rule, now);
            let gate = self
                .constraints
                .product(Part::Applicability, &applies, &held);
            self.within(&gate, &residual, rule.tolerance);
        }
        for rule in &statement.balances {
            self.within(&held, &balance(rule, before, now), rule.tolerance);
        }
    }

    /// Whether the actuator shows off or on. If the rule demands it, both rows must show the same.
    fn applies(&mut self, rule: &Coupling, before: &Opened, now: &Opened) -> Sum {
        let mut applies = Sum::zero();
        for state in rule.states {
            let shown = &now.shows[rule.actuator][state];
            applies = if rule.steady {
                let earlier = &before.shows[rule.actuator][state];
                let both = self
                    .constraints
                    .product(Part::Applicability, shown, earlier);
                applies.plus(Fr::ONE, &both)
            } else {
                applies.plus(Fr::ONE, shown)
            };
        }
        applies
    }

    fn coupling(&self, rule: &Coupling, now: &Opened) -> Sum {
        let codes = &self.statement.actuators[rule.actuator];
        let mut residual = Sum::constant(signed(rule.constant.into()))
            .plus(signed(rule.flow_weight.into()), &now.readings[rule.flow]);
        for (code, shown) in codes.iter().zip(&now.shows[rule.actuator]) {
            let weight = i128::from(rule.code_weight) * SCALE * i128::from(*code);
            residual = residual.plus(signed(weight), shown);
        }
        residual
    }

    /// Demand `-tolerance <= gate * residual <= tolerance`.
    fn within(&mut self, gate: &Sum, residual: &Sum, tolerance: i64) {
        let tolerance = signed(tolerance.into());
        let twice = tolerance.double();
        let width = width_of(twice);
        let lifted = gate.value * residual.value + tolerance;
        let low = weighted(&self.constraints.bits(Part::Tolerances, lifted, width));
        let gated = low.clone().shifted(-tolerance);
        self.constraints
            .enforce(Part::Tolerances, gate, residual, &gated);
        let high = Sum::constant(twice).less(&low);
        self.constraints.demand_bits(Part::Tolerances, &high, width);
    }
}

fn balance(rule: &Balance, before: &Opened, now: &Opened) -> Sum {
    let mut residual = Sum::constant(signed(rule.constant.into()));
    for (row, terms) in [(before, &rule.before), (now, &rule.now)] {
        for (reading, weight) in terms {
            residual = residual.plus(signed((*weight).into()), &row.readings[*reading]);
        }
    }
    residual
}

/// The place of the code that is shown.
fn place(shows: &[Sum]) -> Sum {
    let places = shows.iter().enumerate();
    places.fold(Sum::zero(), |sum, (at, shown)| {
        sum.plus(Fr::from(at as u64), shown)
    })
}

/// An integer in the field.
pub(super) fn signed(value: i128) -> Fr {
    let size = Fr::from(value.unsigned_abs());
    if value < 0 { -size } else { size }
}

fn width_of(largest: Fr) -> usize {
    use ark_ff::{BigInteger, PrimeField};
    largest.into_bigint().num_bits().max(1) as usize
}
