//! The commitment scheme as a verifier uses it: Plonky3's, with one tree for all that is committed to
//! after the trace.
//!
//! Plonky3 commits to the random polynomial and to each part of the quotient as matrices of their own:
//! another tree, and salts and random columns beside each matrix. Here they are columns of one matrix
//! under one tree, with the random columns and salts of one matrix.

use p3_commit::{CommitmentOpening, OpenedValues, OpeningRequest, UnivariateStarkPcs};
use p3_field::coset::TwoAdicMultiplicativeCoset;
use p3_fri::HidingFriPcs;
use p3_matrix::dense::RowMajorMatrix;
use rand::rngs::StdRng;
use rand::{CryptoRng, SeedableRng};

use super::columns::F;
use super::parameters::{Challenge, Challenger, Dft, Layers, Leaves};

type Inner<R> = HidingFriPcs<F, Dft, Leaves<R>, Layers<R>, R>;
type Domain = TwoAdicMultiplicativeCoset<F>;
type Evaluations = (Domain, RowMajorMatrix<F>);
type Commitment<R> = <Inner<R> as p3_commit::Pcs<Challenge, Challenger>>::Commitment;
type Opening<R> = CommitmentOpening<Challenge, Commitment<R>, Domain>;

/// The scheme. It verifies; the prover is [`super::prover`].
#[derive(Debug)]
pub struct Pcs<R = StdRng>(Inner<R>);

impl<R: CryptoRng + SeedableRng> Clone for Pcs<R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<R> Pcs<R> {
    pub(super) fn new(inner: Inner<R>) -> Self {
        Self(inner)
    }
}

/// The openings of the trace, and of the one matrix that holds all others. They are given as those of
/// the random polynomial, of the trace and of the parts of the quotient.
fn together<R: CryptoRng + SeedableRng + Send + Sync>(
    openings: Vec<Opening<R>>,
) -> [Opening<R>; 2] {
    let openings: Result<[Opening<R>; 3], _> = openings.try_into();
    let Ok([random, trace, mut quotient]) = openings else {
        unreachable!("a proof of this configuration opens three commitments")
    };
    let others = quotient.matrices.split_off(1).into_iter();
    let others = others.chain(random.matrices);
    let values = others
        .flat_map(|matrix| matrix.points)
        .map(|point| point.values);
    quotient.matrices[0].points[0]
        .values
        .extend(values.flatten());
    [trace, quotient]
}

impl<R> p3_commit::Pcs<Challenge, Challenger> for Pcs<R>
where
    R: CryptoRng + SeedableRng + Send + Sync,
{
    type Domain = Domain;
    type Commitment = Commitment<R>;
    type ProverData = <Inner<R> as p3_commit::Pcs<Challenge, Challenger>>::ProverData;
    type Proof = <Inner<R> as p3_commit::Pcs<Challenge, Challenger>>::Proof;
    type Error = <Inner<R> as p3_commit::Pcs<Challenge, Challenger>>::Error;
    type ProverError = <Inner<R> as p3_commit::Pcs<Challenge, Challenger>>::ProverError;

    fn natural_domain_for_degree(&self, degree: usize) -> Domain {
        p3_commit::Pcs::<Challenge, Challenger>::natural_domain_for_degree(&self.0, degree)
    }

    fn commit(
        &self,
        _: impl IntoIterator<Item = Evaluations>,
    ) -> Result<(Self::Commitment, Self::ProverData), Self::ProverError> {
        unreachable!("the prover commits by itself")
    }

    fn open(
        &self,
        _: Vec<OpeningRequest<'_, Self::ProverData, Challenge>>,
        _: &mut Challenger,
    ) -> Result<(OpenedValues<Challenge>, Self::Proof), Self::ProverError> {
        unreachable!("the prover opens by itself")
    }

    fn verify(
        &self,
        openings: Vec<Opening<R>>,
        proof: &Self::Proof,
        challenger: &mut Challenger,
    ) -> Result<(), Self::Error> {
        self.0
            .verify(together::<R>(openings).into(), proof, challenger)
    }
}

impl<R> UnivariateStarkPcs<Challenge, Challenger> for Pcs<R>
where
    R: CryptoRng + SeedableRng + Send + Sync,
{
    type EvaluationsOnDomain<'a> = RowMajorMatrix<F>;

    const ZK: bool = true;

    fn log_max_trace_height(&self) -> usize {
        UnivariateStarkPcs::<Challenge, Challenger>::log_max_trace_height(&self.0)
    }

    fn log_min_trace_height(&self) -> usize {
        UnivariateStarkPcs::<Challenge, Challenger>::log_min_trace_height(&self.0)
    }

    fn get_quotient_ldes(
        &self,
        _: impl IntoIterator<Item = Evaluations>,
        _: usize,
    ) -> Result<Vec<RowMajorMatrix<F>>, Self::ProverError> {
        unreachable!("the prover masks the quotient by itself")
    }

    fn commit_ldes(
        &self,
        _: Vec<RowMajorMatrix<F>>,
    ) -> Result<(Self::Commitment, Self::ProverData), Self::ProverError> {
        unreachable!("the prover commits by itself")
    }

    fn get_evaluations_on_domain(
        &self,
        _: &Self::ProverData,
        _: usize,
        _: Domain,
    ) -> RowMajorMatrix<F> {
        unreachable!("the prover evaluates by itself")
    }
}
