//! Chains: a batch of any length as a chain of segments, each a proof of its own.
//!
//! Every segment but the last has `2^k` rows and no padding. Its last row is also the first row of the
//! next one, and a [seam](super::seam) binds the two copies. The last segment is as short as it can be,
//! and always has a row of padding.

use std::ops::Range;
use std::sync::Arc;

use p3_field::{PrimeCharacteristicRing, PrimeField64};
use p3_matrix::dense::RowMajorMatrix;
use p3_maybe_rayon::prelude::*;
use p3_uni_stark::Proof;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::air::FullAir;
use super::columns::{Column, F};
use super::counts::MOST_ROWS;
use super::digest::CHAIN;
use super::held::{Held, HeldConfig};
use super::identity;
use super::moments::{Bound, Form};
use super::parameters::{self, Config, LEAST_HEIGHT};
use super::public::{Budgets, Public};
use super::seam::{self, REPETITIONS, Seam, Values, Weights};
use super::stark::{Circuit, Unproven, salt_elements};
use super::verify::Invalid;
use super::witness::{self, Batch, Manner, Trace};
use super::{Malformed, ORDER};

const MAGIC: &[u8; 16] = b"sluice-chain-1\0\0";
const WORD: usize = 8;
const HEADER: usize = MAGIC.len() + WORD;
const LOGS: Range<usize> = LEAST_HEIGHT.ilog2() as usize..MOST_ROWS.ilog2() as usize + 1;

type Root = [u8; 32];

/// What a circuit needs for chains, and derives once.
#[derive(Debug)]
pub struct Chained {
    carried: Vec<Column>,
    identity: [u8; 32],
}

/// The rows of each segment, padding included; neighbours share one. Segments have `2^log_rows` rows,
/// the last one fewer.
///
/// # Errors
/// [`Malformed`] where there are no such segments, or only one.
pub fn plan(rows: usize, log_rows: usize) -> Result<Vec<Range<usize>>, Malformed> {
    if !LOGS.contains(&log_rows) || !(2..=MOST_ROWS).contains(&rows) {
        return Err(Malformed(format!(
            "no chain has {rows} rows in segments of 2^{log_rows}"
        )));
    }
    let (mut plan, mut from, full) = (Vec::new(), 0, 1 << log_rows);
    while rows - from >= full {
        plan.push(from..from + full);
        from += full - 1;
    }
    if plan.is_empty() {
        return Err(Malformed(format!(
            "{rows} rows make one segment, not a chain"
        )));
    }
    let height = (rows - from + 1).next_power_of_two().max(LEAST_HEIGHT);
    plan.push(from..from + height);
    Ok(plan)
}

/// The rows of all segments together, padding included.
#[must_use]
pub fn height(plan: &[Range<usize>]) -> usize {
    plan.last().map_or(0, |last| last.end)
}

/// The logarithm of the rows of a segment, where a proof is a chain.
#[must_use]
pub fn log_rows(proof: &[u8]) -> Option<usize> {
    let after = proof.strip_prefix(MAGIC)?;
    let word = after.first_chunk::<WORD>().copied().unwrap_or_default();
    usize::try_from(u64::from_le_bytes(word)).ok()
}

/// The filled trace of a whole chain.
#[derive(Debug)]
pub struct TracedChain {
    /// The rows of each segment.
    pub plan: Vec<Range<usize>>,
    log_rows: usize,
    public: Arc<Public>,
    form: Option<Arc<Form>>,
    cells: Vec<F>,
    commitment: [u8; 32],
    values: Vec<F>,
    statistic: Option<[u8; 32]>,
}

/// A chain as prover and verifier see it.
pub(super) struct Chain<'a> {
    pub(super) circuit: &'a Circuit,
    pub(super) public: &'a Public,
    pub(super) form: Option<Arc<Form>>,
    /// The digest and the totals of a statistic.
    pub(super) values: Vec<F>,
    /// What every segment is bound to.
    pub(super) base: [u8; 32],
}

