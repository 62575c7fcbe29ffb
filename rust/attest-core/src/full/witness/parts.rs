//! The trace of a batch in parts, one after the other, of which the last row of each is the first of
//! the next. The batch is looked at twice: for the flags of all rows, then for the cells of each part.

use std::ops::Range;
use std::sync::Arc;

use super::super::Refused;
use super::super::columns::F;
use super::super::digest::CHAIN;
use super::super::layout::Layout;
use super::super::moments::Form;
use super::super::public::Public;
use super::marks::Marks;
use super::{Batch, Manner, Trace};

/// Up to so many cells, parts are kept from the first look for the second one.
const KEPT: usize = 1 << 23;

/// What comes before a part.
#[derive(Clone, Copy)]
pub(super) enum Before<'a> {
    /// Nothing: the digest begins with the salt.
    Salt([F; CHAIN]),
    /// The last row of the part before.
    Row(&'a [F]),
}

/// A batch whose flags are settled, and whose trace can be filled part by part.
#[derive(Debug)]
pub struct Parts<'a> {
    layout: Arc<Layout>,
    public: Arc<Public>,
    batch: Batch<'a>,
    salt: [F; CHAIN],
    manner: Manner,
    spans: Vec<Range<usize>>,
    marks: Marks,
    kept: Vec<Vec<F>>,
}

impl<'a> Parts<'a> {
    /// Look at every row, settle the flags of all, and work out what the form of a statistic comes
    /// to.
    ///
    /// # Errors
    /// [`Refused`] says what does not hold.
    #[allow(clippy::too_many_arguments)]
    pub fn survey(
        layout: &Arc<Layout>,
        public: &Arc<Public>,
        batch: Batch<'a>,
        salt: [F; CHAIN],
        manner: Manner,
        spans: &[Range<usize>],
        form: Option<&Form>,
        claimed: Option<&[F]>,
    ) -> Result<(Self, Vec<F>), Refused> {
        manner.fatal(batch.fits(layout))?;
        let mut parts = Self {
            layout: layout.clone(),
            public: public.clone(),
            batch,
            salt,
            manner,
            spans: spans.to_vec(),
            marks: Marks::new(layout, public, manner),
            kept: Vec::new(),
        };
        let height = spans.last().map_or(0, |last| last.end);
        let keeps = height * layout.width <= KEPT && !manner.refilled;
        let mut marks = Marks::new(layout, public, manner);
        let (mut last, mut totals) = (Vec::new(), Vec::new());
        for index in 0..spans.len() {
            let mut part = parts.begin(index, &last);
            part.show(&batch);
            part.survey(&batch, &mut marks)?;
            part.bind(form);
            if index + 1 == spans.len() {
                totals = part.totals(form, claimed)?;
            }
            last = part.last().to_vec();
            if keeps {
                parts.kept.push(part.cells);
            }
        }
        marks.settle(layout, public)?;
        parts.marks = marks;
        Ok((parts, totals))
    }

    fn begin(&self, index: usize, last: &[F]) -> Trace<'_> {
        let public = Arc::new(self.public.part(&self.layout, self.spans[index].clone()));
        let before = if index == 0 {
            Before::Salt(self.salt)
        } else {
            Before::Row(last)
        };
        Trace::begin(&self.layout, public, self.manner, before)
    }

    /// The cells of a part, row after row; `last` are those of the last row of the part before.
    #[must_use]
    pub fn fill(&self, index: usize, last: &[F], form: Option<&Form>) -> Vec<F> {
        let mut part = self.begin(index, last);
        if let Some(kept) = self.kept.get(index) {
            let entered = part.cells[..last.len()].to_vec();
            part.cells.copy_from_slice(kept);
            part.cells[..last.len()].copy_from_slice(&entered);
        } else {
            part.show(&self.batch);
        }
        part.complete(&self.batch, &self.marks);
        part.bind(form);
        part.cells
    }
}
