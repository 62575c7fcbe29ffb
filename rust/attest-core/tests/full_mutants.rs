//! Provers that lie.
//!
//! Traces that hold are changed: a cell alone, a cell and all that follows from it, the digits of a
//! sum, a reading without a flag, a count, a digest. Each lie must break a constraint. And each
//! constraint must be the only one that some lie breaks, so that a circuit which lacked it would
//! take that lie: no constraint can be lost without a test that notices.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use attest_core::full::air::FullAir;
use attest_core::full::columns::{F, element};
use attest_core::full::ladder::Ladder;
use attest_core::full::witness::{Fault, Manner};
use attest_core::full::{Circuit, Traced};
use p3_field::{PrimeCharacteristicRing, PrimeField64};
use p3_matrix::Matrix;
use p3_matrix::dense::RowMajorMatrix;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{Vector, broken_on, vector};

/// How many registers a row of the vectors' plant has.
const CHANNELS: usize = 4;

/// A trace that holds, with room in every budget, and the constraints that lies broke alone.
struct Truth {
    vector: Vector,
    traced: Traced,
    alone: BTreeSet<usize>,
    rng: StdRng,
}

impl Truth {
    fn new(name: &str) -> Self {
        let mut vector = vector(name);
        vector.budgets.violating = 40;
        vector.budgets.severe = 9;
        vector.budgets.segments += 2;
        for count in &mut vector.budgets.unsteady {
            *count += 9;
        }
        let budgets = &mut vector.budgets;
        let own = [
            &mut budgets.windows,
            &mut budgets.switches,
            &mut budgets.blocks,
        ];
        own.into_iter().flatten().for_each(|count| *count = 9);
        for row in vector.registers.chunks_mut(CHANNELS) {
            row[3] -= 14_000; // well below the middle of its bounds
        }
        if vector.statement.contains("\"severe\":true,\"spectra\"") {
            vector.registers[45 * CHANNELS + 3] = 60_000; // severe, and for no other reason flagged
            for row in vector.registers.chunks_mut(CHANNELS).skip(1).take(30) {
                row[1] -= 2_000; // near the end of a tie's tolerance
            }
        }
        let actuators = vector.codes.len() / vector.rows;
        vector.codes[20 * actuators] = 4; // a code that the first actuator does not have
        let traced = vector
            .traced(Manner::default())
            .expect("the batch is admitted");
        assert_eq!(traced.broken(), []);
        Self {
            vector,
            traced,
            alone: BTreeSet::new(),
            rng: StdRng::seed_from_u64(7),
        }
    }

    fn width(&self) -> usize {
        self.traced.trace.width()
    }

    fn cell(&self, row: usize, column: usize) -> F {
        self.traced.trace.values[row * self.width() + column]
    }

    /// Rows of every sort: the first ones, the last of the batch, padding, and some others.
    fn rows(&mut self, others: usize) -> Vec<usize> {
        let last = self.traced.trace.height() - 1;
        let mut rows = vec![0, 1, self.vector.rows - 1, self.vector.rows, last];
        rows.extend((0..others).map(|_| self.rng.random_range(2..self.vector.rows - 1)));
        rows
    }

    /// The constraints that a trace breaks; rows that did not change cannot break any.
    fn broken(&self, air: &FullAir, lied: &RowMajorMatrix<F>, digest: &[F]) -> BTreeSet<usize> {
        let height = lied.height();
        let everywhere =
            digest != self.traced.digest || !Arc::ptr_eq(&air.public, &self.traced.air.public);
        let changed = |row: usize| {
            let span = row * self.width()..(row + 1) * self.width();
            everywhere || lied.values[span.clone()] != self.traced.trace.values[span]
        };
        let changed: Vec<bool> = (0..height).map(changed).collect();
        (0..height)
            .filter(|row| changed[*row] || changed[(row + 1) % height])
            .flat_map(|row| broken_on(air, lied, digest, row))
            .collect()
    }

    /// Tell a lie; it must be noticed.
    fn tell(&mut self, air: &FullAir, lied: &RowMajorMatrix<F>, digest: &[F], what: &str) {
        let broken = self.broken(air, lied, digest);
        assert!(
            !broken.is_empty(),
            "{}: {what} went unnoticed",
            self.vector.name
        );
        if broken.len() == 1 {
            self.alone.extend(broken);
        }
    }

