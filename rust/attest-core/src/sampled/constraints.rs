//! A rank-1 constraint system and its assignment, built together.
//!
//! A gadget that constrains values also computes them, so the two always agree. A prover keeps only
//! the values `A z`, `B z`, `C z` of each constraint. Key generation and tests also keep the matrices.

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, BigInteger, Field, PrimeField};

/// A row of a matrix: coefficients with their variables.
pub type Row = Vec<(Fr, usize)>;

/// What a constraint is for. Costs are counted by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The bits of a sampled row's number, and of the row before it.
    Indices,
    /// Thirty-two bits for every continuous channel of every opened row.
    Readings,
    /// One legal code for every actuator of every opened row.
    Codes,
    /// Channels put side by side into field elements.
    Packing,
    /// The salted hash of a row.
    Leaf,
    /// Hashes from a leaf to the root.
    Tree,
    /// That a node is the child that its row's number selects.
    Place,
    /// Whether a coupling is steady on both rows.
    Applicability,
    /// Residuals within tolerance unless the row is flagged.
    Tolerances,
    /// One flag for each row.
    Flags,
    /// Counters compared with budgets.
    Budgets,
    /// The context.
    Context,
}

impl Part {
    /// Every part, in the order of the circuit.
    pub const ALL: [Self; 12] = [
        Self::Indices,
        Self::Readings,
        Self::Codes,
        Self::Packing,
        Self::Leaf,
        Self::Tree,
        Self::Place,
        Self::Applicability,
        Self::Tolerances,
        Self::Flags,
        Self::Budgets,
        Self::Context,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Indices => "row numbers",
            Self::Readings => "readings, 32 bits each",
            Self::Codes => "actuator codes",
            Self::Packing => "packing",
            Self::Leaf => "salted leaf hash",
            Self::Tree => "tree hashes",
            Self::Place => "place in the tree",
            Self::Applicability => "applicability",
            Self::Tolerances => "tolerances",
            Self::Flags => "row flags",
            Self::Budgets => "counters and budgets",
            Self::Context => "context",
        }
    }
}

/// A variable and its value.
#[derive(Debug, Clone, Copy)]
pub struct Wire {
    /// Its place in the assignment.
    pub index: usize,
    /// Its value.
    pub value: Fr,
}

/// A weighted sum of variables, and its value.
#[derive(Debug, Clone)]
pub struct Sum {
    terms: Row,
    /// Its value.
    pub value: Fr,
}

impl Sum {
    /// A constant.
    pub fn constant(value: Fr) -> Self {
        let terms = if value == Fr::ZERO {
            Row::new()
        } else {
            vec![(value, 0)]
        };
        Self { terms, value }
    }

    /// The empty sum.
    pub fn zero() -> Self {
        Self::constant(Fr::ZERO)
    }

    /// A sum of given terms and value. The caller must make sure that they agree.
    pub(super) const fn of(terms: Row, value: Fr) -> Self {
        Self { terms, value }
    }

    /// This sum plus another one, weighted.
    #[must_use]
    pub fn plus(mut self, weight: Fr, other: &Self) -> Self {
        self.value += weight * other.value;
        let weighted = other.terms.iter().map(|(each, at)| (weight * each, *at));
        self.terms.extend(weighted);
        self
    }

    /// This sum plus a constant.
    #[must_use]
    pub fn shifted(self, by: Fr) -> Self {
        self.plus(Fr::ONE, &Self::constant(by))
    }

    /// This sum minus another one.
    #[must_use]
    pub fn less(self, other: &Self) -> Self {
        self.plus(-Fr::ONE, other)
    }

    /// One minus this sum: the negation of a flag.
    #[must_use]
    pub fn negated(&self) -> Self {
        Self::constant(Fr::ONE).less(self)
    }
}

impl From<Wire> for Sum {
    fn from(wire: Wire) -> Self {
        Self::of(vec![(Fr::ONE, wire.index)], wire.value)
    }
}

/// The system and its assignment. Variable 0 is one; the public variables follow, then the private ones.
#[derive(Debug)]
pub struct Constraints {
    /// The value of every variable.
    pub assignment: Vec<Fr>,
    /// How many variables are public, including the constant one.
    pub publics: usize,
    /// `A z`, `B z` and `C z`, by constraint.
    pub products: [Vec<Fr>; 3],
    /// What each constraint is for.
    pub parts: Vec<Part>,
    /// `A`, `B` and `C`, if they are kept.
    pub matrices: Option<[Vec<Row>; 3]>,
}

