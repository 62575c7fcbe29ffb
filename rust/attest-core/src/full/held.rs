//! A commitment scheme whose first commitment was made before.
//!
//! The weights of a seam are drawn after the traces on both of its sides are committed, and they are
//! part of the constraints. So a trace is committed first and proven later: the prover takes the
//! commitment that is held for it instead of making another.

use std::sync::{Arc, Mutex};

use p3_commit::{
    CommitmentOpening, OpenedValues, OpeningRequest, Pcs as Scheme, PeriodicLdeTable,
    UnivariateStarkPcs,
};
use p3_matrix::dense::RowMajorMatrix;
use p3_uni_stark::StarkConfig;

use super::columns::F;
use super::parameters::{Challenge, Challenger, Pcs};

type Domain = <Pcs as Scheme<Challenge, Challenger>>::Domain;
/// The commitment to a trace.
pub type Commitment = <Pcs as Scheme<Challenge, Challenger>>::Commitment;
type Data = <Pcs as Scheme<Challenge, Challenger>>::ProverData;
type Opening = <Pcs as Scheme<Challenge, Challenger>>::Proof;
type Error = <Pcs as Scheme<Challenge, Challenger>>::Error;
type ProverError = <Pcs as Scheme<Challenge, Challenger>>::ProverError;
type Committed = (Commitment, Data);
type Evaluations = (Domain, RowMajorMatrix<F>);

/// The configuration of a prover that holds its first commitment.
pub type HeldConfig = StarkConfig<Held, Challenge, Challenger>;

/// The scheme of all proofs, with a commitment that is given out first.
#[derive(Clone)]
pub struct Held {
    scheme: Arc<Pcs>,
    first: Arc<Mutex<Option<Committed>>>,
}

impl Held {
    /// Commit to a trace now, so that a proof about it can follow.
    ///
    /// # Errors
    /// What the scheme refuses.
    pub fn commit(
        scheme: Pcs,
        trace: RowMajorMatrix<F>,
    ) -> Result<(Commitment, Self), ProverError> {
        let height = trace.values.len() / trace.width;
        let scheme = Arc::new(scheme);
        let domain = as_scheme(&scheme).natural_domain_for_degree(2 * height);
        let committed = as_scheme(&scheme).commit([(domain, trace)])?;
        let commitment = committed.0.clone();
        let first = Arc::new(Mutex::new(Some(committed)));
        Ok((commitment, Self { scheme, first }))
    }
}

/// The one implementation of the scheme's trait that is meant here.
fn as_scheme(
    scheme: &Pcs,
) -> &impl UnivariateStarkPcs<
    Challenge,
    Challenger,
    Domain = Domain,
    Commitment = Commitment,
    ProverData = Data,
    Proof = Opening,
    Error = Error,
    ProverError = ProverError,
> {
    scheme
}

impl Scheme<Challenge, Challenger> for Held {
    type Domain = Domain;
    type Commitment = Commitment;
    type ProverData = Data;
    type Proof = Opening;
    type Error = Error;
    type ProverError = ProverError;

    fn natural_domain_for_degree(&self, degree: usize) -> Domain {
        as_scheme(&self.scheme).natural_domain_for_degree(degree)
    }

    fn commit(
        &self,
        evaluations: impl IntoIterator<Item = Evaluations>,
    ) -> Result<Committed, ProverError> {
        let held = self.first.lock().expect("no prover panicked").take();
        held.map_or_else(|| as_scheme(&self.scheme).commit(evaluations), Ok)
    }

    fn open(
        &self,
        requests: Vec<OpeningRequest<'_, Data, Challenge>>,
        challenger: &mut Challenger,
    ) -> Result<(OpenedValues<Challenge>, Opening), ProverError> {
        as_scheme(&self.scheme).open(requests, challenger)
    }

    fn verify(
        &self,
        openings: Vec<CommitmentOpening<Challenge, Commitment, Domain>>,
        proof: &Opening,
        challenger: &mut Challenger,
    ) -> Result<(), Error> {
        as_scheme(&self.scheme).verify(openings, proof, challenger)
    }
}

impl UnivariateStarkPcs<Challenge, Challenger> for Held {
    type EvaluationsOnDomain<'a> =
        <Pcs as UnivariateStarkPcs<Challenge, Challenger>>::EvaluationsOnDomain<'a>;

    const ZK: bool = <Pcs as UnivariateStarkPcs<Challenge, Challenger>>::ZK;

    fn log_max_trace_height(&self) -> usize {
        as_scheme(&self.scheme).log_max_trace_height()
    }

    fn log_min_trace_height(&self) -> usize {
        as_scheme(&self.scheme).log_min_trace_height()
    }

    fn get_quotient_ldes(
        &self,
        evaluations: impl IntoIterator<Item = Evaluations>,
        chunks: usize,
    ) -> Result<Vec<RowMajorMatrix<F>>, ProverError> {
        as_scheme(&self.scheme).get_quotient_ldes(evaluations, chunks)
    }

    fn commit_ldes(&self, extensions: Vec<RowMajorMatrix<F>>) -> Result<Committed, ProverError> {
        as_scheme(&self.scheme).commit_ldes(extensions)
    }

    fn get_evaluations_on_domain<'a>(
        &self,
        data: &'a Data,
        at: usize,
        domain: Domain,
    ) -> Self::EvaluationsOnDomain<'a> {
        UnivariateStarkPcs::<Challenge, Challenger>::get_evaluations_on_domain(
            &*self.scheme,
            data,
            at,
            domain,
        )
    }

    fn open_with_preprocessing(
        &self,
        requests: Vec<OpeningRequest<'_, Data, Challenge>>,
        challenger: &mut Challenger,
        preprocessed: Option<usize>,
    ) -> Result<(OpenedValues<Challenge>, Opening), ProverError> {
        as_scheme(&self.scheme).open_with_preprocessing(requests, challenger, preprocessed)
    }

    fn verify_with_preprocessing(
        &self,
        openings: Vec<CommitmentOpening<Challenge, Commitment, Domain>>,
        proof: &Opening,
        challenger: &mut Challenger,
        preprocessed: Option<usize>,
    ) -> Result<(), Error> {
        as_scheme(&self.scheme).verify_with_preprocessing(openings, proof, challenger, preprocessed)
    }

    fn get_opt_randomization_poly_commitment(
        &self,
        domains: impl IntoIterator<Item = Domain>,
    ) -> Result<Option<Committed>, ProverError> {
        as_scheme(&self.scheme).get_opt_randomization_poly_commitment(domains)
    }

    fn build_periodic_lde_table(
        &self,
        columns: &[Vec<F>],
        trace: Domain,
        quotient: Domain,
    ) -> PeriodicLdeTable<F> {
        as_scheme(&self.scheme).build_periodic_lde_table(columns, trace, quotient)
    }
}
