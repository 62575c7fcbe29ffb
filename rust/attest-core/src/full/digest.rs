//! The digest that ties a trace to the commitment made before.
//!
//! A Merkle-Damgard chain over the rows: `f(chain, row) = last four of P(row lanes, chain) + chain`
//! with `P` the Poseidon2 permutation of width twelve over Goldilocks, and the salt as the first
//! chaining value. Two openings of one digest give a collision of `f`, salts included, so the digest
//! binds; the salt, 256 bits that enter nothing else, hides. A row of more than eight lanes takes
//! several steps.
//!
//! Four registers of sixteen bits are just too many for a lane: packed, they may reach the field's
//! order, and then mean what four others mean. Of such two rows one shows the largest value in the
//! top register and the other zero. The guard, in another lane, tells them apart: it adds the top
//! registers of all full lanes, each at a power of two of its own, and no sum of differences that
//! are largest values of either sign at distinct powers of two is zero.

use p3_field::{Dup, PrimeCharacteristicRing};
use p3_goldilocks::{
    GOLDILOCKS_POSEIDON2_HALF_FULL_ROUNDS, GOLDILOCKS_POSEIDON2_PARTIAL_ROUNDS_12,
    GOLDILOCKS_POSEIDON2_RC_12_EXTERNAL_FINAL, GOLDILOCKS_POSEIDON2_RC_12_EXTERNAL_INITIAL,
    GOLDILOCKS_POSEIDON2_RC_12_INTERNAL, GenericPoseidon2LinearLayersGoldilocks as Linear,
};
use p3_poseidon2::GenericPoseidon2LinearLayers;

use super::channels::{Channels, own_bound};
use super::columns::{Column, Columns, F, Row, Rows, Schedule};
use super::statement::{Packed, Source, Statement};

/// Field elements of a chaining value, a salt and a digest.
pub const CHAIN: usize = 4;

/// Field elements that the salt masks with, beside the digest: the outputs of a row's first
/// permutation that the chain does not take up. On the first row they follow from the commitment
/// alone, and without the salt they look random.
pub const MASKS: usize = 3;

const WIDTH: usize = 12;
const RATE: usize = WIDTH - CHAIN;
const ROUNDS: usize = GOLDILOCKS_POSEIDON2_HALF_FULL_ROUNDS;
const PARTIAL_ROUNDS: usize = GOLDILOCKS_POSEIDON2_PARTIAL_ROUNDS_12;

type State<V> = [V; WIDTH];

/// The columns of one permutation: the state after each round but the last, as far as a round
/// changes it by more than a linear map.
#[derive(Debug)]
struct Permutation {
    beginning: [State<Column>; ROUNDS],
    partial: [Column; PARTIAL_ROUNDS],
    ending: [State<Column>; ROUNDS - 1],
}

impl Permutation {
    fn new(columns: &mut Columns) -> Self {
        let mut cell = || columns.cell();
        Self {
            beginning: std::array::from_fn(|_| std::array::from_fn(|_| cell())),
            partial: std::array::from_fn(|_| cell()),
            ending: std::array::from_fn(|_| std::array::from_fn(|_| cell())),
        }
    }

    fn apply<R: Rows>(&self, rows: &mut R, mut state: State<R::Value>) -> State<R::Value> {
        Linear::external_linear_layer(&mut state);
        for (columns, constants) in self
            .beginning
            .iter()
            .zip(&GOLDILOCKS_POSEIDON2_RC_12_EXTERNAL_INITIAL)
        {
            full_round(&mut state, constants);
            pin(rows, &mut state, columns);
        }
        for (column, constant) in self
            .partial
            .iter()
            .zip(&GOLDILOCKS_POSEIDON2_RC_12_INTERNAL)
        {
            let boxed = (state[0].dup() + *constant).exp_const_u64::<7>();
            state[0] = rows.define(*column, boxed);
            Linear::internal_linear_layer(&mut state);
        }
        let (last, others) = GOLDILOCKS_POSEIDON2_RC_12_EXTERNAL_FINAL
            .split_last()
            .expect("there are rounds");
        for (columns, constants) in self.ending.iter().zip(others) {
            full_round(&mut state, constants);
            pin(rows, &mut state, columns);
        }
        full_round(&mut state, last);
        state
    }
}

fn full_round<V: p3_field::Algebra<F>>(state: &mut State<V>, constants: &State<F>) {
    for (cell, constant) in state.iter_mut().zip(constants) {
        *cell = (cell.dup() + *constant).exp_const_u64::<7>();
    }
    Linear::external_linear_layer(state);
}

fn pin<R: Rows>(rows: &mut R, state: &mut State<R::Value>, columns: &State<Column>) {
    for (cell, column) in state.iter_mut().zip(columns) {
        *cell = rows.define(*column, cell.dup());
    }
}

