//! Groth16 keys: made by one party, pinned by hash, and checked when they are read.
//!
//! The party that makes keys knows secret numbers with which any proof can be forged. They are
//! dropped here, but others cannot check that. Keys with gamma equal to delta allow forgery without
//! these numbers, and are refused.

use std::io::{BufReader, Read, Result as Readable, Seek};

use ark_bn254::{Bn254, Fr, G1Projective, G2Affine, G2Projective};
use ark_ec::{AffineRepr, PrimeGroup};
use ark_ff::{AdditiveGroup, PrimeField};
use ark_groth16::{Groth16, PreparedVerifyingKey, ProvingKey, VerifyingKey, prepare_verifying_key};
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystemRef, LinearCombination, SynthesisError, Variable,
};
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize, Compress, Validate};
use ark_std::rand::{SeedableRng, rngs::StdRng};

use super::constraints::{Constraints, Row};
use super::points::{Bytes, put_first, put_second};
use super::{Circuit, Malformed, public};

/// The first bytes of a verifying key.
const MAGIC: &[u8; 24] = b"sluice groth16 bn254 v1\n";

/// Both keys as bytes. Both are public.
#[derive(Debug)]
pub struct Keys {
    /// The key for proving.
    pub proving: Vec<u8>,
    /// The key for verifying. It names the circuit and the proving key by hash.
    pub verifying: Vec<u8>,
}

/// The secret numbers that must be deleted after the keys are made.
#[derive(Debug, Clone, Copy)]
pub struct Trapdoor {
    /// alpha, beta, gamma and delta of the Groth16 paper.
    pub scalars: [Fr; 4],
    /// The seed of tau.
    pub seed: [u8; 32],
}

impl Trapdoor {
    /// Draw the numbers from the operating system's randomness.
    pub fn draw(entropy: &[u8; 32]) -> Self {
        Self {
            scalars: [b"alpha", b"beta ", b"gamma", b"delta"]
                .map(|name| scalar(entropy, name.as_slice())),
            seed: *blake3::keyed_hash(entropy, b"tau").as_bytes(),
        }
    }
}

/// A field element, drawn from entropy for a name.
pub(super) fn scalar(entropy: &[u8; 32], name: &[u8]) -> Fr {
    let mut wide = [0; 64];
    let mut hasher = blake3::Hasher::new_keyed(entropy);
    hasher.update(name).finalize_xof().fill(&mut wide);
    Fr::from_le_bytes_mod_order(&wide)
}

/// Make the keys of a circuit.
///
/// # Errors
/// [`Malformed`] if the circuit is too large for the curve.
pub fn make(circuit: &Circuit, trapdoor: &Trapdoor) -> Result<Keys, Malformed> {
    let constraints = circuit.blank();
    let [alpha, beta, gamma, delta] = trapdoor.scalars;
    let key = Groth16::<Bn254>::generate_parameters_with_qap(
        Matrices(&constraints),
        alpha,
        beta,
        gamma,
        delta,
        G1Projective::generator(),
        G2Projective::generator(),
        &mut StdRng::from_seed(trapdoor.seed),
    )
    .map_err(|error| Malformed(format!("no keys can be made: {error}")))?;
    let mut proving = Vec::with_capacity(key.serialized_size(Compress::No));
    key.serialize_with_mode(&mut proving, Compress::No)
        .map_err(|error| Malformed(format!("the key cannot be written: {error}")))?;
    let verifying = written(&circuit.identity(), &proving, &key.vk);
    Ok(Keys { proving, verifying })
}

fn written(circuit: &[u8; 32], proving: &[u8], key: &VerifyingKey<Bn254>) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(circuit);
    out.extend(blake3::hash(proving).as_bytes());
    put_first(&mut out, &key.alpha_g1);
    for point in [&key.beta_g2, &key.gamma_g2, &key.delta_g2] {
        put_second(&mut out, point);
    }
    for point in &key.gamma_abc_g1 {
        put_first(&mut out, point);
    }
    out
}

/// A verifying key that was read, ready for many proofs.
#[derive(Debug)]
pub struct Verifying {
    /// The hash of its proving key.
    pub proving: [u8; 32],
    /// The key, prepared for pairings.
    pub prepared: PreparedVerifyingKey<Bn254>,
}

