//! Proving and verifying.

use std::io::{Read, Seek};

use ark_bn254::{Bn254, Fr};
use ark_ff::AdditiveGroup;
use ark_groth16::{Groth16, Proof};
use ark_relations::utils::matrix::Matrix;

use super::circuit::{self, Secret};
use super::constraints::Constraints;
use super::keys::{Verifying, read_proving, scalar};
use super::points::{Bytes, put_first, put_second};
use super::statement::{BIAS, SCALE};
use super::tree::Tree;
use super::{Batch, Circuit, Malformed, Public, Refused, public};
pub use crate::full::{Invalid, Unproven};

/// Bytes of a proof.
pub const PROOF_BYTES: usize = 256;

/// A challenge and a context: all public inputs except the root.
#[derive(Debug, Clone, Copy)]
pub struct Draw<'a> {
    /// Rows of the batch.
    pub rows: usize,
    /// The sampled rows.
    pub sampled: &'a [usize],
    /// How many of the sampled rows may violate.
    pub violating: u64,
    /// On how many sampled rows each coupling may be inapplicable.
    pub inapplicable: &'a [u64],
    /// The context to which the proof is bound.
    pub context: [u8; 32],
}

impl Draw<'_> {
    const fn under(&self, root: Fr) -> Public<'_> {
        Public {
            root,
            rows: self.sampled,
            violating: self.violating,
            inapplicable: self.inapplicable,
            context: self.context,
        }
    }
}

impl Circuit {
    /// Which sampled rows violate, and on how many each coupling is inapplicable.
    ///
    /// # Errors
    /// [`Malformed`] if the batch does not fit this statement, or a row is not in the batch.
    pub fn measure(
        &self,
        batch: &Batch<'_>,
        sampled: &[usize],
    ) -> Result<(Vec<bool>, Vec<u64>), Malformed> {
        batch.check(&self.statement)?;
        if sampled.iter().any(|row| !(1..batch.rows).contains(row)) {
            return Err(Malformed("a sampled row is not in the batch".into()));
        }
        let mut inapplicable = vec![0; self.statement.couplings.len()];
        let flags = sampled
            .iter()
            .map(|row| self.violates(batch, *row, &mut inapplicable))
            .collect();
        Ok((flags, inapplicable))
    }

    fn violates(&self, batch: &Batch<'_>, row: usize, inapplicable: &mut [u64]) -> bool {
        let reading = |row, at| i128::from(batch.reading(row, at)) - BIAS;
        let mut violates = false;
        for (rule, silent) in self.statement.couplings.iter().zip(inapplicable) {
            let [now, before] =
                [row, row - 1].map(|row| usize::from(batch.code(row, rule.actuator)));
            if !rule.states.contains(&now) || (rule.steady && before != now) {
                *silent += 1;
                continue;
            }
            let code = i128::from(self.statement.actuators[rule.actuator][now]);
            let residual = i128::from(rule.flow_weight) * reading(row, rule.flow)
                + i128::from(rule.code_weight) * SCALE * code
                + i128::from(rule.constant);
            violates |= residual.abs() > i128::from(rule.tolerance);
        }
        for rule in &self.statement.balances {
            let total = |row, terms: &[(usize, i64)]| -> i128 {
                let weigh = |(at, weight): &(usize, i64)| i128::from(*weight) * reading(row, *at);
                terms.iter().map(weigh).sum()
            };
            let residual =
                total(row - 1, &rule.before) + total(row, &rule.now) + i128::from(rule.constant);
            violates |= residual.abs() > i128::from(rule.tolerance);
        }
        violates
    }

    /// Assign a batch to the constraints, also if it breaks rules. `flags` are taken as given.
    ///
    /// # Errors
    /// [`Malformed`] if batch, rows or budgets do not fit this statement.
    pub fn assign(
        &self,
        batch: &Batch<'_>,
        salt: &[u8; 32],
        draw: &Draw<'_>,
        flags: &[bool],
        keep_matrices: bool,
    ) -> Result<Constraints, Malformed> {
        batch.check(&self.statement)?;
        let tree = Tree::of(&self.shape, batch, salt);
        let public = draw.under(tree.root());
        public.check(&self.statement, batch.rows)?;
        let secret = Secret {
            batch,
            tree: &tree,
            salt,
        };
        let mut constraints = Constraints::new(&public.elements(), keep_matrices);
        circuit::fill(
            &mut constraints,
            &self.statement,
            &self.shape,
            &public,
            &secret,
            flags,
        );
        Ok(constraints)
    }

