//! Poseidon as constraints: the twin of [`crate::poseidon::hash`].
//!
//! An S-box `x^5` takes three constraints. Everything between S-boxes is linear and free. The
//! constraints of one hash are computed once for each number of inputs, then copied for every hash.

use std::sync::OnceLock;

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, Field};

use super::constraints::{Constraints, Part, Row, Sum, Wire};
use crate::poseidon::{FULL_ROUNDS, MAX_INPUTS, parameters};

/// Variables of an S-box: `x^2`, `x^4`, `x^5`.
const PER_BOX: usize = 3;

/// One hash in its own variables: 0 is one, then the inputs, then [`PER_BOX`] for each S-box.
#[derive(Debug)]
struct Template {
    boxes: Vec<Row>, // what goes into each S-box
    output: Row,
}

/// Hash variables into one sum.
///
/// # Panics
/// If there are no inputs, or more than [`MAX_INPUTS`]. Statements are checked for this.
pub fn hash(constraints: &mut Constraints, part: Part, inputs: &[Wire]) -> Sum {
    let template = template(inputs.len());
    let mut places = vec![0];
    let mut values = vec![Fr::ONE];
    places.extend(inputs.iter().map(|wire| wire.index));
    values.extend(inputs.iter().map(|wire| wire.value));
    for row in &template.boxes {
        let x = placed(row, &places, &values);
        let square = constraints.product(part, &x, &x);
        let fourth = constraints.product(part, &square, &square);
        let fifth = constraints.product(part, &fourth, &x);
        let first = constraints.assignment.len() - PER_BOX;
        places.extend(first..first + PER_BOX);
        values.extend([square.value, fourth.value, fifth.value]);
    }
    placed(&template.output, &places, &values)
}

fn placed(row: &Row, places: &[usize], values: &[Fr]) -> Sum {
    let value = row.iter().map(|(weight, at)| *weight * values[*at]).sum();
    let terms = row.iter().map(|(weight, at)| (*weight, places[*at]));
    Sum::of(terms.collect(), value)
}

fn template(inputs: usize) -> &'static Template {
    static TEMPLATES: [OnceLock<Template>; MAX_INPUTS] = [const { OnceLock::new() }; MAX_INPUTS];
    TEMPLATES[inputs - 1].get_or_init(|| derive(inputs))
}

/// Compute the rounds with sums instead of numbers.
fn derive(inputs: usize) -> Template {
    let parameters = parameters(inputs).expect("a known number of inputs");
    let rounds = parameters.round_constants.len();
    let mut boxes: Vec<Row> = Vec::new();
    // Dense: the coefficient of every variable so far, the constant first.
    let mut state: Vec<Vec<Fr>> = vec![vec![Fr::ZERO]];
    state.extend((1..=inputs).map(|at| {
        let mut cell = vec![Fr::ZERO; at + 1];
        cell[at] = Fr::ONE;
        cell
    }));
    for (round, constants) in parameters.round_constants.iter().enumerate() {
        for (cell, constant) in state.iter_mut().zip(constants) {
            cell[0] += constant;
        }
        let full = round < FULL_ROUNDS / 2 || round >= rounds - FULL_ROUNDS / 2;
        let boxed = if full { state.len() } else { 1 };
        for cell in &mut state[..boxed] {
            *cell = boxed_cell(cell, inputs, &mut boxes);
        }
        state = mixed(&parameters.mds, &state);
    }
    Template {
        boxes,
        output: sparse(&state[0]),
    }
}

/// The fifth power: a constant if the cell is constant, a new variable otherwise.
fn boxed_cell(cell: &[Fr], inputs: usize, boxes: &mut Vec<Row>) -> Vec<Fr> {
    if cell[1..].iter().all(|weight| *weight == Fr::ZERO) {
        return vec![cell[0].square().square() * cell[0]];
    }
    boxes.push(sparse(cell));
    let fifth = inputs + PER_BOX * boxes.len();
    let mut out = vec![Fr::ZERO; fifth + 1];
    out[fifth] = Fr::ONE;
    out
}

fn mixed(mds: &[Vec<Fr>], state: &[Vec<Fr>]) -> Vec<Vec<Fr>> {
    let longest = state.iter().map(Vec::len).max().unwrap_or(0);
    let mix = |weights: &Vec<Fr>| {
        let mut out = vec![Fr::ZERO; longest];
        for (weight, cell) in weights.iter().zip(state) {
            for (sum, each) in out.iter_mut().zip(cell) {
                if *each != Fr::ZERO {
                    *sum += *weight * each;
                }
            }
        }
        out
    };
    mds.iter().map(mix).collect()
}

fn sparse(cell: &[Fr]) -> Row {
    let terms = cell.iter().enumerate();
    terms
        .filter(|(_, weight)| **weight != Fr::ZERO)
        .map(|(at, weight)| (*weight, at))
        .collect()
}
