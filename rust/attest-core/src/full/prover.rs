//! Prove: the steps of Plonky3's prover, in the memory of one coset at a time.
//!
//! The transcript and the foldings are Plonky3's own, and so is the verifier. What differs is how values
//! come about: the constraints are evaluated coset by coset, and openings are combined as polynomials, not
//! as codewords. All that is committed to after the trace is under one tree (see [`super::scheme`]).

use std::marker::PhantomData;

use p3_air::{Air, BaseAir, RowWindow};
use p3_commit::{LagrangeSelectors, PolynomialSpace};
use p3_dft::TwoAdicSubgroupDft;
use p3_field::coset::TwoAdicMultiplicativeCoset;
use p3_field::{
    BasedVectorSpace, Field, PackedFieldExtension, PackedValue, PrimeCharacteristicRing,
    TwoAdicField,
};
use p3_fri::prover::prove_fri;
use p3_fri::{
    BatchMultiOpening, FriParameters, FriProof, PcsProverTranscript, PcsShape, TwoAdicFriFolding,
    TwoAdicFriFoldingForMmcs,
};
use p3_matrix::Matrix;
use p3_matrix::bitrev::BitReversibleMatrix;
use p3_matrix::dense::{RowMajorMatrix, RowMajorMatrixView};
use p3_maybe_rayon::prelude::*;
use p3_uni_stark::{
    Commitments, OpenedValues, Proof, ProverConstraintFolder, StarkProverTranscript, StarkShape,
};
use rand::rngs::StdRng;
use rand::{CryptoRng, RngExt, SeedableRng};

use super::air::FullAir;
use super::codewords::{COSETS, Commitment, Committed, Coset, Openings, Polynomials};
use super::columns::F;
use super::parameters::{
    self, CODEWORDS, Challenge, Challenger, Config, Dft, EXTENSION, LOG_BLOWUP, Layers, Leaves,
    QUERIES,
};
use super::transform::{Packed, Transform, reversed};

type Domain = TwoAdicMultiplicativeCoset<F>;

/// A trace that is committed to, and that one proof can be made of.
#[derive(Debug)]
pub struct Held<R = StdRng> {
    trace: Committed,
    transform: Transform,
    source: R,
}

impl<R: CryptoRng + SeedableRng + Send + Sync> Held<R> {
    /// Commit to a trace, with masks from a source.
    ///
    /// # Errors
    /// What is wrong where the trace has too few rows for its masks to cover all that is opened of it.
    pub fn commit(trace: &RowMajorMatrix<F>, mut source: R) -> Result<Self, String> {
        let opened = QUERIES + 2 * EXTENSION;
        if trace.height() < 2 * opened {
            return Err(format!(
                "{} rows have too few masks for {opened} openings",
                trace.height()
            ));
        }
        let transform = Transform::new(trace.height().ilog2() + 1);
        let masked = Polynomials::masked(trace, &mut source);
        Ok(Self {
            trace: Committed::new(masked, &transform, &mut source),
            transform,
            source,
        })
    }

    /// The commitment to the trace.
    #[must_use]
    pub fn commitment(&self) -> Commitment {
        self.trace.commitment()
    }

    /// Prove that the trace satisfies constraints of so high a degree. Whether it does is for the
    /// verifier to find out.
    ///
    /// # Errors
    /// What the proof system says where it fails.
    pub fn prove(
        mut self,
        air: &FullAir,
        degree: usize,
        publics: &[F],
        mut challenger: Challenger,
    ) -> Result<Proof<Config<R>>, String> {
        let log_rows = air.public.height.ilog2() as usize;
        let log_chunks = degree.next_power_of_two().ilog2() as usize;
        let chunks = 2 << log_chunks;
        let trace_commitment = self.commitment();
        let mut transcript = StarkProverTranscript::<Challenger, F, Challenge>::new(
            &mut challenger,
            StarkShape::new::<F, FullAir>(air, 0, log_rows + 1, log_rows, chunks, true, 0),
        );
        let alpha = transcript.constraint_phase(trace_commitment.clone(), None, publics);
        let values = self.quotient(air, log_chunks, publics, alpha);
        let beside = self.beside(values, log_rows + 1 + log_chunks, chunks);
        let commitments = Commitments {
            trace: trace_commitment,
            quotient_chunks: beside.commitment(),
            random: Some(beside.commitment()),
        };
        let (zeta, witness) = transcript.ood_phase(
            commitments.quotient_chunks.clone(),
            commitments.random.clone(),
        );
        let next = zeta * F::two_adic_generator(log_rows);
        let fri = parameters::foldings(R::from_rng(&mut self.source));
        let opened = transcript.delegate(|challenger| {
            let committed = [&self.trace, &beside];
            Self::open(&fri, committed, [zeta, next], challenger)
        });
        let (opened, opening_proof) = opened.inspect_err(|_| transcript.abort())?;
        transcript.finish();
        let ([local, next], [parts]) = opened;
        let (parts, random) = parts.split_at(EXTENSION * chunks);
        Ok(Proof {
            commitments,
            opened_values: OpenedValues {
                trace_local: local,
                trace_next: Some(next),
                preprocessed: None,
                quotient_chunks: parts.chunks(EXTENSION).map(<[_]>::to_vec).collect(),
                random: Some(random.to_vec()),
            },
            opening_proof,
            degree_bits: log_rows + 1,
            ood_pow_witness: witness.unwrap_or(F::ZERO),
        })
    }

