//! What each part of the `sampled` circuit costs, counted and compared.

mod sampled_support;

use std::fmt::Write as _;

use ark_bn254::Fr;
use ark_ff::Field;
use attest_core::poseidon::{self, MAX_INPUTS, PARTIAL_ROUNDS};
use attest_core::sampled::constraints::{Constraints, Part};
use attest_core::sampled::hashing;
use attest_core::sampled::statement::Statement;
use attest_core::sampled::tree::Shape;
use sampled_support::swat_circuit;

#[test]
fn the_gadget_is_the_twin_of_the_hash() {
    for inputs in 1..=MAX_INPUTS {
        let values: Vec<Fr> = (0..inputs)
            .map(|at| -Fr::from(at as u64 + 7).square())
            .collect();
        let mut constraints = Constraints::new(&[], true);
        let wires: Vec<_> = values
            .iter()
            .map(|value| constraints.private(*value))
            .collect();
        let hashed = hashing::hash(&mut constraints, Part::Leaf, &wires);
        assert_eq!(
            hashed.value,
            poseidon::hash(&values).expect("a known arity")
        );
        assert_eq!(constraints.parts.len(), hash_cost(inputs));
        assert_eq!(constraints.broken(), None);
    }
}

#[test]
fn costs_are_those_of_the_constraints() {
    for samples in [1, 3] {
        let circuit = swat_circuit(samples);
        let constraints = sampled_support::blank_rows(&circuit);
        for (part, cost) in circuit.costs() {
            assert_eq!(cost, constraints.cost(part), "{part:?}");
        }
    }
}

/// The committed table: a change in cost is a change of this file.
#[test]
fn the_cost_table_is_up_to_date() {
    let circuit = swat_circuit(32);
    let (samples, costs) = (circuit.statement().samples, circuit.costs());
    let total: usize = costs.iter().map(|(_, cost)| cost).sum();
    assert!(total * 100 <= PAPER * 60, "{total} constraints");
    let mut table = String::from("component,covers,per_sample,constraints\n");
    for (part, cost) in &costs {
        let each = match part {
            Part::Budgets | Part::Context => String::new(),
            _ => (cost / samples).to_string(),
        };
        let covers = covers(*part, circuit.statement());
        writeln!(table, "\"{}\",\"{covers}\",{each},{cost}", part.name()).expect("a string");
    }
    let share = total * 1000 / PAPER;
    let share = format!("{}.{} % of the paper's {PAPER}", share / 10, share % 10);
    writeln!(table, "total,\"{share}\",,{total}").expect("a string");
    let committed = include_str!("../../../benchmarks/constraints.csv");
    assert_eq!(
        committed, table,
        "put this into benchmarks/constraints.csv:\n{table}"
    );
}

/// What the paper's circuit has for as many samples.
const PAPER: usize = 297_736;

/// What a part of the circuit does, in the words of the table.
fn covers(part: Part, statement: &Statement) -> String {
    let (readings, actuators) = (statement.readings, statement.actuators.len());
    let shape = Shape::of(statement).expect("a shape");
    let elements = shape.elements.len();
    let salt = hash_cost(elements + 1) - hash_cost(elements);
    let (couplings, balances) = (statement.couplings.len(), statement.balances.len());
    match part {
        Part::Indices => format!("two rows, {} bits and a sum each", statement.depth),
        Part::Readings => format!("{readings} channels of each row"),
        Part::Codes => {
            let codes: usize = statement.actuators.iter().map(Vec::len).sum();
            format!("{actuators} channels of each row with {codes} codes")
        }
        Part::Packing => {
            let channels = readings + actuators;
            format!("all {channels} channels in {elements} elements")
        }
        Part::Leaf => format!("{elements} elements and the salt ({salt} for the salt of each row)"),
        Part::Tree => format!("nodes of {:?} children and the root", shape.arities),
        Part::Place => "which child a node is".into(),
        Part::Applicability => format!("{couplings} couplings"),
        Part::Tolerances => format!("{couplings} couplings and {balances} balances"),
        Part::Flags => "whether a row violates".into(),
        Part::Budgets => {
            format!("a counter of violating rows and {couplings} of silent couplings")
        }
        Part::Context => "two halves".into(),
    }
}

const fn hash_cost(inputs: usize) -> usize {
    3 * (8 * (inputs + 1) + PARTIAL_ROUNDS[inputs - 1]) - 3
}