impl Chain<'_> {
    /// The weights of the seam after a segment: drawn after the traces on both of its sides are fixed.
    fn weights(&self, index: usize, left: &Root, right: &Root) -> Weights {
        let mut hasher = blake3::Hasher::new_derive_key("sluice full seam 1");
        hasher
            .update(&self.base)
            .update(&(index as u64).to_le_bytes())
            .update(left)
            .update(right);
        let cells = self.circuit.chained().carried.len();
        seam::weights(cells, hasher.finalize_xof())
    }

    /// What the transcript of a segment begins with.
    fn seed(&self, index: usize, roots: [&Root; 3]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("sluice full segment 1");
        hasher
            .update(&self.base)
            .update(&(index as u64).to_le_bytes());
        for root in roots {
            hasher.update(root);
        }
        hasher.finalize().into()
    }

    fn air(&self, rows: Range<usize>, ends: [Option<Weights>; 2]) -> FullAir {
        let [enters, leaves] = ends;
        FullAir {
            layout: self.circuit.layout.clone(),
            public: Arc::new(self.public.part(rows)),
            form: self.form.clone(),
            seam: Some(Arc::new(Seam {
                carried: self.circuit.chained().carried.clone(),
                enters,
                leaves,
            })),
        }
    }

    fn public_values(&self, ends: [&Values; 2]) -> Vec<F> {
        [&self.values[..], ends[0], ends[1]].concat()
    }

    /// Verify a chain; its segments are judged on as many threads as there are.
    pub(super) fn verify(&self, proof: &[u8], log_rows: usize) -> Result<(), Invalid> {
        let plan = plan(self.public.rows, log_rows).map_err(|error| Invalid::Shape(error.0))?;
        let (values, parts) = parse(proof, plan.len())?;
        let read =
            |(rows, part): (&Range<usize>, &&[u8])| self.circuit.read(part, rows.len(), plan.len());
        let proofs: Vec<Proof<Config>> = plan
            .iter()
            .zip(&parts)
            .map(read)
            .collect::<Result<_, _>>()?;
        let roots: Vec<Root> = proofs
            .iter()
            .map(|proof| proof.commitments.trace[0])
            .collect();
        let seams = roots.windows(2).enumerate();
        let weights: Vec<Weights> = seams
            .map(|(index, sides)| self.weights(index, &sides[0], &sides[1]))
            .collect();
        let judge = |index: usize| {
            let before = index.checked_sub(1);
            let weighed = |seam: Option<usize>| seam.and_then(|seam| weights.get(seam)).cloned();
            let valued = |seam: Option<usize>| seam.and_then(|seam| values.get(seam));
            let air = self.air(plan[index].clone(), [weighed(before), weighed(Some(index))]);
            let none = [F::ZERO; REPETITIONS];
            let ends = [valued(before), valued(Some(index))].map(|end| end.unwrap_or(&none));
            let seed = self.seed(index, neighbours(&roots, index));
            let config = parameters::chained(&seed, plan.len());
            let values = self.public_values(ends);
            self.circuit.judge(&air, &config, &proofs[index], &values)
        };
        let verdicts: Vec<_> = (0..plan.len()).into_par_iter().map(judge).collect();
        verdicts.into_iter().collect()
    }
}

const NO_ROOT: Root = [0; 32];

/// The roots of a segment and of the segments beside it.
fn neighbours(roots: &[Root], index: usize) -> [&Root; 3] {
    let at = |index: Option<usize>| index.and_then(|at| roots.get(at)).unwrap_or(&NO_ROOT);
    [
        at(index.checked_sub(1)),
        at(Some(index)),
        at(Some(index + 1)),
    ]
}