    /// The values of the quotient on its domain: all constraints, combined and divided by the polynomial
    /// that vanishes on the trace's rows.
    fn quotient(
        &self,
        air: &FullAir,
        log_chunks: usize,
        publics: &[F],
        alpha: Challenge,
    ) -> Vec<Challenge> {
        let rows = air.public.height;
        let (height, bits) = (2 * rows, rows.ilog2() + 1);
        // Where constraints have a low degree, the quotient has fewer cosets than the codewords.
        let (cosets, apart) = (1 << log_chunks, COSETS >> log_chunks);
        let domain = Domain::new(F::ONE, rows.ilog2() as usize).expect("a trace of our own");
        let root = F::two_adic_generator(bits as usize + LOG_BLOWUP);
        let public = Polynomials::public(&air.periodic_columns(), rows);
        let weights = weights(air, publics, alpha);
        let mut quotient = Challenge::zero_vec(cosets * height);
        let (mut values, mut beside) = (Coset::default(), Coset::default());
        for at in 0..cosets {
            let trace = &self.trace.polynomials;
            trace.write(apart * at, &self.transform, &mut values);
            public.write(apart * at, &self.transform, &mut beside);
            let shift = F::GENERATOR * root.exp_u64((apart * at) as u64);
            let coset = Domain::new(shift, bits as usize).expect("a coset of a codeword");
            let selectors = domain.selectors_on_coset(coset);
            let steps = Steps {
                air,
                publics,
                weights: &weights,
                values: &values,
                public: &beside,
                selectors: &selectors,
            };
            let runs = (0..height / (Packed::WIDTH * RUN)).into_par_iter();
            let runs = runs.map(|run| steps.evaluate(run % 2 + run / 2 * 2 * RUN));
            for (row, value) in runs.collect::<Vec<_>>().into_iter().flatten() {
                quotient[cosets * row + at] = value;
            }
        }
        quotient
    }

    /// Commit to all that a proof has beside its trace: the parts of the quotient, each of the trace's
    /// degree and masked, a random polynomial, and the random columns of a matrix.
    fn beside(&mut self, values: Vec<Challenge>, log_size: usize, chunks: usize) -> Committed {
        let domain = Domain::new(F::GENERATOR, log_size).expect("a codeword's domain");
        let values = RowMajorMatrix::new_col(values).flatten_to_base();
        let parts = domain.split_evals(chunks, values);
        let domains = domain.split_domains(chunks);
        let masks = quotient_masks(&domains, parts[0].values.len(), &mut self.source);
        let parts = parts.into_par_iter().zip(&domains).zip(masks);
        let masked: Vec<_> = parts
            .map(|((part, domain), masks)| masked_part(part, *domain, &masks))
            .collect();
        let random = EXTENSION + CODEWORDS;
        let polynomials = Polynomials::beside_random(&masked, random, &mut self.source);
        Committed::new(polynomials, &self.transform, &mut self.source)
    }

