//! Seams: what ties one segment of a chain to the next.
//!
//! A segment's first row repeats the last row of the segment before it. The seam between the two
//! binds every cell of that row that the next row reads. Both traces are committed before the weights
//! of the seam are drawn. Then either segment shows, for each repetition `t`, that
//!
//! `value_t = mask_t + sum_j weight_tj cell_j`
//!
//! with the same public values on either side. If one cell or mask differed, the two sides would be
//! different linear forms, and would agree at drawn weights with probability `1 / p` a repetition. The
//! masks are uniform and nothing else reads them, so the values say nothing of the cells.

use std::collections::{BTreeSet, HashSet};

use p3_air::symbolic::{
    AirLayout, BaseEntry, BaseLeaf, SymbolicExpr, SymbolicExpression, get_symbolic_constraints,
};
use p3_air::{AirBuilder, BaseAir};
use p3_field::PrimeCharacteristicRing;

use super::ORDER;
use super::air::FullAir;
use super::columns::{Column, F};

/// How often a seam is proven, each time at weights of its own.
pub const REPETITIONS: usize = 3;

/// The public values of a seam.
pub type Values = [F; REPETITIONS];

/// The weights of a seam: by repetition, then by carried cell.
pub type Weights = [Vec<F>; REPETITIONS];

/// What a segment of a chain has at its two ends.
#[derive(Debug, Clone)]
pub struct Seam {
    /// The columns whose cells pass a seam.
    pub carried: Vec<Column>,
    /// The weights at the first row; none where the segment begins the batch.
    pub enters: Option<Weights>,
    /// The weights at the last row; none where the segment ends the batch.
    pub leaves: Option<Weights>,
}

impl Seam {
    /// What the segment states of its two ends; `values` are those of its first row, then of its last.
    pub(super) fn judge<AB: AirBuilder<F = F>>(
        &self,
        builder: &mut AB,
        here: &[AB::Var],
        masks: Column,
        values: &[AB::Expr],
    ) {
        let ends = [
            (&self.enters, builder.is_first_row(), &values[..REPETITIONS]),
            (&self.leaves, builder.is_last_row(), &values[REPETITIONS..]),
        ];
        for (weights, selector, values) in ends {
            let Some(weights) = weights else { continue };
            for (at, (weights, value)) in weights.iter().zip(values).enumerate() {
                let mask: AB::Expr = here[masks + at].into();
                let terms = self.carried.iter().zip(weights);
                let sum: AB::Expr = terms
                    .map(|(column, weight)| here[*column].into() * *weight)
                    .sum();
                builder.assert_zero(selector.clone() * (value.clone() - mask - sum));
            }
        }
    }
}

/// The columns of a row that a constraint about the row after it reads: what passes a seam.
#[must_use]
pub fn carried(air: &FullAir) -> Vec<Column> {
    let constraints = get_symbolic_constraints::<F, _>(air, AirLayout::from_air::<F>(air));
    let mut carried = BTreeSet::new();
    for constraint in &constraints {
        let (mut here, mut next) = (BTreeSet::new(), false);
        read(constraint, &mut HashSet::new(), &mut here, &mut next);
        if next {
            carried.extend(here);
        }
    }
    debug_assert!(carried.iter().all(|column| *column < air.width()));
    carried.into_iter().collect()
}

fn read(
    expression: &SymbolicExpression<F>,
    seen: &mut HashSet<*const SymbolicExpression<F>>,
    here: &mut BTreeSet<Column>,
    next: &mut bool,
) {
    if !seen.insert(std::ptr::from_ref(expression)) {
        return;
    }
    match expression {
        SymbolicExpr::Leaf(BaseLeaf::Variable(variable)) => match variable.entry {
            BaseEntry::Main { offset: 0 } => {
                here.insert(variable.index);
            }
            BaseEntry::Main { .. } => *next = true,
            _ => {}
        },
        SymbolicExpr::Leaf(_) => {}
        SymbolicExpr::Add { x, y, .. }
        | SymbolicExpr::Sub { x, y, .. }
        | SymbolicExpr::Mul { x, y, .. } => {
            read(x, seen, here, next);
            read(y, seen, here, next);
        }
        SymbolicExpr::Neg { x, .. } => read(x, seen, here, next),
    }
}

/// Elements of the field, uniform by rejection, from an endless hash.
fn elements(mut stream: blake3::OutputReader) -> impl Iterator<Item = F> {
    std::iter::from_fn(move || {
        loop {
            let mut word = [0; 8];
            stream.fill(&mut word);
            let word = u64::from_le_bytes(word);
            if word < ORDER {
                return Some(F::from_u64(word));
            }
        }
    })
}

/// Draw the weights of a seam over so many cells.
#[must_use]
pub fn weights(cells: usize, stream: blake3::OutputReader) -> Weights {
    let mut elements = elements(stream);
    std::array::from_fn(|_| elements.by_ref().take(cells).collect())
}

/// Draw the masks of a seam.
pub fn masks(stream: blake3::OutputReader) -> Values {
    let mut elements = elements(stream);
    std::array::from_fn(|_| elements.next().expect("an endless hash"))
}

/// The values of a seam: of its masks and of the carried cells of a row.
pub fn values(carried: &[Column], row: &[F], masks: &Values, weights: &Weights) -> Values {
    std::array::from_fn(|at| {
        let terms = carried.iter().zip(&weights[at]);
        masks[at]
            + terms
                .map(|(column, weight)| row[*column] * *weight)
                .sum::<F>()
    })
}
