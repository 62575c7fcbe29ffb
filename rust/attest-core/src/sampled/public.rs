//! The public inputs: root, sampled rows, budgets, context. The verifier computes them itself.

use ark_bn254::Fr;
use ark_ff::{BigInt, PrimeField};

use super::Malformed;
use super::statement::Statement;

/// The public inputs, before they are encoded as field elements.
#[derive(Debug, Clone, Copy)]
pub struct Public<'a> {
    /// The committed root.
    pub root: Fr,
    /// The sampled rows.
    pub rows: &'a [usize],
    /// How many sampled rows may violate.
    pub violating: u64,
    /// On how many sampled rows each coupling may be inapplicable.
    pub inapplicable: &'a [u64],
    /// The context to which the proof is bound.
    pub context: [u8; 32],
}

impl Public<'_> {
    /// The field elements, in the circuit's order: root, rows, budgets, context.
    pub fn elements(&self) -> Vec<Fr> {
        let mut elements = vec![self.root];
        elements.extend(self.rows.iter().map(|row| Fr::from(*row as u64)));
        elements.push(Fr::from(self.violating));
        elements.extend(self.inapplicable.iter().map(|budget| Fr::from(*budget)));
        // Two halves of sixteen bytes: every context is its own pair of elements.
        for half in [&self.context[..16], &self.context[16..]] {
            elements.push(Fr::from_be_bytes_mod_order(half));
        }
        elements
    }

    /// Check that rows and budgets fit the circuit and the length of the batch.
    ///
    /// # Errors
    /// [`Malformed`] says what is out of range, repeated or too many.
    pub fn check(&self, statement: &Statement, rows: usize) -> Result<(), Malformed> {
        let samples = statement.samples;
        if rows > 1 << statement.depth || rows <= samples {
            return Err(Malformed(format!(
                "{rows} rows are not {} to {}",
                samples + 1,
                1 << statement.depth
            )));
        }
        let mut distinct = self.rows.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        if self.rows.len() != samples || distinct.len() != samples {
            return Err(Malformed(format!("not {samples} distinct rows")));
        }
        if distinct.first() == Some(&0) || distinct.last().is_some_and(|last| *last >= rows) {
            return Err(Malformed(format!("a sampled row is not 1 to {}", rows - 1)));
        }
        let budgets = self.inapplicable.iter().chain([&self.violating]);
        if self.inapplicable.len() != statement.couplings.len()
            || budgets.clone().any(|budget| *budget > samples as u64)
        {
            return Err(Malformed(format!(
                "budgets are not 0 to {samples}, one a coupling"
            )));
        }
        Ok(())
    }
}

/// How many public inputs a statement has.
pub fn count(statement: &Statement) -> usize {
    1 + statement.samples + 1 + statement.couplings.len() + 2
}

/// Read a root from its big-endian bytes, which must be canonical.
///
/// # Errors
/// [`Malformed`] if the bytes are not below the field's order.
pub fn root(bytes: &[u8; 32]) -> Result<Fr, Malformed> {
    Fr::from_bigint(BigInt(limbs(bytes)))
        .ok_or_else(|| Malformed("the root is not a canonical field element".into()))
}

/// Big-endian bytes as four limbs, lowest limb first.
pub(super) fn limbs(bytes: &[u8; 32]) -> [u64; 4] {
    let mut limbs = [0; 4];
    for (limb, chunk) in limbs.iter_mut().rev().zip(bytes.as_chunks::<8>().0) {
        *limb = u64::from_be_bytes(*chunk);
    }
    limbs
}