impl Verifying {
    /// Read a key of a circuit.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are not a key of this circuit, or if the key allows forgery.
    pub fn read(circuit: &Circuit, bytes: &[u8]) -> Result<Self, Malformed> {
        let foreign = || Malformed("this is no verifying key of this circuit".into());
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(foreign)?;
        let rest = rest.strip_prefix(&circuit.identity()).ok_or_else(foreign)?;
        let (proving, rest) = rest.split_first_chunk::<32>().ok_or_else(foreign)?;
        let mut points = Bytes(rest);
        let alpha_g1 = points.first()?;
        let [beta_g2, gamma_g2, delta_g2] = [points.second()?, points.second()?, points.second()?];
        let inputs = (0..=public::count(circuit.statement())).map(|_| points.first());
        let gamma_abc_g1 = inputs.collect::<Result<Vec<_>, _>>()?;
        if !points.0.is_empty() {
            return Err(foreign());
        }
        if gamma_g2 == delta_g2 || gamma_g2 == -delta_g2 || delta_g2 == G2Affine::generator() {
            return Err(Malformed(
                "gamma equals delta in this key, or delta is known: such a key \
                 allows forged proofs"
                    .into(),
            ));
        }
        let key = VerifyingKey {
            alpha_g1,
            beta_g2,
            gamma_g2,
            delta_g2,
            gamma_abc_g1,
        };
        Ok(Self {
            proving: *proving,
            prepared: prepare_verifying_key(&key),
        })
    }
}

/// Read the proving key that the verifying key names. It must have the size of the constraints.
///
/// The key is long, so its bytes are never held in memory: they are hashed, then read a second time.
/// A key with another hash is not parsed. A key that changed between the two reads is refused.
///
/// # Errors
/// [`Malformed`] if it is another key.
pub fn read_proving<R: Read + Seek>(
    verifying: &Verifying,
    mut source: R,
    constraints: &Constraints,
) -> Result<ProvingKey<Bn254>, Malformed> {
    let unread = |error: &dyn std::fmt::Display| {
        Malformed(format!("the proving key cannot be read: {error}"))
    };
    let named = |found: &blake3::Hasher| {
        if found.finalize().as_bytes() == &verifying.proving {
            return Ok(());
        }
        Err(Malformed(
            "the proving key is not the one that the verifying key names".into(),
        ))
    };
    let mut first = blake3::Hasher::new();
    first
        .update_reader(&mut source)
        .map_err(|error| unread(&error))?;
    named(&first)?;
    source.rewind().map_err(|error| unread(&error))?;
    let mut second = Passing {
        source: BufReader::new(source),
        passed: blake3::Hasher::new(),
    };
    let key = ProvingKey::deserialize_with_mode(&mut second, Compress::No, Validate::No)
        .map_err(|error| unread(&error))?;
    let rest = second.read(&mut [0]).map_err(|error| unread(&error))?;
    named(&second.passed)?;
    if rest == 0 && fits(&key, constraints) {
        Ok(key)
    } else {
        Err(Malformed("the proving key is not of this circuit".into()))
    }
}

/// A reader that hashes what it reads.
struct Passing<R> {
    source: R,
    passed: blake3::Hasher,
}

impl<R: Read> Read for Passing<R> {
    fn read(&mut self, into: &mut [u8]) -> Readable<usize> {
        let size = self.source.read(into)?;
        self.passed.update(&into[..size]);
        Ok(size)
    }
}

/// Whether a key has exactly the points that the constraints need.
fn fits(key: &ProvingKey<Bn254>, constraints: &Constraints) -> bool {
    let (variables, publics) = (constraints.assignment.len(), constraints.publics);
    let domain = (constraints.parts.len() + publics).next_power_of_two();
    key.vk.gamma_abc_g1.len() == publics
        && key.a_query.len() == variables
        && key.b_g1_query.len() == variables
        && key.b_g2_query.len() == variables
        && key.h_query.len() == domain - 1
        && key.l_query.len() == variables - publics
}

/// The matrices, as arkworks expects them for making keys.
struct Matrices<'a>(&'a Constraints);

impl ConstraintSynthesizer<Fr> for Matrices<'_> {
    fn generate_constraints(self, system: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
        let constraints = self.0;
        for _ in 1..constraints.publics {
            let _ = system.new_input_variable(|| Ok(Fr::ZERO))?;
        }
        for _ in constraints.publics..constraints.assignment.len() {
            let _ = system.new_witness_variable(|| Ok(Fr::ZERO))?;
        }
        let [a, b, c] = constraints
            .matrices
            .as_ref()
            .expect("a blank constraints keeps them");
        let sum = |row: &Row| {
            let variable = |at: usize| match at {
                0 => Variable::One,
                at if at < constraints.publics => Variable::instance(at),
                at => Variable::witness(at - constraints.publics),
            };
            LinearCombination(
                row.iter()
                    .map(|(weight, at)| (*weight, variable(*at)))
                    .collect(),
            )
        };
        for ((a, b), c) in a.iter().zip(b).zip(c) {
            system.enforce_r1cs_constraint(|| sum(a), || sum(b), || sum(c))?;
        }
        Ok(())
    }
}
