//! Chains: a batch of any length as a chain of segments, each a proof of its own.
//!
//! Every segment but the last has `2^k` rows and no padding. Its last row is also the first row of the
//! next one, and a [seam](super::seam) binds the two copies. The last segment is as short as it can be,
//! and always has a row of padding.
//!
//! Prover and verifier hold one or two segments at a time, however many there are.

use std::ops::Range;
use std::sync::Arc;

use p3_field::{PrimeCharacteristicRing, PrimeField64};
use p3_matrix::dense::RowMajorMatrix;
use p3_maybe_rayon::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::air::FullAir;
use super::columns::{Column, F};
use super::counts::MOST_ROWS;
use super::digest::CHAIN;
use super::identity;
use super::moments::{Bound, Form};
use super::parameters::{self, LEAST_HEIGHT, MOST_HEIGHT};
use super::prover::Held;
use super::public::{Budgets, Public};
use super::seam::{self, REPETITIONS, Seam, Values, Weights};
use super::stark::{Circuit, Unproven, salt_elements};
use super::verify::Invalid;
use super::witness::{self, Batch, Manner, Parts};
use super::{Malformed, ORDER};

const MAGIC: &[u8; 16] = b"sluice-chain-1\0\0";
const WORD: usize = 8;
const HEADER: usize = MAGIC.len() + WORD;
const LOGS: Range<usize> = LEAST_HEIGHT.ilog2() as usize..MOST_HEIGHT.ilog2() as usize + 1;

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

/// The logarithm of the rows of a segment, where a proof is a chain.
#[must_use]
pub fn log_rows(proof: &[u8]) -> Option<usize> {
    let after = proof.strip_prefix(MAGIC)?;
    let word = after.first_chunk::<WORD>().copied().unwrap_or_default();
    usize::try_from(u64::from_le_bytes(word)).ok()
}

/// A batch that is ready to be proven as a chain.
#[derive(Debug)]
pub struct TracedChain<'a> {
    /// The rows of each segment.
    pub plan: Vec<Range<usize>>,
    log_rows: usize,
    public: Arc<Public>,
    form: Option<Arc<Form>>,
    parts: Parts<'a>,
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
            public: Arc::new(self.public.part(&self.circuit.layout, rows)),
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

    /// Verify a chain. As many segments are read at a time as there are threads, and none after one
    /// that is refused.
    pub(super) fn verify(&self, proof: &[u8], log_rows: usize) -> Result<(), Invalid> {
        let plan = plan(self.public.rows, log_rows).map_err(|error| Invalid::Shape(error.0))?;
        let (values, parts) = parse(proof, plan.len())?;
        let roots: Vec<Root> = parts
            .iter()
            .map(|part| root(part))
            .collect::<Result<_, _>>()?;
        let weights = |seam: Option<usize>| {
            let seam = seam?;
            let sides = roots.get(seam..seam + 2)?;
            Some(self.weights(seam, &sides[0], &sides[1]))
        };
        let judge = |index: usize| {
            let height = plan[index].len();
            let most = self.circuit.largest_segment(height);
            let proof = Circuit::read(parts[index], height, most)?;
            let before = index.checked_sub(1);
            let valued = |seam: Option<usize>| seam.and_then(|seam| values.get(seam));
            let air = self.air(plan[index].clone(), [weights(before), weights(Some(index))]);
            let none = [F::ZERO; REPETITIONS];
            let ends = [valued(before), valued(Some(index))].map(|end| end.unwrap_or(&none));
            let seed = self.seed(index, neighbours(&roots, index));
            let config = parameters::config(&seed, [0; 32]);
            self.circuit
                .judge(&air, &config, &proof, &self.public_values(ends))
        };
        let verdicts = (0..plan.len()).into_par_iter().map(judge);
        verdicts.find_first(Result::is_err).unwrap_or(Ok(()))
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

/// The root of a segment's trace, which its proof begins with: a list of one hash. The whole proof is
/// read later, and what it has for its root is this.
fn root(part: &[u8]) -> Result<Root, Invalid> {
    let root = part.strip_prefix(&[1]).and_then(<[u8]>::first_chunk);
    let root: Option<&Root> = root;
    root.copied()
        .ok_or_else(|| Invalid::Shape("a segment of the chain has no root".into()))
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

/// The bytes of a chain of so many segments beside their proofs.
pub(super) fn around(segments: usize) -> usize {
    HEADER + WORD * (REPETITIONS * (segments - 1) + segments)
}

/// What is kept of a segment that is proven: enough to make the chain of, or to go on after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    root: Root,
    /// The root of the next segment's trace; zeros after the last one.
    next: Root,
    /// The values of the seam after it; zeros after the last one.
    values: [u64; REPETITIONS],
    proof: Vec<u8>,
}

const RECORD_HEADER: usize = 2 * size_of::<Root>() + REPETITIONS * WORD;

impl Record {
    /// The bytes of a record.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let values = self.values.iter().flat_map(|value| value.to_le_bytes());
        let mut bytes = [self.root, self.next].concat();
        bytes.extend(values);
        bytes.extend(&self.proof);
        bytes
    }

    /// Read a record.
    ///
    /// # Errors
    /// [`Malformed`] where the bytes are not those of a record.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let refuse = || Malformed("the record of a segment has another form".into());
        let (head, proof) = bytes.split_at_checked(RECORD_HEADER).ok_or_else(refuse)?;
        let (roots, words) = head.as_chunks::<32>();
        let (words, _) = words.as_chunks::<WORD>();
        let values: [u64; REPETITIONS] = std::array::from_fn(|at| u64::from_le_bytes(words[at]));
        if values.iter().any(|value| *value >= ORDER) {
            return Err(refuse());
        }
        Ok(Self {
            root: roots[0],
            next: roots[1],
            values,
            proof: proof.to_vec(),
        })
    }

    fn elements(&self) -> Values {
        self.values.map(F::from_u64)
    }
}

