//! What a circuit is: its statement, its parameters, and its constraints themselves.

use std::sync::Arc;

use p3_air::symbolic::{AirLayout, get_max_constraint_degree_extension, get_symbolic_constraints};
use p3_air::{Air, BaseAir, RowWindow};
use p3_field::coset::TwoAdicMultiplicativeCoset;
use p3_field::{BasedVectorSpace, PrimeCharacteristicRing};
use p3_fri::FriParameters;
use p3_matrix::dense::RowMajorMatrixView;
use p3_matrix::stack::VerticalPair;
use p3_uni_stark::{OpeningShape, ProvenSecurity, StarkSecurityParams, VerifierConstraintFolder};

use super::air::FullAir;
use super::columns::F;
use super::digest::CHAIN;
use super::parameters::{self, CODEWORDS, COLLISION_BITS, Challenge, Config, EXTENSION};

const DOMAIN: &str = "sluice full circuit 1";
/// The order of the field lies just below 2^64: a bit less is the safe side.
const CHALLENGE_BITS: usize = 64 * EXTENSION - 1;

/// Hash a statement, every parameter, and the constraints as a polynomial: all of them folded into
/// one value at a point that the rest decides. Other constraints, however they came about, give
/// another value.
#[must_use]
pub fn identity(statement: &[u8], air: &FullAir) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(DOMAIN);
    for (name, value) in parameters::named() {
        hasher
            .update(name.as_bytes())
            .update(&[0])
            .update(&value.to_le_bytes());
    }
    hasher
        .update(&(statement.len() as u64).to_le_bytes())
        .update(statement);
    let bound = air.layout.moments.as_ref().map(|moments| FullAir {
        form: Some(Arc::new(moments.unbound(hasher.finalize().as_bytes()))),
        ..air.clone()
    });
    let air = bound.as_ref().unwrap_or(air);
    let folded = fold(air, &mut Points(hasher.finalize_xof()));
    let coordinates: &[F] = folded.as_basis_coefficients_slice();
    for coordinate in coordinates {
        hasher.update(&p3_field::PrimeField64::as_canonical_u64(coordinate).to_le_bytes());
    }
    hasher.finalize().into()
}

/// Hash the constraints of a segment of a chain in the same way; `air` has seams at both ends.
#[must_use]
pub fn chained(identity: &[u8; 32], air: &FullAir) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("sluice full chain circuit 2");
    hasher.update(identity);
    let folded = fold(air, &mut Points(hasher.finalize_xof()));
    let coordinates: &[F] = folded.as_basis_coefficients_slice();
    for coordinate in coordinates {
        hasher.update(&p3_field::PrimeField64::as_canonical_u64(coordinate).to_le_bytes());
    }
    hasher.finalize().into()
}

/// Challenges, one after another, from a hash.
struct Points(blake3::OutputReader);

impl Points {
    fn one(&mut self) -> Challenge {
        let coordinates: [F; EXTENSION] = std::array::from_fn(|_| {
            let mut word = [0; 8];
            self.0.fill(&mut word);
            F::from_u64(u64::from_le_bytes(word))
        });
        Challenge::from_basis_coefficients_fn(|at| coordinates[at])
    }

    fn base(&mut self) -> F {
        let element = self.one();
        let coordinates: &[F] = element.as_basis_coefficients_slice();
        coordinates[0]
    }

    fn many(&mut self, count: usize) -> Vec<Challenge> {
        (0..count).map(|_| self.one()).collect()
    }
}

fn fold(air: &FullAir, points: &mut Points) -> Challenge {
    let [here, next] = [(); 2].map(|()| points.many(air.width()));
    let public = points.many(air.num_periodic_columns());
    let [is_first_row, is_last_row, is_transition, alpha] = [(); 4].map(|()| points.one());
    let mut values = vec![F::ZERO; CHAIN];
    values.extend((CHAIN..air.num_public_values()).map(|_| points.base()));
    let mut folder: VerifierConstraintFolder<Config> = VerifierConstraintFolder {
        main: VerticalPair::new(
            RowMajorMatrixView::new_row(&here),
            RowMajorMatrixView::new_row(&next),
        ),
        preprocessed: VerticalPair::new(
            RowMajorMatrixView::new(&[], 0),
            RowMajorMatrixView::new(&[], 0),
        ),
        preprocessed_window: RowWindow::from_two_rows(&[], &[]),
        periodic_values: &public,
        public_values: &values,
        is_first_row,
        is_last_row,
        is_transition,
        alpha,
        accumulator: Challenge::ZERO,
    };
    air.eval(&mut folder);
    folder.accumulator
}