impl Constraints {
    /// An empty system with these public inputs.
    pub fn new(publics: &[Fr], keep_matrices: bool) -> Self {
        let mut assignment = vec![Fr::ONE];
        assignment.extend_from_slice(publics);
        Self {
            publics: assignment.len(),
            assignment,
            products: [Vec::new(), Vec::new(), Vec::new()],
            parts: Vec::new(),
            matrices: keep_matrices.then(|| [Vec::new(), Vec::new(), Vec::new()]),
        }
    }

    /// A public input, counted from 0.
    pub fn public(&self, input: usize) -> Sum {
        let index = input + 1;
        assert!(index < self.publics, "no public input {input}");
        let value = self.assignment[index];
        Wire { index, value }.into()
    }

    /// A new private variable.
    pub fn private(&mut self, value: Fr) -> Wire {
        let index = self.assignment.len();
        self.assignment.push(value);
        Wire { index, value }
    }

    /// Demand `a * b = c`.
    pub fn enforce(&mut self, part: Part, a: &Sum, b: &Sum, c: &Sum) {
        self.parts.push(part);
        for (products, sum) in self.products.iter_mut().zip([a, b, c]) {
            products.push(sum.value);
        }
        if let Some(matrices) = &mut self.matrices {
            for (matrix, sum) in matrices.iter_mut().zip([a, b, c]) {
                matrix.push(gathered(sum.terms.clone()));
            }
        }
    }

    /// Demand that two sums are equal.
    pub fn equal(&mut self, part: Part, left: &Sum, right: &Sum) {
        self.enforce(part, left, &Sum::constant(Fr::ONE), right);
    }

    /// A new variable that is the product of two sums.
    pub fn product(&mut self, part: Part, a: &Sum, b: &Sum) -> Sum {
        let product = self.private(a.value * b.value).into();
        self.enforce(part, a, b, &product);
        product
    }

    /// A new variable that is zero or one.
    pub fn flag(&mut self, part: Part, set: bool) -> Sum {
        let flag = self.private(Fr::from(set)).into();
        self.demand_flag(part, &flag);
        flag
    }

    /// Demand that a sum is zero or one.
    pub fn demand_flag(&mut self, part: Part, sum: &Sum) {
        self.enforce(part, sum, &sum.negated(), &Sum::zero());
    }

    /// New flags for the lowest bits of a value, lowest bit first.
    pub fn bits(&mut self, part: Part, value: Fr, width: usize) -> Vec<Sum> {
        let value = value.into_bigint();
        (0..width)
            .map(|bit| self.flag(part, value.get_bit(bit)))
            .collect()
    }

    /// Demand that a sum lies in `0..2^width`, which must be far below the field's order.
    pub fn demand_bits(&mut self, part: Part, sum: &Sum, width: usize) -> Vec<Sum> {
        let bits = self.bits(part, sum.value, width);
        self.equal(part, &weighted(&bits), sum);
        bits
    }

    /// The first constraint that the assignment breaks, or none.
    pub fn broken(&self) -> Option<(usize, Part)> {
        let [a, b, c] = &self.products;
        (0..self.parts.len())
            .find(|&at| a[at] * b[at] != c[at])
            .map(|at| (at, self.parts[at]))
    }

    /// How many constraints a part has.
    pub fn cost(&self, part: Part) -> usize {
        self.parts.iter().filter(|each| **each == part).count()
    }
}

/// The number whose bits these are, lowest first.
pub fn weighted(bits: &[Sum]) -> Sum {
    let mut weight = Fr::ONE;
    let mut sum = Sum::zero();
    for bit in bits {
        sum = sum.plus(weight, bit);
        weight.double_in_place();
    }
    sum
}

/// A row with each variable once, in order.
fn gathered(mut terms: Row) -> Row {
    terms.sort_unstable_by_key(|(_, at)| *at);
    terms.dedup_by(|later, earlier| {
        let same = later.1 == earlier.1;
        if same {
            earlier.0 += later.0;
        }
        same
    });
    terms.retain(|(weight, _)| *weight != Fr::ZERO);
    terms
}
