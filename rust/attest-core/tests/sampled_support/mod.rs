//! A valve, a flow and a tank in twelve rows, with keys.
#![allow(dead_code)]

use std::io::Cursor;
use std::sync::OnceLock;

use ark_bn254::Fr;
use attest_core::full::Invalid;
use attest_core::sampled::constraints::Constraints;
use attest_core::sampled::tree::{Shape, salt_of};
use attest_core::sampled::{Batch, Circuit, Draw, Keys, Trapdoor, Unproven, Verifying, keys};

pub const SALT: [u8; 32] = [5; 32];
pub const CONTEXT: [u8; 32] = [0xc3; 32];
/// The reading that stands for nothing.
pub const ZERO: u32 = 1 << 31;
const SAMPLED: [usize; 2] = [3, 7];

pub const STATEMENT: &str = r#"{"version":1,"encoding":"","samples":2,"depth":4,"readings":2,
    "actuators":[[0,1,2]],
    "couplings":[{"flow":1,"flow_weight":1,"actuator":0,"code_weight":-1,"constant":65536,
        "states":[1,2],"steady":true,"tolerance":3}],
    "balances":[{"before":[[0,-1]],"now":[[0,1]],"constant":0,"tolerance":10}]}"#;

pub struct Plant {
    pub circuit: Circuit,
    pub keys: &'static Keys,
    pub verifying: Verifying,
    pub readings: Vec<u32>, // level and flow, row after row
    pub codes: Vec<u8>,
}

/// The valve is off, the tank at rest; on row 7 water flows past the valve all the same.
pub fn plant() -> Plant {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    let circuit = Circuit::new(STATEMENT.as_bytes()).expect("a statement");
    let keys = KEYS.get_or_init(|| keys::make(&circuit, &Trapdoor::draw(&[7; 32])).expect("keys"));
    let verifying = Verifying::read(&circuit, &keys.verifying).expect("a key");
    let mut readings = [1000, ZERO].repeat(12);
    readings[7 * 2 + 1] = ZERO + 70_000;
    Plant {
        circuit,
        keys,
        verifying,
        readings,
        codes: vec![1; 12],
    }
}

impl Plant {
    pub fn batch(&self) -> Batch<'_> {
        Batch {
            rows: 12,
            readings: &self.readings,
            codes: &self.codes,
        }
    }

    pub fn draw() -> Draw<'static> {
        Draw {
            rows: 12,
            sampled: &SAMPLED,
            violating: 1,
            inapplicable: &[0],
            context: CONTEXT,
        }
    }

    pub fn root(&self) -> [u8; 32] {
        self.circuit.commit(&self.batch(), &SALT).expect("a root")
    }

    pub fn leaf(&self, row: usize) -> Fr {
        let shape = Shape::of(self.circuit.statement()).expect("a shape");
        let inputs = [vec![salt_of(&SALT, row)], shape.pack(&self.batch(), row)].concat();
        attest_core::poseidon::hash(&inputs).expect("a known arity")
    }

    pub fn assigned(&self, draw: &Draw<'_>, flags: &[bool]) -> Constraints {
        self.circuit
            .assign(&self.batch(), &SALT, draw, flags, true)
            .expect("rows of this circuit")
    }

    pub fn prove(&self, draw: &Draw<'_>) -> Result<Vec<u8>, Unproven> {
        self.prove_with(draw, &[1; 32])
    }

    pub fn prove_with(&self, draw: &Draw<'_>, entropy: &[u8; 32]) -> Result<Vec<u8>, Unproven> {
        let proving = Cursor::new(&self.keys.proving);
        self.circuit.prove(
            &self.verifying,
            proving,
            &self.batch(),
            &SALT,
            draw,
            entropy,
        )
    }

    pub fn verify(&self, draw: &Draw<'_>, proof: &[u8]) -> Result<(), Invalid> {
        self.circuit
            .verify(&self.verifying, &self.root(), draw, proof)
    }
}

/// The wide `SWaT` rules, 1,024 rows.
pub fn swat_circuit(samples: usize) -> Circuit {
    let text = include_str!("../../../../tests/vectors/sampled_swat.json");
    let document: serde_json::Value = serde_json::from_str(text).expect("a vector file");
    let mut statement = document["statement"].clone();
    statement["samples"] = samples.into();
    Circuit::new(statement.to_string().as_bytes()).expect("a statement")
}

/// The constraints of a circuit, filled with rows that show nothing.
pub fn blank_rows(circuit: &Circuit) -> Constraints {
    let statement = circuit.statement();
    let (samples, rows) = (statement.samples, statement.samples + 2);
    let sampled: Vec<usize> = (1..=samples).collect();
    let batch = Batch {
        rows,
        readings: &vec![0; rows * statement.readings],
        codes: &vec![0; rows * statement.actuators.len()],
    };
    let draw = Draw {
        rows,
        sampled: &sampled,
        violating: 0,
        inapplicable: &vec![0; statement.couplings.len()],
        context: CONTEXT,
    };
    circuit
        .assign(&batch, &SALT, &draw, &vec![true; samples], false)
        .expect("rows of this circuit")
}