/// How many constraints there are.
#[must_use]
pub fn constraints(air: &FullAir) -> usize {
    get_symbolic_constraints::<F, _>(air, AirLayout::from_air::<F>(air)).len()
}

/// The largest degree of a constraint, as a multiple of the trace's.
#[must_use]
pub fn degree(air: &FullAir) -> usize {
    let layout = AirLayout::from_air::<F>(air);
    get_max_constraint_degree_extension::<F, F, _>(air, layout, air.public.height)
}

/// Bits of soundness that are proven, not conjectured, for a trace of this height, as one proof or in a
/// chain of at most so many segments. Chances of luck in the field are added over the segments, so the
/// field is taken to be that much smaller. Chances of the queries are not: a try is for one segment.
///
/// # Panics
/// Where the height is no power of two within the field's two-adicity.
#[must_use]
pub fn proven_bits(air: &FullAir, segments: usize) -> usize {
    let doublings = segments.next_power_of_two().ilog2() as usize;
    bits_with(air, &parameters::fri(()), CHALLENGE_BITS - doublings)
}

/// The bits of one trace with any parameters, and challenges from a field of so many bits.
fn bits_with(air: &FullAir, fri: &FriParameters<()>, field_bits: usize) -> usize {
    let log_height = air.public.height.ilog2() as usize;
    let domain = TwoAdicMultiplicativeCoset::new(F::ONE, log_height).expect("a trace of our own");
    let params = StarkSecurityParams::from_air::<F, Challenge, _>(
        fri.security_regime(),
        air,
        AirLayout::from_air::<F>(air),
        domain,
        field_bits,
        COLLISION_BITS,
        2,
        OpeningShape::hiding(CODEWORDS),
        fri.grinding_sites(),
    );
    let proven = ProvenSecurity::compute_from_proof(log_height + 1, &params);
    proven.unique_decoding_bits.max(proven.list_decoding_bits)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::layout::Layout;
    use super::super::public::Public;
    use super::super::statement::Statement;
    use super::*;

    const WANTED: usize = 100;
    const GAUGE: &str = r#"{
        "version": 2,
        "encoding": "0000000000000000000000000000000000000000000000000000000000000000",
        "registers": [{"low": 0, "high": 7}],
        "actuators": [],
        "lanes": [[{"source": {"register": 0}, "weight": 1}]],
        "jumps": false, "severe": false,
        "bounds": [], "rates": [], "couplings": [], "balances": [], "windows": [], "liveness": [],
        "idle": [], "ties": [], "switches": [], "spectra": []
    }"#;

    fn air(height: usize) -> FullAir {
        let statement = Statement::read(GAUGE.as_bytes()).expect("a statement");
        let layout = Arc::new(Layout::new(&statement));
        let public = Arc::new(Public::unbudgeted(&layout, height));
        FullAir {
            layout,
            public,
            form: None,
            seam: None,
        }
    }

    #[test]
    fn weaker_parameters_prove_less_than_a_hundred_bits() {
        let ours = || parameters::fri(());
        let mut fewer_queries = ours();
        fewer_queries.num_queries -= 1;
        let mut less_work = ours();
        less_work.query_proof_of_work_bits -= 2;
        let mut shorter_codewords = ours();
        shorter_codewords.log_blowup -= 1;
        for height in [256, 1 << 11, 1 << 17] {
            let air = air(height);
            assert!(bits_with(&air, &ours(), CHALLENGE_BITS) >= WANTED);
            for (at, weaker) in [&fewer_queries, &less_work, &shorter_codewords]
                .into_iter()
                .enumerate()
            {
                let bits = bits_with(&air, weaker, CHALLENGE_BITS);
                assert!(bits < WANTED, "{at} at {height}: {bits}");
            }
            assert!(bits_with(&air, &ours(), 63) < WANTED);
        }
    }

    #[test]
    fn only_luck_in_the_field_grows_with_the_segments_of_a_chain() {
        let air = air(1 << 12);
        let one = proven_bits(&air, 1);
        assert_eq!(proven_bits(&air, 1 << 11), one, "the queries limit them");
        assert!(proven_bits(&air, 1 << 50) < one, "the field limits them");
    }
}
