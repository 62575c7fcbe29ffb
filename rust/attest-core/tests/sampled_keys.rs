//! Keys of `sampled` that are not to be trusted.

mod sampled_support;

use std::io::{Cursor, Read, Result, Seek, SeekFrom};

use ark_bn254::{Bn254, Fr, G1Affine};
use ark_ff::Field;
use ark_groth16::{Groth16, Proof, ProvingKey, prepare_verifying_key};
use ark_serialize::{CanonicalDeserialize, Compress, Validate};
use attest_core::full::Invalid;
use attest_core::sampled::{Trapdoor, Unproven, Verifying, keys};
use sampled_support::{Plant, SALT, plant, swat_circuit};

#[test]
fn a_foreign_key_is_refused() {
    let plant = plant();
    let other = swat_circuit(1);
    let refused = Verifying::read(&other, &plant.keys.verifying).expect_err("of another circuit");
    assert!(refused.0.contains("no verifying key of this circuit"));
    let more = keys::make(&plant.circuit, &Trapdoor::draw(&[8; 32])).expect("keys");
    let verifying = Verifying::read(&plant.circuit, &more.verifying).expect("a key");
    let draw = Plant::draw();
    let proof = plant.prove(&draw).expect("the batch keeps its rules");
    let root = plant.root();
    let invalid = plant.circuit.verify(&verifying, &root, &draw, &proof);
    assert!(matches!(invalid, Err(Invalid::Fails(_))));
    let swapped = plant.circuit.prove(
        &verifying,
        Cursor::new(&plant.keys.proving),
        &plant.batch(),
        &SALT,
        &draw,
        &[1; 32],
    );
    assert!(matches!(swapped, Err(Unproven::Malformed(_))));
}

/// A key without a contribution: gamma is delta, and (alpha, beta, -inputs) proves anything.
#[test]
fn a_key_without_a_contribution_forges_anything_and_is_refused() {
    let plant = plant();
    let mut trapdoor = Trapdoor::draw(&[3; 32]);
    trapdoor.scalars[3] = trapdoor.scalars[2];
    let forgeable = keys::make(&plant.circuit, &trapdoor).expect("keys are made of anything");
    let mut bytes = forgeable.proving.as_slice();
    let key = ProvingKey::<Bn254>::deserialize_with_mode(&mut bytes, Compress::No, Validate::Yes)
        .expect("a key")
        .vk;
    let absurd: Vec<Fr> = (0..plant.circuit.publics())
        .map(|at| Fr::from(123_456_789 + at as u64))
        .collect();
    let prepared = prepare_verifying_key(&key);
    let inputs = Groth16::<Bn254>::prepare_inputs(&prepared, &absurd).expect("inputs");
    let forged = Proof {
        a: key.alpha_g1,
        b: key.beta_g2,
        c: G1Affine::from(-inputs),
    };
    let accepted = Groth16::<Bn254>::verify_proof(&prepared, &forged, &absurd);
    assert!(
        accepted.expect("it can be computed"),
        "the universal forgery"
    );
    let refused = Verifying::read(&plant.circuit, &forgeable.verifying).expect_err("forgeable");
    assert!(refused.0.contains("gamma equals delta"));
    for known in [-trapdoor.scalars[2], Fr::ONE] {
        trapdoor.scalars[3] = known;
        let forgeable = keys::make(&plant.circuit, &trapdoor).expect("keys");
        assert!(Verifying::read(&plant.circuit, &forgeable.verifying).is_err());
    }
}

/// A file that is another one when it is read again.
struct Swapped<'a> {
    files: [Cursor<&'a [u8]>; 2],
    at: usize,
}

impl Read for Swapped<'_> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        self.files[self.at].read(into)
    }
}

impl Seek for Swapped<'_> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.at = 1;
        self.files[self.at].seek(to)
    }
}

#[test]
fn a_proving_key_that_is_swapped_after_it_was_hashed_is_refused() {
    let plant = plant();
    let more = keys::make(&plant.circuit, &Trapdoor::draw(&[8; 32])).expect("keys");
    let mut longer = plant.keys.proving.clone();
    longer.push(0);
    for other in [&more.proving, &longer] {
        let swapped = Swapped {
            files: [&plant.keys.proving, other].map(|file| Cursor::new(&file[..])),
            at: 0,
        };
        let proven = plant.circuit.prove(
            &plant.verifying,
            swapped,
            &plant.batch(),
            &SALT,
            &Plant::draw(),
            &[1; 32],
        );
        assert!(matches!(proven, Err(Unproven::Malformed(_))));
    }
}