/// Take a chain apart: the values of its seams, and the proofs of its segments.
fn parse(proof: &[u8], segments: usize) -> Result<(Vec<Values>, Vec<&[u8]>), Invalid> {
    let refuse = |why: &str| Invalid::Shape(format!("the chain {why}"));
    let mut rest = proof.get(HEADER..).ok_or_else(|| refuse("has no header"))?;
    let mut word = || {
        let (word, after) = rest.split_first_chunk::<WORD>()?;
        rest = after;
        Some(u64::from_le_bytes(*word))
    };
    let mut values = Vec::new();
    for _ in 1..segments {
        let mut value = [F::ZERO; REPETITIONS];
        for each in &mut value {
            let canonical = word().filter(|word| *word < ORDER);
            *each = F::from_u64(canonical.ok_or_else(|| refuse("has no canonical values"))?);
        }
        values.push(value);
    }
    let mut lengths = Vec::new();
    for _ in 0..segments {
        let length = word().and_then(|length| usize::try_from(length).ok());
        lengths.push(length.ok_or_else(|| refuse("has too few segments"))?);
    }
    let mut parts = Vec::new();
    for length in lengths {
        let (part, after) = rest
            .split_at_checked(length)
            .ok_or_else(|| refuse("is cut short"))?;
        parts.push(part);
        rest = after;
    }
    if !rest.is_empty() {
        return Err(refuse("has bytes that belong to no segment"));
    }
    Ok((values, parts))
}

fn joined(log_rows: usize, values: &[Values], parts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend((log_rows as u64).to_le_bytes());
    for value in values.iter().flatten() {
        bytes.extend(value.as_canonical_u64().to_le_bytes());
    }
    for part in parts {
        bytes.extend((part.len() as u64).to_le_bytes());
    }
    for part in parts {
        bytes.extend(part);
    }
    bytes
}

/// A segment whose trace is committed and whose proof is to be made.
struct Committed {
    held: Held,
    root: Root,
    /// The last row of the trace.
    last: Vec<F>,
}

impl Circuit {
    pub(super) fn chained(&self) -> &Chained {
        self.chained.get_or_init(|| {
            let mut air = self.unbudgeted(LEAST_HEIGHT);
            let carried = seam::carried(&air);
            let mut hasher = blake3::Hasher::new_derive_key("sluice full seam identity 1");
            hasher.update(&self.identity);
            let mut stream = || {
                hasher.update(&[0]);
                seam::weights(carried.len(), hasher.finalize_xof())
            };
            let [enters, leaves] = [(); 2].map(|()| Some(stream()));
            let moments = air.layout.moments.as_ref();
            air.form = moments.map(|moments| Arc::new(moments.unbound(&self.identity)));
            air.seam = Some(Arc::new(Seam {
                carried: carried.clone(),
                enters,
                leaves,
            }));
            Chained {
                identity: identity::chained(&self.identity, &air),
                carried,
            }
        })
    }

    /// How many cells pass a seam.
    #[must_use]
    pub fn carried(&self) -> usize {
        self.chained().carried.len()
    }

    /// Whether the cells of a column pass a seam.
    #[must_use]
    pub fn carries(&self, column: Column) -> bool {
        self.chained().carried.binary_search(&column).is_ok()
    }

    /// Bits of soundness that are proven for a chain.
    ///
    /// # Errors
    /// [`Malformed`] where there is no such chain.
    pub fn proven_bits_chained(&self, rows: usize, log_rows: usize) -> Result<usize, Malformed> {
        let plan = plan(rows, log_rows)?;
        let mut air = self.unbudgeted(1 << log_rows);
        let cells = self.carried();
        let any = || Some([(); REPETITIONS].map(|()| vec![F::ONE; cells]));
        air.seam = Some(Arc::new(Seam {
            carried: self.chained().carried.clone(),
            enters: any(),
            leaves: any(),
        }));
        let proof = identity::proven_bits_chained(&air, plan.len());
        Ok(self.statistic_bits().map_or(proof, |bits| proof.min(bits)))
    }