    /// Prove that the committed batch obeys the rules on all but a few of the sampled rows.
    ///
    /// # Errors
    /// [`Unproven`] if it does not, or if key, batch, rows or budgets do not fit this circuit.
    pub fn prove<R: Read + Seek>(
        &self,
        verifying: &Verifying,
        proving: R,
        batch: &Batch<'_>,
        salt: &[u8; 32],
        draw: &Draw<'_>,
        entropy: &[u8; 32],
    ) -> Result<Vec<u8>, Unproven> {
        if draw.rows != batch.rows {
            return Err(Malformed("the batch has another number of rows".into()).into());
        }
        let (flags, inapplicable) = self.measure(batch, draw.sampled)?;
        let violating = flags.iter().filter(|flag| **flag).count() as u64;
        if violating > draw.violating {
            return Err(Refused(format!(
                "{violating} of {} sampled rows violate; the budget is {}",
                flags.len(),
                draw.violating
            ))
            .into());
        }
        for (rule, (found, budget)) in inapplicable.iter().zip(draw.inapplicable).enumerate() {
            if found > budget {
                return Err(Refused(format!(
                    "coupling {rule} is silent on {found} sampled rows; the budget is {budget}"
                ))
                .into());
            }
        }
        let constraints = self.assign(batch, salt, draw, &flags, false)?;
        if let Some((at, part)) = constraints.broken() {
            let part = part.name();
            return Err(Unproven::Failed(format!(
                "constraint {at} ({part}) does not hold"
            )));
        }
        let key = read_proving(verifying, proving, &constraints)?;
        let masks = [b"mask r", b"mask s"].map(|name| scalar(entropy, name));
        let proof = Groth16::<Bn254>::create_proof_with_reduction_and_matrices(
            &key,
            masks[0],
            masks[1],
            &valued(&constraints),
            constraints.publics,
            constraints.parts.len(),
            &constraints.assignment,
        )
        .map_err(|error| Unproven::Failed(error.to_string()))?;
        let publics = &constraints.assignment[1..constraints.publics];
        match Groth16::<Bn254>::verify_proof(&verifying.prepared, &proof, publics) {
            Ok(true) => Ok(written(&proof)),
            _ => Err(Unproven::Failed(
                "the proving key is not one of this circuit".into(),
            )),
        }
    }

    /// Verify a proof.
    ///
    /// # Errors
    /// [`Invalid`]: the shape is wrong, or the proof fails.
    pub fn verify(
        &self,
        verifying: &Verifying,
        commitment: &[u8; 32],
        draw: &Draw<'_>,
        proof: &[u8],
    ) -> Result<(), Invalid> {
        let shape = |error: Malformed| Invalid::Shape(error.0);
        let public = draw.under(public::root(commitment).map_err(shape)?);
        public.check(&self.statement, draw.rows).map_err(shape)?;
        let proof = read(proof).map_err(shape)?;
        match Groth16::<Bn254>::verify_proof(&verifying.prepared, &proof, &public.elements()) {
            Ok(true) => Ok(()),
            _ => Err(Invalid::Fails("the pairing equation does not hold".into())),
        }
    }
}

/// Matrices that give the known products: one value for each row, times the constant one.
fn valued(constraints: &Constraints) -> Vec<Matrix<Fr>> {
    let row = |value: &Fr| {
        if *value == Fr::ZERO {
            Vec::new()
        } else {
            vec![(*value, 0)]
        }
    };
    let matrix = |products: &Vec<Fr>| products.iter().map(row).collect();
    constraints.products.iter().map(matrix).collect()
}

fn written(proof: &Proof<Bn254>) -> Vec<u8> {
    let mut out = Vec::with_capacity(PROOF_BYTES);
    put_first(&mut out, &proof.a);
    put_second(&mut out, &proof.b);
    put_first(&mut out, &proof.c);
    out
}

fn read(bytes: &[u8]) -> Result<Proof<Bn254>, Malformed> {
    if bytes.len() != PROOF_BYTES {
        return Err(Malformed(format!(
            "a proof has {PROOF_BYTES} bytes, not {}",
            bytes.len()
        )));
    }
    let mut points = Bytes(bytes);
    Ok(Proof {
        a: points.first()?,
        b: points.second()?,
        c: points.first()?,
    })
}