    /// Cells that no constraint reads: digits of sums over two rows on the first row, which has none
    /// before it, slack where none is scheduled, and marks of rows and switches on the last row of
    /// padding, after which nothing is counted. These are the circuit's only don't-cares.
    fn idle(&self, row: usize, column: usize) -> bool {
        let layout = &self.traced.air.layout;
        let scheduled = || {
            self.traced
                .air
                .public
                .slack
                .iter()
                .any(|(_, rows)| rows.contains(&row))
        };
        let two_rows = layout.relations.reads_two_rows(column)
            || layout.windows.reads_two_rows(column)
            || layout.switches.reads_two_rows(column);
        let mut marks = layout
            .switches
            .violating()
            .chain([layout.channels.violating]);
        let uncounted = row + 1 == self.traced.trace.height() && marks.any(|mark| mark == column);
        (row == 0 && two_rows)
            || uncounted
            || (layout.counts.slack() == Some(column) && !scheduled())
    }

    /// Every column, on some rows, changed by itself.
    fn cells(&mut self) {
        let air = self.traced.air.clone();
        let rows = self.rows(4);
        let mut lied = self.traced.trace.clone();
        for (column, row) in (0..self.width()).flat_map(|c| rows.iter().map(move |r| (c, *r))) {
            let held = self.cell(row, column);
            let any = F::from_u64(self.rng.random());
            for lie in [held + F::ONE, held - F::ONE, F::ONE - held, any] {
                if lie != held && !self.idle(row, column) {
                    lied.values[row * air.layout.width + column] = lie;
                    let digest = self.traced.digest;
                    self.tell(&air, &lied, &digest, &format!("column {column}, row {row}"));
                }
            }
            lied.values[row * air.layout.width + column] = held;
        }
    }

    /// A wrong cell and everything that is computed from it, under a commitment that fits.
    fn refill(&mut self, row: usize, column: usize, value: F) {
        if value == self.cell(row, column) || self.idle(row, column) {
            return;
        }
        self.lie([Some(Fault { row, column, value }), None]);
    }

    fn lie(&mut self, faults: [Option<Fault>; 2]) {
        let manner = Manner {
            faults,
            forced: true,
            ..Manner::default()
        };
        let lied = self.vector.traced(manner).expect("it is forced");
        let after = &lied.trace.values[self.vector.rows * self.width()..];
        let digest = lied.air.layout.digest.chain.map(|column| after[column]);
        let broken = self.broken(&self.traced.air, &lied.trace, &digest);
        if broken.len() == 1 {
            self.alone.extend(broken);
        }
    }

    fn refilled(&mut self) {
        let layout = self.traced.air.layout.clone();
        let last = self.vector.rows - 1;
        for column in 0..self.width() {
            let some = self.rng.random_range(2..last);
            if layout.digest.owns(column) {
                self.refill(some, column, self.cell(some, column) + F::ONE);
                continue;
            }
            let digit = layout.digits.iter().find(|digit| digit.column == column);
            let Some(digit) = digit else {
                for row in [0, some] {
                    let held = self.cell(row, column);
                    for lie in [F::ONE - held, F::TWO - held, held - F::ONE] {
                        self.refill(row, column, lie);
                    }
                }
                continue;
            };
            self.refill(0, column, F::ONE - self.cell(0, column));
            // On the second of these a standby pump runs, so that a coupling is silent.
            for row in [some, self.vector.rows / 3 + 1, last] {
                self.refill(row, column, F::ONE);
                self.refill(row, column, -F::ONE);
                self.refill(row, column, F::from_u64(digit.radix));
            }
        }
    }

    /// Flags that are lowered where they are needed, and flags that are none.
    fn flags(&mut self) {
        let layout = self.traced.air.layout.clone();
        let violating = layout.channels.violating;
        let own = layout
            .windows
            .violating()
            .chain(layout.switches.violating());
        let own = own.chain(layout.spectra.violating());
        let flags: Vec<usize> = own.chain([violating]).collect();
        for row in 0..self.vector.rows {
            for &column in &flags {
                if self.cell(row, column) == F::ONE {
                    self.refill(row, column, F::ZERO);
                }
                if row % 4 == 0 {
                    self.refill(row, column, F::TWO);
                    self.refill(row, column, -F::ONE);
                }
            }
        }
    }