/// The chain that the records of all of its segments make.
#[must_use]
pub fn joined(log_rows: usize, records: &[Record]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend((log_rows as u64).to_le_bytes());
    let seams = records.len().saturating_sub(1);
    for value in records[..seams].iter().flat_map(|record| record.values) {
        bytes.extend(value.to_le_bytes());
    }
    for record in records {
        bytes.extend((record.proof.len() as u64).to_le_bytes());
    }
    for record in records {
        bytes.extend(&record.proof);
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
        let cells = self.carried();
        let any = || Some([(); REPETITIONS].map(|()| vec![F::ONE; cells]));
        let seam = Arc::new(Seam {
            carried: self.chained().carried.clone(),
            enters: any(),
            leaves: any(),
        });
        let of = |segment: &Range<usize>| {
            let mut air = self.unbudgeted(segment.len());
            air.seam = Some(seam.clone());
            identity::proven_bits(&air, plan.len())
        };
        let proof = [plan.first(), plan.last()].into_iter().flatten().map(of);
        Ok(proof.chain(self.statistic_bits()).min().unwrap_or(0))
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
    /// segments of `2^log_rows` rows.
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
    ) -> Result<Vec<u8>, Unproven> {
        let bound = statistic.map(|statistic| Bound { statistic, context });
        let manner = Manner::default();
        let traced = self.trace_chain(budgets, batch, salt, bound.as_ref(), log_rows, manner)?;
        self.seal_chain(&traced, context, entropy, &[], &mut |_, _| {})
    }

    /// Look at a whole batch, so that its trace can be filled segment by segment.
    ///
    /// # Errors
    /// [`Unproven`] where the batch does not satisfy the statement, or is not this circuit's.
    pub fn trace_chain<'a>(
        &self,
        budgets: &Budgets,
        batch: &Batch<'a>,
        salt: &[u8; 32],
        bound: Option<&Bound>,
        log_rows: usize,
        manner: Manner,
    ) -> Result<TracedChain<'a>, Unproven> {
        batch.check(&self.layout)?;
        let plan = plan(batch.rows, log_rows)?;
        let salt = salt_elements(salt);
        let digest = witness::digest(&self.layout, batch, salt);
        let public = Arc::new(Public::whole(&self.layout, batch.rows, budgets)?);
        let commitment = self.commitment(&digest, batch.rows);
        let drawn = self.form(&commitment, bound, batch.rows)?;
        let (form, claimed) = drawn.map_or((None, None), |(form, totals)| (Some(form), totals));
        let (parts, totals) = Parts::survey(
            &self.layout,
            &public,
            *batch,
            salt,
            manner,
            &plan,
            form.as_ref(),
            claimed.as_deref(),
        )?;
        Ok(TracedChain {
            plan,
            log_rows,
            public,
            form: form.map(Arc::new),
            parts,
            commitment,
            values: [&digest[..], &totals].concat(),
            statistic: bound.map(|bound| blake3::hash(bound.statistic).into()),
        })
    }

    /// What a chain is bound to: the same for no other circuit, claim or cut.
    #[must_use]
    pub fn chain_base(&self, traced: &TracedChain, context: &[u8; 32]) -> [u8; 32] {
        let statistic = traced.statistic.as_ref();
        let log_rows = traced.log_rows;
        self.base(
            &traced.public,
            &traced.commitment,
            context,
            statistic,
            log_rows,
        )
    }

    /// What the proof of a traced chain begins with, before the chain itself.
    #[must_use]
    pub fn chain_head(&self, traced: &TracedChain) -> Vec<u8> {
        self.shown(&traced.values[CHAIN..])
    }

    /// Prove a traced chain. `done` are the records of the segments that were proven before, with the
    /// same entropy. `changed` may change the trace of each segment before it is committed:
    /// whether the chain holds is for the verifier to find out.
    ///
    /// # Errors
    /// [`Unproven`] where the proof system fails.
    pub fn seal_chain(
        &self,
        traced: &TracedChain,
        context: &[u8; 32],
        entropy: [u8; 32],
        done: &[Record],
        changed: &mut dyn FnMut(usize, &mut RowMajorMatrix<F>),
    ) -> Result<Vec<u8>, Unproven> {
        let mut records = done.to_vec();
        self.seal_segments(traced, context, entropy, done, changed, &mut |record| {
            records.push(record);
            Ok(())
        })?;
        let mut proof = self.chain_head(traced);
        proof.extend(joined(traced.log_rows, &records));
        Ok(proof)
    }

    /// Prove the segments of a traced chain that are not yet proven, one after the other; each is
    /// given to `proven` and not kept.
    ///
    /// The masks come from `entropy` and what is proven. Segments that were proven before must have
    /// been proven with the same: a record that does not fit is refused.
    ///
    /// # Errors
    /// [`Unproven`] where the proof system fails, the records are not of this chain, or `proven` does.
    pub fn seal_segments(
        &self,
        traced: &TracedChain,
        context: &[u8; 32],
        entropy: [u8; 32],
        done: &[Record],
        changed: &mut dyn FnMut(usize, &mut RowMajorMatrix<F>),
        proven: &mut dyn FnMut(Record) -> Result<(), Unproven>,
    ) -> Result<(), Unproven> {
        let TracedChain { plan, public, .. } = traced;
        if done.len() > plan.len() {
            return Err(Malformed("more segments were proven than there are".into()).into());
        }
        let chain = Chain {
            circuit: self,
            public,
            form: traced.form.clone(),
            values: traced.values.clone(),
            base: self.chain_base(traced, context),
        };
        let masks = |index: usize| {
            let mut hasher = blake3::Hasher::new_keyed(&entropy);
            hasher
                .update(b"seam")
                .update(&chain.base)
                .update(&(index as u64).to_le_bytes());
            seam::masks(hasher.finalize_xof())
        };
        let mut last = Vec::new();
        let mut trace = |index: usize| {
            let cells = traced.parts.fill(index, &last, traced.form.as_deref());
            last = cells[cells.len() - self.layout.width..].to_vec();
            let mut trace = self.masked_trace(&cells, index, plan.len(), &masks);
            changed(index, &mut trace);
            trace
        };
        let commit = |index: usize, trace: RowMajorMatrix<F>| {
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
            let held = Held::commit(&trace, source).map_err(failed)?;
            let root = held.commitment()[0];
            Ok::<_, Unproven>(Committed { held, root, last })
        };
        let carried = &self.chained().carried;
        let (mut before, mut before_root) = (None, NO_ROOT);
        let mut entered = [F::ZERO; REPETITIONS];
        for (index, record) in done.iter().enumerate() {
            let _ = trace(index);
            before = Some(chain.weights(index, &record.root, &record.next));
            (before_root, entered) = (record.root, record.elements());
        }
        let mut coming: Option<Committed> = None;
        for index in done.len()..plan.len() {
            let more = index + 1 < plan.len();
            let own = coming
                .take()
                .map_or_else(|| commit(index, trace(index)), Ok)?;
            let Committed { held, root, last } = own;
            let mut next_root = NO_ROOT;
            if more {
                let next = commit(index + 1, trace(index + 1))?;
                next_root = next.root;
                coming = Some(next);
            }
            if done
                .last()
                .is_some_and(|record| index == done.len() && record.next != root)
            {
                return Err(Malformed("the segments were proven of another trace".into()).into());
            }
            let after = more.then(|| chain.weights(index, &root, &next_root));
            let left = after.as_ref().map_or([F::ZERO; REPETITIONS], |weights| {
                seam::values(carried, &last, &masks(index), weights)
            });
            let publics = chain.public_values([&entered, &left]);
            let air = chain.air(plan[index].clone(), [before.take(), after.clone()]);
            let seed = chain.seed(index, [&before_root, &root, &next_root]);
            let transcript = parameters::transcript(&seed);
            let proof = held.prove(&air, self.degree, &publics, transcript);
            let proof = proof.map_err(failed)?;
            proven(Record {
                root,
                next: next_root,
                values: left.map(|value| value.as_canonical_u64()),
                proof: postcard::to_allocvec(&proof).map_err(failed)?,
            })?;
            (before, before_root, entered) = (after, root, left);
        }
        Ok(())
    }

    /// The trace of a segment, without the masks of its seams.
    #[must_use]
    pub fn segment(&self, traced: &TracedChain, index: usize) -> RowMajorMatrix<F> {
        let mut last = Vec::new();
        let mut cells = Vec::new();
        for at in 0..=index {
            cells = traced.parts.fill(at, &last, traced.form.as_deref());
            last = cells[cells.len() - self.layout.width..].to_vec();
        }
        let none = |_| [F::ZERO; REPETITIONS];
        self.masked_trace(&cells, index, traced.plan.len(), &none)
    }

    /// The trace of a segment, with the masks of the seams at its ends.
    fn masked_trace(
        &self,
        cells: &[F],
        index: usize,
        segments: usize,
        masks: &dyn Fn(usize) -> Values,
    ) -> RowMajorMatrix<F> {
        let width = self.layout.width;
        let height = cells.len() / width;
        let mut masked = Vec::with_capacity(height * (width + REPETITIONS));
        for (row, cells) in cells.chunks(width).enumerate() {
            masked.extend_from_slice(cells);
            let mask = if row == 0 && index > 0 {
                masks(index - 1)
            } else if row + 1 == height && index + 1 < segments {
                masks(index)
            } else {
                [F::ZERO; REPETITIONS]
            };
            masked.extend(mask);
        }
        RowMajorMatrix::new(masked, width + REPETITIONS)
    }
}

#[allow(clippy::needless_pass_by_value)] // as `map_err` gives it
fn failed(error: impl ToString) -> Unproven {
    Unproven::Failed(error.to_string())
}
