//! Provers that lie.
//!
//! Cells are changed in traces that hold, one at a time, with or without everything that depends on
//! them following suit. Each lie must break a constraint; and each constraint must be the only one
//! that some lie breaks: a circuit that lacked it would accept that lie.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use attest_core::full::columns::F;
use attest_core::full::layout::Layout;
use attest_core::full::witness::{Fault, Manner};
use attest_core::full::{Budgets, Traced};
use p3_field::{PrimeCharacteristicRing, PrimeField64};
use p3_matrix::Matrix;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{Vector, broken_on, vector};

/// Vectors that between them use every gadget, with room in every budget.
fn roomy() -> Vec<Vector> {
    [
        "a time jump",
        "severe rows",
        "odd windows and bounds that only flag",
        "two standby pumps",
    ]
    .map(|name| {
        let mut found = vector(name);
        let windows = vec![9; found.budgets.windows.len()];
        let unsteady = found
            .budgets
            .unsteady
            .iter()
            .map(|count| count + 9)
            .collect();
        found.budgets = Budgets {
            violating: 40,
            severe: 9,
            segments: found.budgets.segments + 2,
            unsteady,
            windows,
        };
        found
    })
    .into()
}

fn lies(rng: &mut StdRng, held: F) -> Vec<F> {
    vec![
        held + F::ONE,
        held - F::ONE,
        F::from_u64(rng.random()),
        F::ONE - held,
        F::ZERO,
        held + F::from_u64(8),
    ]
    .into_iter()
    .filter(|lie| *lie != held)
    .collect()
}

/// The digest that a prover would commit to who knew beforehand how it would lie.
fn own_digest(vector: &Vector, lied: &Traced) -> Vec<F> {
    let width = lied.trace.width();
    let height = lied.trace.height();
    if vector.rows == height {
        return lied.digest.to_vec();
    }
    let chain = lied.air.layout.digest.chain;
    chain
        .iter()
        .map(|column| lied.trace.values[vector.rows * width + column])
        .collect()
}

#[test]
fn explore() {
    let mut rng = StdRng::seed_from_u64(1);
    for vector in roomy() {
        let traced = vector.traced(Manner::default()).expect("holds");
        assert!(traced.broken().is_empty());
        let layout: &Layout = &traced.air.layout;
        let height = traced.trace.height();
        let total = vector.circuit.constraints();
        let mut unnoticed: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        let mut alone: BTreeSet<usize> = BTreeSet::new();
        let mut rows: Vec<usize> = vec![
            0,
            1,
            vector.rows - 1,
            vector.rows.min(height - 1),
            height - 1,
        ];
        rows.extend((0..6).map(|_| rng.random_range(1..vector.rows)));
        for column in 0..layout.width {
            for &row in &rows {
                let held = traced.trace.values[row * layout.width + column];
                for lie in lies(&mut rng, held) {
                    let mut trace = traced.trace.clone();
                    trace.values[row * layout.width + column] = lie;
                    let mut broken: BTreeSet<usize> = BTreeSet::new();
                    for at in [row, (row + height - 1) % height] {
                        broken.extend(broken_on(&traced.air, &trace, &traced.digest, at));
                    }
                    if broken.is_empty() {
                        unnoticed.entry(column).or_default().insert(row);
                    }
                    if broken.len() == 1 {
                        alone.extend(broken);
                    }
                }
            }
        }
        let single = alone.len();
        let start = std::time::Instant::now();
        let mut fills = 0;
        for column in 0..layout.width {
            for &row in &rows {
                let held = traced.trace.values[row * layout.width + column];
                for lie in lies(&mut rng, held) {
                    let fault = Some(Fault {
                        row,
                        column,
                        value: lie,
                    });
                    let Ok(lied) = vector.traced(Manner {
                        fault,
                        forced: true,
                    }) else {
                        continue;
                    };
                    fills += 1;
                    let digest = own_digest(&vector, &lied);
                    let mut broken: BTreeSet<usize> = BTreeSet::new();
                    for at in 0..height {
                        broken.extend(broken_on(&lied.air, &lied.trace, &digest, at));
                        if broken.len() > 1 {
                            break;
                        }
                    }
                    if broken.len() == 1 {
                        alone.extend(broken);
                    }
                }
            }
        }
        println!("fills {fills} {:?} single {single}", start.elapsed());
        println!(
            "{}: width {} constraints {} digits {}",
            vector.name,
            layout.width,
            total,
            layout.digits.len()
        );
        println!("unnoticed {unnoticed:?}");
        println!("alone {} of {total}", alone.len());
        let missing: Vec<usize> = (0..total).filter(|k| !alone.contains(k)).collect();
        println!("missing {missing:?}");
    }
}