    /// Rows that are severe and do not violate, and rows that are severe less than not at all.
    fn severe(&mut self) {
        let channels = &self.traced.air.layout.channels;
        let (violating, severe) = (channels.violating, channels.severe.expect("rows may be"));
        let rows = (0..self.vector.rows).filter(|row| self.cell(*row, violating) == F::ONE);
        let rows: Vec<usize> = rows.collect();
        let fault = |row, column, value| Some(Fault { row, column, value });
        for (&row, &other) in rows.iter().zip(rows.iter().cycle().skip(1)) {
            self.lie([fault(row, severe, F::ONE), fault(row, violating, F::ZERO)]);
            self.lie([fault(row, severe, -F::ONE), fault(other, severe, F::ONE)]);
        }
    }

    /// A settling actuator that claims to be settled.
    fn settled(&mut self) {
        let layout = self.traced.air.layout.clone();
        for (any, inverse) in layout.couplings.countdowns() {
            for row in 1..self.vector.rows / 2 {
                let fault = |column| {
                    Some(Fault {
                        row,
                        column,
                        value: F::ZERO,
                    })
                };
                self.lie([fault(any), fault(inverse)]);
            }
        }
    }

    /// Levels that would have to move further than they do.
    fn still(&mut self) {
        for fact in self
            .vector
            .statement
            .match_indices("\"least\":")
            .map(|(at, _)| at)
            .collect::<Vec<_>>()
        {
            let (before, after) = self.vector.statement.split_at(fact);
            let rest = after.split_once(',').expect("another key follows").1;
            let statement = format!("{before}\"least\":60000,{rest}");
            let circuit = Circuit::new(statement.as_bytes()).expect("a statement");
            let (batch, budgets) = (self.vector.batch(), &self.vector.budgets);
            let manner = Manner {
                forced: true,
                ..Manner::default()
            };
            let lied = circuit
                .trace(budgets, &batch, &self.vector.salt, manner)
                .expect("forced");
            let broken: BTreeSet<usize> =
                lied.broken().into_iter().map(|(which, _)| which).collect();
            assert_eq!(broken.len(), 1, "only the level's sum is out of range");
            self.alone.extend(broken);
        }
    }

    /// Sums whose digits are spelt otherwise: one digit is none, and the sum is the same.
    fn respelled(&mut self) {
        let air = self.traced.air.clone();
        let rows = self.rows(10);
        let mut lied = self.traced.trace.clone();
        for (row, ladder) in rows
            .iter()
            .flat_map(|r| air.layout.ladders.iter().map(|l| (*r, l)))
        {
            let spelt = (0..ladder.width()).flat_map(|digit| self.spellings(ladder, row, digit));
            for spelling in spelt.collect::<Vec<_>>() {
                for (place, held) in ladder.digits().zip(spelling) {
                    lied.values[row * air.layout.width + place.column] = element(held);
                }
                let broken = self.broken(&air, &lied, &self.traced.digest);
                if broken.len() == 1 {
                    self.alone.extend(broken);
                }
            }
            for place in ladder.digits() {
                lied.values[row * air.layout.width + place.column] = self.cell(row, place.column);
            }
        }
    }

    fn spellings(&self, ladder: &Ladder, row: usize, digit: usize) -> Vec<Vec<i128>> {
        let digits: Vec<_> = ladder.digits().copied().collect();
        let held = |at: usize| self.cell(row, digits[at].column).as_canonical_u64();
        let worth = |at: usize| i128::from(digits[at].weight) * i128::from(held(at));
        let sum: i128 = (0..digits.len()).map(worth).sum();
        let others = (-9..17).filter(|other| *other != i128::from(held(digit)));
        let spell = |other: i128| {
            let mut left = sum - other * i128::from(digits[digit].weight);
            let mut spelt = vec![0; digits.len()];
            spelt[digit] = other;
            for at in (0..digits.len()).rev().filter(|at| *at != digit) {
                let weight = i128::from(digits[at].weight);
                spelt[at] = left
                    .div_euclid(weight)
                    .clamp(0, i128::from(digits[at].radix - 1));
                left -= spelt[at] * weight;
            }
            (left == 0).then_some(spelt)
        };
        others.filter_map(spell).collect()
    }