    /// Open what is committed: all of it at the first point, the trace at the second one too. By
    /// commitment and point, without the random columns, and the proof.
    fn open(
        fri: &FriParameters<Layers<R>>,
        [trace, beside]: [&Committed; 2],
        [here, next]: [Challenge; 2],
        challenger: &mut Challenger,
    ) -> Result<(Opened, Opening<R>), String> {
        let [local, following] = [here, next].map(|point| trace.polynomials.at(point));
        let mut opened = vec![
            vec![vec![local, following]],
            vec![vec![beside.polynomials.at(here)]],
        ];
        let mut transcript = PcsProverTranscript::<Challenger, F, Challenge>::new(
            challenger,
            PcsShape::from_opened_values(fri, &opened),
        );
        transcript.claimed_openings(&opened);
        let (alpha, witness) = transcript.batch_phase();
        let codeword = batched([trace, beside], [here, next], alpha);
        let length = codeword.len().ilog2() as usize;
        let requests = [
            (trace, vec![vec![here, next]]).into(),
            (beside, vec![vec![here]]).into(),
        ];
        let folding: TwoAdicFriFoldingForMmcs<F, Openings> = TwoAdicFriFolding(PhantomData);
        let proof = transcript.delegate(|challenger| {
            prove_fri(
                &folding,
                fri,
                vec![codeword],
                challenger,
                length,
                &requests,
                &Openings,
                witness.unwrap_or(F::ZERO),
            )
        });
        let proof = proof.map_err(|error| {
            transcript.abort();
            error.to_string()
        })?;
        transcript.finish();
        let split = |values: &mut Vec<Challenge>| values.split_off(values.len() - CODEWORDS);
        let matrix = |points: &mut Vec<Vec<_>>| points.iter_mut().map(split).collect();
        let masks = opened
            .iter_mut()
            .map(|values| values.iter_mut().map(matrix).collect())
            .collect();
        let mut values = opened.into_iter().flatten().flatten();
        let mut next = || values.next().expect("a value at each point");
        let opened = ([next(), next()], [next()]);
        Ok((opened, (masks, as_verified(proof))))
    }
}

/// The values of columns: of the trace at two points, of all others at one.
type Opened = ([Vec<Challenge>; 2], [Vec<Challenge>; 1]);
/// The values of random columns, and the foldings.
type Opening<R> = (p3_commit::OpenedValues<Challenge>, Foldings<R, Leaves<R>>);
type Foldings<R, M> = FriProof<Challenge, Layers<R>, F, Vec<BatchMultiOpening<F, M>>>;

/// The proof of the foldings as a verifier reads it. Only the types differ.
fn as_verified<R: CryptoRng + SeedableRng + Send>(
    proof: Foldings<R, Openings>,
) -> Foldings<R, Leaves<R>> {
    let opened = proof.input_openings.into_iter();
    FriProof {
        batch_pow_witness: proof.batch_pow_witness,
        commit_phase_commits: proof.commit_phase_commits,
        commit_pow_witnesses: proof.commit_pow_witnesses,
        input_openings: opened
            .map(|opening| BatchMultiOpening {
                opened_values: opening.opened_values,
                opening_proof: opening.opening_proof,
            })
            .collect(),
        commit_phase_openings: proof.commit_phase_openings,
        final_poly: proof.final_poly,
        query_pow_witness: proof.query_pow_witness,
    }
}

/// Steps that are evaluated one after the other, each with the step after the next.
const RUN: usize = 16;

/// The constraints on the rows of a coset. Each lane has a stretch of rows of its own, so that all lanes
/// go on to the next row of the trace in one step.
struct Steps<'a> {
    air: &'a FullAir,
    publics: &'a [F],
    weights: &'a [Vec<F>],
    values: &'a Coset,
    public: &'a Coset,
    selectors: &'a LagrangeSelectors<Vec<F>>,
}

impl Steps<'_> {
    /// The quotient on a run of steps, two apart: the rows and their values.
    fn evaluate(&self, from: usize) -> Vec<(usize, Challenge)> {
        let width = self.air.width();
        let height = self.selectors.is_first_row.len();
        let rows = |step: usize| -> [usize; Packed::WIDTH] {
            let stretch = height / Packed::WIDTH;
            std::array::from_fn(|lane| (lane * stretch + step) % height)
        };
        let places = |step| rows(step).map(|row| reversed(row, height.ilog2()));
        let mut found = Vec::with_capacity(RUN * Packed::WIDTH);
        let (mut main, mut periodic) = (Vec::with_capacity(3 * width), Vec::new());
        let mut constraints = Vec::with_capacity(self.weights[0].len());
        self.values.pack(&places(from), width, &mut main);
        for step in (from..).step_by(2).take(RUN) {
            self.values.pack(&places(step + 2), width, &mut main);
            periodic.clear();
            let count = self.air.num_periodic_columns();
            self.public.pack(&places(step), count, &mut periodic);
            let rows = rows(step);
            let select = |selector: &[F]| Packed::from_fn(|lane| selector[rows[lane]]);
            constraints.clear();
            let mut folder = ProverConstraintFolder {
                is_first_row: select(&self.selectors.is_first_row),
                is_last_row: select(&self.selectors.is_last_row),
                is_transition: select(&self.selectors.is_transition),
                base_alpha_powers: self.weights,
                base_constraints: constraints,
                constraint_count: self.weights[0].len(),
                ..folder(&main, width, &periodic, self.publics)
            };
            self.air.eval(&mut folder);
            let folded = folder.finalize_constraints() * select(&self.selectors.inv_vanishing);
            constraints = folder.base_constraints;
            found.extend((0..Packed::WIDTH).map(|lane| (rows[lane], folded.extract(lane))));
            main.copy_within(width.., 0);
            main.truncate(width);
        }
        found
    }
}

