//! Rows in salted leaves under one root.
//!
//! A leaf is `Poseidon(salt, elements...)`. The channels of a row are packed into as few elements as
//! possible. Leaves after the last row are zero; no input is known whose hash is zero.

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, PrimeField};

use super::statement::{READING_BITS, Statement};
use super::{Batch, Malformed};
use crate::poseidon::{self, MAX_INPUTS};

/// How many bits always fit an element.
const ELEMENT_BITS: usize = 252;

/// A channel within an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// A reading.
    Reading(usize),
    /// The place of an actuator's code among its legal ones.
    Code(usize),
}

/// How rows are packed and how leaves form a tree.
#[derive(Debug, Clone)]
pub struct Shape {
    /// The channels of each element and their lowest bits.
    pub elements: Vec<Vec<(Channel, usize)>>,
    /// Children of a node for each level, from the leaves up.
    pub arities: Vec<usize>,
}

impl Shape {
    /// Compute the shape of a statement's tree.
    ///
    /// # Errors
    /// [`Malformed`] if a row has too many channels for one leaf.
    pub fn of(statement: &Statement) -> Result<Self, Malformed> {
        let elements = packed(statement);
        if elements.len() >= MAX_INPUTS {
            return Err(Malformed(format!(
                "a row of {} readings and {} actuators needs {} field elements; a leaf holds {}",
                statement.readings,
                statement.actuators.len(),
                elements.len(),
                MAX_INPUTS - 1
            )));
        }
        Ok(Self {
            elements,
            arities: arities(statement.depth),
        })
    }

    /// The elements of a row.
    pub fn pack(&self, batch: &Batch<'_>, row: usize) -> Vec<Fr> {
        let element = |channels: &Vec<(Channel, usize)>| {
            let place = |(channel, low): &(Channel, usize)| {
                let value = match channel {
                    Channel::Reading(at) => u64::from(batch.reading(row, *at)),
                    Channel::Code(at) => u64::from(batch.code(row, *at)),
                };
                Fr::from(value) * power(*low)
            };
            channels.iter().map(place).sum()
        };
        self.elements.iter().map(element).collect()
    }
}

/// Two to a power.
pub fn power(of_two: usize) -> Fr {
    let mut limbs = [0; 4];
    limbs[of_two / 64] = 1 << (of_two % 64);
    Fr::from_bigint(ark_ff::BigInt(limbs)).expect("far below the field's order")
}

/// Nodes with eight children cost least. The root has four or sixteen if the depth needs it.
fn arities(depth: usize) -> Vec<usize> {
    let mut arities = vec![8; depth / 3];
    match (depth % 3, arities.last_mut()) {
        (0, _) => {}
        (1, Some(root)) => *root = 16,
        (rest, _) => arities.push(1 << rest),
    }
    arities
}

fn packed(statement: &Statement) -> Vec<Vec<(Channel, usize)>> {
    let readings = (0..statement.readings).map(|at| (Channel::Reading(at), READING_BITS));
    let codes = statement.actuators.iter().enumerate();
    let codes = codes.map(|(at, codes)| {
        let largest = codes.len() - 1;
        (
            Channel::Code(at),
            (usize::BITS - largest.leading_zeros()) as usize,
        )
    });
    let (mut elements, mut used) = (vec![Vec::new()], 0);
    for (channel, bits) in readings.chain(codes) {
        if used + bits > ELEMENT_BITS {
            elements.push(Vec::new());
            used = 0;
        }
        let element = elements.last_mut().expect("there is a first one");
        element.push((channel, used));
        used += bits;
    }
    elements
}

/// Every node, level by level.
#[derive(Debug)]
pub struct Tree {
    levels: Vec<Vec<Fr>>,
    arities: Vec<usize>,
}

impl Tree {
    /// Hash a batch.
    pub fn of(shape: &Shape, batch: &Batch<'_>, salt: &[u8; 32]) -> Self {
        let leaves: usize = shape.arities.iter().product();
        let mut level: Vec<Fr> = (0..batch.rows)
            .map(|row| leaf(salt_of(salt, row), &shape.pack(batch, row)))
            .collect();
        level.resize(leaves, Fr::ZERO);
        let mut levels = vec![level];
        for arity in &shape.arities {
            let below = levels.last().expect("there are leaves");
            let nodes = below.chunks(*arity).map(hashed).collect();
            levels.push(nodes);
        }
        Self {
            levels,
            arities: shape.arities.clone(),
        }
    }

    /// A tree of zeros, of which only the constraints are used. Only the first leaves have a path.
    pub(super) fn blank(shape: &Shape) -> Self {
        let levels = shape.arities.iter().map(|arity| vec![Fr::ZERO; *arity]);
        Self {
            levels: levels.collect(),
            arities: shape.arities.clone(),
        }
    }

    /// The leaves.
    pub fn leaves(&self) -> &[Fr] {
        &self.levels[0]
    }

    /// The root.
    pub fn root(&self) -> Fr {
        self.levels[self.arities.len()][0]
    }

    /// For each level, the siblings of the path from a leaf to the root, and the path itself.
    pub fn path(&self, leaf: usize) -> Vec<&[Fr]> {
        let mut at = leaf;
        let mut path = Vec::new();
        for (level, arity) in self.levels.iter().zip(&self.arities) {
            at /= arity;
            path.push(&level[at * arity..(at + 1) * arity]);
        }
        path
    }
}

/// The salt of a leaf, derived from the batch's salt; each row has its own.
pub fn salt_of(salt: &[u8; 32], row: usize) -> Fr {
    let mut hasher = blake3::Hasher::new_keyed(salt);
    hasher.update(b"sluice sampled leaf salt v1");
    hasher.update(&(row as u64).to_be_bytes());
    let mut wide = [0; 64];
    hasher.finalize_xof().fill(&mut wide);
    Fr::from_le_bytes_mod_order(&wide)
}

fn leaf(salt: Fr, elements: &[Fr]) -> Fr {
    let inputs: Vec<Fr> = std::iter::once(salt)
        .chain(elements.iter().copied())
        .collect();
    hashed(&inputs)
}

fn hashed(inputs: &[Fr]) -> Fr {
    poseidon::hash(inputs).expect("shapes have no node wider than a hash")
}