    /// Digests of other rows.
    fn digests(&mut self) {
        let (air, trace) = (self.traced.air.clone(), self.traced.trace.clone());
        for at in 0..self.traced.digest.len() {
            let mut digest = self.traced.digest;
            digest[at] += F::ONE;
            self.tell(&air, &trace, &digest, "another digest");
        }
    }

    /// Counts beyond their budgets, as they are, and begun below zero to make up for it.
    fn counts(&mut self) {
        let layout = self.traced.air.layout.clone();
        for (index, count) in layout.counts.counts.iter().enumerate() {
            let mut air = self.traced.air.clone();
            Arc::make_mut(&mut air.public).totals[index] -= F::ONE;
            let mut lied = self.traced.trace.clone();
            for begun in [F::ZERO, F::ONE] {
                let so_far = lied
                    .values
                    .iter_mut()
                    .skip(count.so_far)
                    .step_by(layout.width);
                so_far.for_each(|cell| *cell -= begun);
                let digest = self.traced.digest;
                self.tell(&air, &lied, &digest, "a count beyond its budget");
            }
        }
    }

    /// Slack of two on one row instead of one on the next.
    fn slack(&mut self) {
        let air = self.traced.air.clone();
        let Some(column) = air.layout.counts.slack() else {
            return;
        };
        for (counted, rows) in &air.public.slack {
            let holds = |row: &usize| {
                self.cell(*row, column) == F::ZERO && self.cell(row + 1, column) == F::ONE
            };
            let Some(row) = (rows.start..rows.end - 1).find(holds) else {
                continue;
            };
            let mut lied = self.traced.trace.clone();
            let width = air.layout.width;
            lied.values[row * width + column] = F::TWO;
            lied.values[(row + 1) * width + column] = F::ZERO;
            let count = air
                .layout
                .counts
                .counts
                .iter()
                .find(|count| count.counted.contains(counted));
            let so_far = count.expect("it is counted").so_far;
            let weights = air.layout.counts.slack_weights(*counted);
            let weight = air.public.schedules[weights.expect("it has slack")][row];
            lied.values[(row + 1) * width + so_far] += weight.double();
            let digest = self.traced.digest;
            self.tell(&air, &lied, &digest, "slack that is no flag");
        }
    }
}

#[test]
fn no_cell_can_be_changed_unnoticed() {
    for name in [
        "a time jump",
        "severe rows",
        "odd windows and bounds that only flag",
        "ties, constants, switch bands and spectra",
        "spectra with a time jump",
    ] {
        Truth::new(name).cells();
    }
}

#[test]
fn every_constraint_is_the_only_one_that_some_lie_breaks() {
    let mut truth = Truth::new("every gadget");
    let lies: [fn(&mut Truth); 10] = [
        Truth::cells,
        Truth::digests,
        Truth::counts,
        Truth::slack,
        Truth::respelled,
        Truth::still,
        Truth::settled,
        Truth::flags,
        Truth::severe,
        Truth::refilled,
    ];
    for lie in lies {
        lie(&mut truth);
    }
    let all: BTreeSet<usize> = (0..truth.vector.circuit.constraints()).collect();
    let missed: Vec<&usize> = all.difference(&truth.alone).collect();
    assert!(
        missed.is_empty(),
        "no test would miss the constraints {missed:?}"
    );
}

/// Rows 30 and 55 show readings beyond bounds that only a severe row may break.
#[test]
fn a_reading_beyond_its_bound_makes_the_row_severe() {
    let mut vector = vector("readings beyond their bounds");
    let layout = vector.traced(Manner::default()).expect("it is admitted");
    let severe = layout.air.layout.channels.severe.expect("rows may be");
    for row in [30, 55] {
        assert_eq!(
            layout.trace.values[row * layout.trace.width() + severe],
            F::ONE
        );
        for value in [F::ZERO, F::TWO, -F::ONE] {
            let column = severe;
            let manner = Manner {
                faults: [Some(Fault { row, column, value }), None],
                forced: true,
                ..Manner::default()
            };
            let lied = vector.traced(manner).expect("it is forced");
            assert_ne!(lied.broken(), [], "row {row} is severe {value} times");
        }
    }
    vector.budgets.severe -= 1;
    assert!(vector.traced(Manner::default()).is_err());
    let forced = Manner {
        forced: true,
        ..Manner::default()
    };
    let lied = vector.traced(forced).expect("it is forced");
    assert_ne!(lied.broken(), [], "one more than the budget");
}