/// What constraints are evaluated on: two rows, public columns and public values.
fn folder<'a>(
    main: &'a [Packed],
    width: usize,
    periodic: &'a [Packed],
    publics: &'a [F],
) -> ProverConstraintFolder<'a, Config> {
    let none = RowMajorMatrixView::new(&[], 0);
    ProverConstraintFolder {
        main: RowMajorMatrixView::new(main, width),
        preprocessed: none,
        preprocessed_window: RowWindow::from_view(&none),
        periodic_values: periodic,
        public_values: publics,
        is_first_row: Packed::ZERO,
        is_last_row: Packed::ZERO,
        is_transition: Packed::ZERO,
        base_alpha_powers: &[],
        ext_alpha_powers: &[],
        base_constraints: Vec::new(),
        ext_constraints: Vec::new(),
        constraint_index: 0,
        constraint_count: 0,
    }
}

/// Random values for each part of the quotient, by which multiples of the polynomials that vanish on the
/// parts' domains are added to them. Where the parts are put together, the multiples add up to zero.
fn quotient_masks<R: CryptoRng>(domains: &[Domain], count: usize, source: &mut R) -> Vec<Vec<F>> {
    let scale = |domain: &Domain| -> F {
        let others = domains
            .iter()
            .filter(|other| other.shift() != domain.shift());
        let values = others.map(|other| other.vanishing_poly_at_point(domain.first_point()));
        values.product::<F>().inverse()
    };
    let (last, others) = domains.split_last().expect("a quotient has parts");
    let to_last = scale(last).inverse();
    let mut masks = Vec::with_capacity(domains.len());
    let mut rest = F::zero_vec(count);
    for domain in others {
        let factor = scale(domain) * to_last;
        let drawn: Vec<F> = (0..count).map(|_| source.random()).collect();
        for (rest, mask) in rest.iter_mut().zip(&drawn) {
            *rest -= *mask * factor;
        }
        masks.push(drawn);
    }
    masks.push(rest);
    masks
}

/// The scaled coefficients of a part of the quotient, of twice its degree: its values on its own domain
/// stay the same, and `masks` make all others random.
fn masked_part(part: RowMajorMatrix<F>, domain: Domain, masks: &[F]) -> RowMajorMatrix<F> {
    let (width, height) = (part.width, part.height());
    let shift = F::GENERATOR * domain.shift_inverse();
    let mut coefficients = Dft::default()
        .coset_idft_batch(part, shift.inverse())
        .values;
    for (coefficient, mask) in coefficients.iter_mut().zip(masks) {
        *coefficient -= *mask;
    }
    let turned = shift.exp_u64(height as u64);
    coefficients.extend(masks.iter().map(|mask| *mask * turned));
    RowMajorMatrix::new(coefficients, width)
}

/// `(p(X) - p(z)) / (X - z)`: as many coefficients, of which the last is zero.
fn divided(coefficients: &[Challenge], point: Challenge) -> Vec<Challenge> {
    let mut quotient = vec![Challenge::ZERO; coefficients.len()];
    let mut carried = Challenge::ZERO;
    for at in (1..coefficients.len()).rev() {
        carried = coefficients[at] + point * carried;
        quotient[at - 1] = carried;
    }
    quotient
}

/// The coordinates of the weights with which constraints are combined.
fn weights(air: &FullAir, publics: &[F], alpha: Challenge) -> Vec<Vec<F>> {
    let rows = vec![Packed::ZERO; 2 * air.width()];
    let periodic = vec![Packed::ZERO; air.num_periodic_columns()];
    let mut counted = folder(&rows, air.width(), &periodic, publics);
    air.eval(&mut counted);
    let mut powers: Vec<Challenge> = alpha
        .powers()
        .take(counted.base_constraints.len())
        .collect();
    powers.reverse();
    let coordinate = |at: usize| {
        let of = |power: &Challenge| -> F {
            let coordinates: &[F] = power.as_basis_coefficients_slice();
            coordinates[at]
        };
        powers.iter().map(of).collect()
    };
    (0..EXTENSION).map(coordinate).collect()
}