/// The chain over a trace.
#[derive(Debug)]
pub struct Digest {
    lanes: Vec<Vec<Packed>>,
    /// The registers that guard the full lanes.
    tops: Vec<usize>,
    /// Where a lane stands by itself: where a register in it is no sum of digits alone.
    standing: Vec<Option<Column>>,
    lows: Vec<u64>,
    /// The chaining value a row begins with; the salt, on the first.
    pub chain: [Column; CHAIN],
    between: Vec<[Column; CHAIN]>,
    permutations: Vec<Permutation>,
    last: usize,
}

impl Digest {
    /// Hand out the columns.
    pub fn new(statement: &Statement, columns: &mut Columns) -> Self {
        let steps = statement.lanes.len().div_ceil(RATE);
        let tops = statement.tops();
        let twofold = |source: Source| match source {
            Source::Register(index) => own_bound(index, statement).is_some(),
            Source::Guard => tops
                .iter()
                .any(|index| own_bound(*index, statement).is_some()),
            Source::Actuator(_) | Source::Start => false,
        };
        let stands = |lane: &Vec<Packed>| lane.iter().any(|packed| twofold(packed.source));
        let standing = statement
            .lanes
            .iter()
            .map(|lane| stands(lane).then(|| columns.cell()))
            .collect();
        Self {
            lanes: statement.lanes.clone(),
            tops,
            standing,
            lows: statement
                .registers
                .iter()
                .map(|register| register.low)
                .collect(),
            chain: std::array::from_fn(|_| columns.cell()),
            between: (1..steps)
                .map(|_| std::array::from_fn(|_| columns.cell()))
                .collect(),
            permutations: (0..steps).map(|_| Permutation::new(columns)).collect(),
            last: columns.schedule(Schedule::Last),
        }
    }

    /// Whether a column belongs to a permutation.
    #[must_use]
    pub fn owns(&self, column: Column) -> bool {
        let rounds = |permutation: &Permutation| {
            let full = permutation
                .beginning
                .iter()
                .chain(&permutation.ending)
                .flatten();
            full.chain(&permutation.partial).any(|own| *own == column)
        };
        self.permutations.iter().any(rounds)
    }

    /// The row is digested, and on the batch's last row the chain ends in the public digest.
    /// Returns the row's masks.
    pub fn judge<R: Rows>(
        &self,
        channels: &Channels,
        rows: &mut R,
        digest: [R::Value; CHAIN],
    ) -> [R::Value; MASKS] {
        let (chain, masks) = self.absorb(channels, rows);
        let last = rows.public(self.last);
        for ((value, column), expected) in chain.into_iter().zip(self.chain).zip(digest) {
            rows.lead(column, value.dup());
            rows.zero(last.dup() * (value - expected));
        }
        masks
    }

    /// The chaining value after the row, and the row's masks.
    pub fn absorb<R: Rows>(
        &self,
        channels: &Channels,
        rows: &mut R,
    ) -> ([R::Value; CHAIN], [R::Value; MASKS]) {
        let mut lanes: Vec<R::Value> = Vec::new();
        for (lane, standing) in self.lanes.iter().zip(&self.standing) {
            let value = self.lane(lane, channels, rows);
            lanes.push(match standing {
                Some(column) => rows.define(*column, value),
                None => value,
            });
        }
        lanes.resize(RATE * self.permutations.len(), R::Value::ZERO);
        let mut lanes = lanes.into_iter();
        let mut chain = self.chain.map(|column| rows.here(column));
        let mut masks = std::array::from_fn(|_| R::Value::ZERO);
        for (step, permutation) in self.permutations.iter().enumerate() {
            if let Some(columns) = step.checked_sub(1).map(|before| self.between[before]) {
                for (value, column) in chain.iter_mut().zip(columns) {
                    *value = rows.define(column, value.dup());
                }
            }
            let mut inputs = lanes
                .by_ref()
                .take(RATE)
                .chain(chain.iter().map(|value| value.dup()));
            let state = std::array::from_fn(|_| inputs.next().expect("lanes and a chain"));
            drop(inputs);
            let [first, second, third, .., a, b, c, d] = permutation.apply(rows, state);
            if step == 0 {
                masks = [first, second, third];
            }
            for (value, added) in chain.iter_mut().zip([a, b, c, d]) {
                *value += added;
            }
        }
        (chain, masks)
    }

    fn lane<R: Rows>(&self, lane: &[Packed], channels: &Channels, rows: &R) -> R::Value {
        let above = |index: usize| rows.register(Row::Here, index) - F::from_u64(self.lows[index]);
        let value = |source| match source {
            Source::Register(index) => above(index),
            Source::Guard => {
                let tops = self.tops.iter().enumerate();
                tops.map(|(lane, index)| above(*index) * F::from_u64(1 << lane))
                    .sum()
            }
            Source::Actuator(index) => channels.actuators[index].index(rows, Row::Here),
            Source::Start => rows.here(channels.start.expect("packed where it can be")),
        };
        lane.iter()
            .map(|packed| value(packed.source) * F::from_u64(packed.weight))
            .sum()
    }
}