    /// What every segment of a chain is bound to: the circuit, the claim, and how it is cut.
    pub(super) fn base(
        &self,
        public: &Public,
        commitment: &[u8; 32],
        context: &[u8; 32],
        statistic: Option<&[u8; 32]>,
        log_rows: usize,
    ) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("sluice full chain 1");
        hasher
            .update(&self.chained().identity)
            .update(&(log_rows as u64).to_le_bytes())
            .update(&self.seed(public, commitment, context, statistic));
        hasher.finalize().into()
    }

    /// Prove a batch, and the statistic of its rows where the statement has one, as a chain of
    /// segments of `2^log_rows` rows. Two neighbours are in memory at a time, or one if `frugal`: then
    /// every segment but the first is committed twice, with the same masks.
    ///
    /// # Errors
    /// [`Unproven`] where the batch does not satisfy the statement, or is not this circuit's.
    #[allow(clippy::too_many_arguments)]
    pub fn prove_chain(
        &self,
        budgets: &Budgets,
        batch: &Batch,
        salt: &[u8; 32],
        context: &[u8; 32],
        statistic: Option<&[u8]>,
        entropy: [u8; 32],
        log_rows: usize,
        frugal: bool,
    ) -> Result<Vec<u8>, Unproven> {
        let bound = statistic.map(|statistic| Bound { statistic, context });
        let manner = Manner::default();
        let traced = self.trace_chain(budgets, batch, salt, bound.as_ref(), log_rows, manner)?;
        self.seal_chain(&traced, context, entropy, frugal, &mut |_, _| {})
    }

    /// Fill the trace of a whole chain.
    ///
    /// # Errors
    /// [`Unproven`] where the batch does not satisfy the statement, or is not this circuit's.
    pub fn trace_chain(
        &self,
        budgets: &Budgets,
        batch: &Batch,
        salt: &[u8; 32],
        bound: Option<&Bound>,
        log_rows: usize,
        manner: Manner,
    ) -> Result<TracedChain, Unproven> {
        batch.check(&self.layout)?;
        let plan = plan(batch.rows, log_rows)?;
        let salt = salt_elements(salt);
        let digest = witness::digest(&self.layout, batch, salt);
        let public = Public::over(&self.layout, batch.rows, budgets, height(&plan))?;
        let commitment = self.commitment(&digest, batch.rows);
        let drawn = self.form(&commitment, bound, batch.rows)?;
        let (form, claimed) = drawn.map_or((None, None), |(form, totals)| (Some(form), totals));
        let trace = Trace::fill(&self.layout, &public, batch, salt, manner)?;
        let (trace, totals) = trace.bind(form.as_ref(), claimed)?;
        let cells = trace.cells;
        Ok(TracedChain {
            plan,
            log_rows,
            public: Arc::new(public),
            form: form.map(Arc::new),
            cells,
            commitment,
            values: [&digest[..], &totals].concat(),
            statistic: bound.map(|bound| blake3::hash(bound.statistic).into()),
        })
    }

    /// Prove a filled chain. `changed` may change the trace of each segment before it is committed:
    /// whether the chain holds is for the verifier to find out.
    ///
    /// # Errors
    /// [`Unproven::Failed`] where the proof system fails.
    pub fn seal_chain(
        &self,
        traced: &TracedChain,
        context: &[u8; 32],
        entropy: [u8; 32],
        frugal: bool,
        changed: &mut dyn FnMut(usize, &mut RowMajorMatrix<F>),
    ) -> Result<Vec<u8>, Unproven> {
        let TracedChain { plan, public, .. } = traced;
        let statistic = traced.statistic.as_ref();
        let chain = Chain {
            circuit: self,
            public,
            form: traced.form.clone(),
            values: traced.values.clone(),
            base: self.base(
                public,
                &traced.commitment,
                context,
                statistic,
                traced.log_rows,
            ),
        };
        let failed = |error: String| Unproven::Failed(error);
        let masks = |index: usize| {
            let mut hasher = blake3::Hasher::new_keyed(&entropy);
            hasher
                .update(b"seam")
                .update(&chain.base)
                .update(&(index as u64).to_le_bytes());
            seam::masks(hasher.finalize_xof())
        };
        let mut commit = |index: usize| {
            let mut trace = self.cut(traced, index, &masks);
            changed(index, &mut trace);
            let last = trace.values[trace.values.len() - trace.width..].to_vec();
            let mut hasher = blake3::Hasher::new_keyed(&entropy);
            hasher
                .update(b"segment")
                .update(&chain.base)
                .update(&(index as u64).to_le_bytes());
            for cell in &trace.values[..trace.width] {
                hasher.update(&cell.as_canonical_u64().to_le_bytes());
            }
            let source = StdRng::from_seed(hasher.finalize().into());
            let (commitment, held) = Held::commit(parameters::scheme(plan.len(), source), trace)
                .map_err(|error| failed(error.to_string()))?;
            let root = commitment[0];
            Ok::<_, Unproven>(Committed { held, root, last })
        };
        let carried = &self.chained().carried;
        let (mut roots, mut values, mut parts) = (Vec::new(), Vec::<Values>::new(), Vec::new());
        let mut before: Option<Weights> = None;
        let mut coming: Option<Committed> = None;
        for index in 0..plan.len() {
            let more = index + 1 < plan.len();
            let looked = if frugal && more {
                Some(commit(index + 1)?.root)
            } else {
                None
            };
            let Committed { held, root, last } = coming.take().map_or_else(|| commit(index), Ok)?;
            if roots.is_empty() {
                roots.push(root);
            }
            let mut after = None;
            if more {
                let next = match looked {
                    Some(root) => root,
                    None => coming.insert(commit(index + 1)?).root,
                };
                let weights = chain.weights(index, &root, &next);
                values.push(seam::values(carried, &last, &masks(index), &weights));
                roots.push(next);
                after = Some(weights);
            }
            let none = [F::ZERO; REPETITIONS];
            let entered = index.checked_sub(1).map_or(&none, |seam| &values[seam]);
            let left = values.get(index).unwrap_or(&none);
            let publics = chain.public_values([entered, left]);
            let air = chain.air(plan[index].clone(), [before.take(), after.clone()]);
            before = after;
            let seed = chain.seed(index, neighbours(&roots, index));
            let config = HeldConfig::new(held, parameters::transcript(&seed));
            // The trace is committed; only its shape is read again.
            let shape = RowMajorMatrix::new(F::zero_vec(plan[index].len()), 1);
            let proof = p3_uni_stark::prove(&config, &air, shape, &publics)
                .map_err(|error| failed(error.to_string()))?;
            parts.push(postcard::to_allocvec(&proof).map_err(|error| failed(error.to_string()))?);
        }
        let mut proof = self.shown(&traced.values[CHAIN..]);
        proof.extend(joined(traced.log_rows, &values, &parts));
        Ok(proof)
    }

    /// The trace of a segment, without the masks of its seams.
    #[must_use]
    pub fn segment(&self, traced: &TracedChain, index: usize) -> RowMajorMatrix<F> {
        self.cut(traced, index, &|_| [F::ZERO; REPETITIONS])
    }

    /// The trace of a segment, with the masks of the seams at its ends.
    fn cut(
        &self,
        traced: &TracedChain,
        index: usize,
        masks: &dyn Fn(usize) -> Values,
    ) -> RowMajorMatrix<F> {
        let (rows, width) = (traced.plan[index].clone(), self.layout.width);
        let mut cells = Vec::with_capacity(rows.len() * (width + REPETITIONS));
        for row in rows.clone() {
            cells.extend_from_slice(&traced.cells[row * width..(row + 1) * width]);
            let mask = if row == rows.start && index > 0 {
                masks(index - 1)
            } else if row + 1 == rows.end && index + 1 < traced.plan.len() {
                masks(index)
            } else {
                [F::ZERO; REPETITIONS]
            };
            cells.extend(mask);
        }
        RowMajorMatrix::new(cells, width + REPETITIONS)
    }
}