/// The codeword whose low degree shows that all openings are right, in bit-reversed order: the
/// quotients `(p(X) - p(z)) / (X - z)` of all polynomials and points, combined.
fn batched(
    [trace, beside]: [&Committed; 2],
    [here, next]: [Challenge; 2],
    alpha: Challenge,
) -> Vec<Challenge> {
    let at_next = alpha.exp_u64(trace.polynomials.width() as u64);
    let of_trace = trace.polynomials.combined(Challenge::ONE, alpha);
    let mut sum = beside.polynomials.combined(at_next.square(), alpha);
    for (sum, more) in sum.iter_mut().zip(&of_trace) {
        *sum += *more;
    }
    let unit = F::GENERATOR.inverse();
    let of_next = of_trace.into_iter().map(|value| value * at_next).collect();
    let [one, other] =
        [(sum, here), (of_next, next)].map(|(sum, point)| divided(&sum, point * unit));
    let both = one.into_iter().zip(other);
    let coefficients: Vec<Challenge> = both.map(|(a, b)| (a + b) * unit).collect();
    let length = coefficients.len() << LOG_BLOWUP;
    let mut values = RowMajorMatrix::new_col(coefficients).flatten_to_base();
    values.values.resize(length * EXTENSION, F::ZERO);
    let values = Dft::default().dft_batch(values).bit_reverse_rows();
    Challenge::reconstitute_from_base(values.values)
}

#[cfg(test)]
mod tests {
    use p3_field::PrimeField64;

    use super::*;

    const LOG_SIZE: usize = 6;
    const PARTS: usize = 4;

    fn value(part: &RowMajorMatrix<F>, column: usize, point: F) -> F {
        let unit = point * F::GENERATOR.inverse();
        let coefficients = part.values.iter().skip(column).step_by(part.width);
        let powers = unit.powers();
        coefficients.zip(powers).map(|(c, power)| *c * power).sum()
    }

    #[test]
    fn masks_of_the_quotient_change_every_part_and_not_the_whole() {
        let domain = Domain::new(F::GENERATOR, LOG_SIZE).expect("a domain");
        let values: Vec<F> = (1..=2 << LOG_SIZE).map(F::from_u64).collect();
        let parts = domain.split_evals(PARTS, RowMajorMatrix::new(values, 2));
        let domains = domain.split_domains(PARTS);
        let count = parts[0].values.len();
        let none = vec![vec![F::ZERO; count]; PARTS];
        let masks = quotient_masks(&domains, count, &mut StdRng::from_seed([7; 32]));
        let with = |masks: &[Vec<F>]| -> Vec<RowMajorMatrix<F>> {
            let parts = parts.iter().cloned().zip(&domains).zip(masks);
            parts
                .map(|((part, domain), masks)| masked_part(part, *domain, masks))
                .collect()
        };
        let (plain, masked) = (with(&none), with(&masks));
        let point = F::from_u64(123_456_789);
        let whole = |parts: &[RowMajorMatrix<F>], column| -> F {
            let part = |(at, part): (usize, &RowMajorMatrix<F>)| {
                let others = (0..PARTS).filter(|other| *other != at);
                let factor: F = others
                    .map(|other| {
                        let here = domains[other].vanishing_poly_at_point(point);
                        let there = domains[at].first_point();
                        here * domains[other].vanishing_poly_at_point(there).inverse()
                    })
                    .product();
                factor * value(part, column, point)
            };
            parts.iter().enumerate().map(part).sum()
        };
        for column in 0..2 {
            assert_eq!(whole(&plain, column), whole(&masked, column));
            for at in 0..PARTS {
                let [before, after] =
                    [&plain, &masked].map(|parts| value(&parts[at], column, point));
                assert_ne!(before, after, "part {at} is masked");
                let own = domains[at].first_point();
                let shown = parts[at].values[column];
                assert_eq!(value(&plain[at], column, own), shown);
                assert_eq!(value(&masked[at], column, own), shown);
            }
        }
        let drawn: std::collections::BTreeSet<u64> = masks
            .iter()
            .flatten()
            .map(|mask| mask.as_canonical_u64())
            .collect();
        assert_eq!(drawn.len(), PARTS * count, "no mask is used twice");
    }
}
