//! Chains of segments: what holds, and every lie at a seam.

mod support;

use attest_core::full::chain::{Record, TracedChain, joined as chained, plan};
use attest_core::full::columns::F;
use attest_core::full::counts::{BASE, Counted, MOST_ROWS};
use attest_core::full::seam::REPETITIONS;
use attest_core::full::witness::{Fault, Manner};
use attest_core::full::{Invalid, ORDER, Unproven};
use p3_field::PrimeCharacteristicRing;
use p3_matrix::Matrix;
use p3_matrix::dense::RowMajorMatrix;
use support::{CONTEXT, Vector, gauge, vector};

const LOG: usize = 8;
const REPEATS: usize = 6;
const WORD: usize = 8;
const HEADER: usize = 16 + WORD;

/// The batch with every gadget, several times after one another, with room in every budget.
fn long() -> Vector {
    let mut long = vector("every gadget");
    long.registers = long.registers.repeat(REPEATS);
    long.codes = long.codes.repeat(REPEATS);
    long.starts = long.starts.repeat(REPEATS);
    long.flagged = long.flagged.repeat(REPEATS);
    long.rows *= REPEATS;
    let budgets = &mut long.budgets;
    budgets.violating = 150;
    budgets.severe = 20;
    budgets.segments *= REPEATS as u64;
    let own = [
        &mut budgets.unsteady,
        &mut budgets.windows,
        &mut budgets.switches,
        &mut budgets.blocks,
    ];
    for count in own.into_iter().flatten() {
        *count = *count * REPEATS as u64 + 40;
    }
    committed(long)
}

fn committed(mut vector: Vector) -> Vector {
    let commitment = vector.circuit.commit(&vector.batch(), &vector.salt);
    vector.commitment = commitment.expect("the batch can be committed to");
    vector
}

fn traced(of: &Vector, manner: Manner) -> Result<TracedChain<'_>, Unproven> {
    of.circuit
        .trace_chain(&of.budgets, &of.batch(), &of.salt, None, LOG, manner)
}

fn proven(of: &Vector, entropy: u8) -> Vec<u8> {
    lying(of, entropy, &mut |_, _| {})
}

/// A proof by a prover that changes the traces of its segments.
fn lying(
    of: &Vector,
    entropy: u8,
    changed: &mut dyn FnMut(usize, &mut RowMajorMatrix<F>),
) -> Vec<u8> {
    let traced = traced(of, Manner::default()).expect("the batch is admitted");
    let proof = of
        .circuit
        .seal_chain(&traced, &CONTEXT, [entropy; 32], &[], changed);
    proof.expect("a prover that lies has an answer too")
}

/// Put the cells of another trace in the place of these; the masks stay.
fn replace(trace: &mut RowMajorMatrix<F>, other: &RowMajorMatrix<F>) {
    let cells = trace.width() - REPETITIONS;
    let rows = trace.values.chunks_mut(cells + REPETITIONS);
    for (row, other) in rows.zip(other.values.chunks(cells + REPETITIONS)) {
        row[..cells].copy_from_slice(&other[..cells]);
    }
}

fn refused(of: &Vector, proof: &[u8], what: &str) {
    assert!(of.verified(proof).is_err(), "{what} went unnoticed");
}

fn word(bytes: &[u8], at: usize) -> usize {
    let word = bytes[at..at + WORD].try_into().expect("eight bytes");
    u64::from_le_bytes(word) as usize
}

/// A chain's head with its seams, and its segments.
fn parts(proof: &[u8], segments: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
    let lengths = HEADER + (segments - 1) * REPETITIONS * WORD;
    let parts = support::segments(proof, segments);
    (proof[..lengths].to_vec(), parts)
}

fn joined(head: &[u8], parts: &[Vec<u8>]) -> Vec<u8> {
    let lengths = parts.iter().map(|part| (part.len() as u64).to_le_bytes());
    let mut proof = head.to_vec();
    for length in lengths {
        proof.extend(length);
    }
    for part in parts {
        proof.extend(part);
    }
    proof
}

#[test]
fn segments_share_a_row_and_end_with_padding() {
    for (rows, log, heights) in [
        (256, 8, vec![256, 256]),
        (300, 8, vec![256, 256]),
        (660, 8, vec![256, 256, 256]),
        (4_734, 12, vec![4_096, 1_024]),
        (4_734, 11, vec![2_048, 2_048, 1_024]),
        (5_119, 12, vec![4_096, 2_048]),
    ] {
        let made = plan(rows, log).expect("a chain");
        assert_eq!(
            made.iter().map(|part| part.len()).collect::<Vec<_>>(),
            heights
        );
        assert_eq!(made[0].start, 0);
        assert!(made.windows(2).all(|pair| pair[0].end == pair[1].start + 1));
        let last = made.last().expect("a segment");
        assert!(last.start < rows && rows < last.end);
    }
    for (rows, log) in [
        (255, 8),
        (1, 8),
        (0, 8),
        (300, 7),
        (300, 18),
        (MOST_ROWS, 18),
        (MOST_ROWS + 1, 12),
    ] {
        assert!(
            plan(rows, log).is_err(),
            "{rows} rows in segments of 2^{log}"
        );
    }
}

#[test]
fn a_chain_shows_what_one_proof_shows() {
    let long = long();
    let proof = proven(&long, 1);
    long.verified(&proof).expect("the chain holds");
    long.verified(&long.proven(1)).expect("one proof holds too");
    let mut poor = self::long();
    poor.budgets.segments -= 1;
    assert!(matches!(
        traced(&poor, Manner::default()),
        Err(Unproven::Refused(_))
    ));
    refused(&poor, &proof, "a smaller budget");
    let mut other = self::long();
    other.registers[700 * 4 % other.rows] ^= 1;
    refused(&committed(other), &proof, "another commitment");
}

#[test]
fn the_parts_of_a_trace_are_the_trace() {
    let long = long();
    let whole = long.traced(Manner::default()).expect("admitted").trace;
    for refilled in [false, true] {
        let manner = Manner {
            refilled,
            ..Manner::default()
        };
        let traced = traced(&long, manner).expect("the batch is admitted");
        for (index, rows) in traced.plan.iter().enumerate() {
            let part = long.circuit.segment(&traced, index);
            for row in rows.start..rows.end.min(long.rows) {
                let own = part.row_slice(row - rows.start).expect("a row");
                let same = whole.row_slice(row).expect("a row");
                assert_eq!(own[..whole.width()], same[..], "row {row} of part {index}");
            }
        }
    }
}

/// The records of the first segments of a chain.
fn records(of: &Vector, entropy: u8, segments: usize, done: &[Record]) -> Vec<Record> {
    let traced = traced(of, Manner::default()).expect("the batch is admitted");
    let mut records = done.to_vec();
    let stopped = of.circuit.seal_segments(
        &traced,
        &CONTEXT,
        [entropy; 32],
        done,
        &mut |_, _| {},
        &mut |record| {
            records.push(record);
            let stop = Err(Unproven::Failed("stop".into()));
            if records.len() < segments {
                Ok(())
            } else {
                stop
            }
        },
    );
    assert!(stopped.is_err() || records.len() == done.len());
    records
}

#[test]
fn a_chain_goes_on_after_any_segment() {
    let long = long();
    let whole = proven(&long, 1);
    for stopped in 1..=3 {
        let done = records(&long, 1, stopped, &[]);
        let read: Vec<Record> = done
            .iter()
            .map(|record| Record::read(&record.bytes()).expect("a record"))
            .collect();
        assert_eq!(read, done);
        let all = if stopped == 3 {
            done
        } else {
            records(&long, 1, 3, &read)
        };
        let proof = chained(LOG, &all);
        long.verified(&proof).expect("the chain holds");
        // The same masks: the values of the seams are those of a chain that was not stopped.
        assert_eq!(parts(&proof, 3).0, parts(&whole, 3).0);
    }
}

#[test]
fn a_chain_does_not_go_on_after_another_one() {
    let long = long();
    let done = records(&long, 1, 1, &[]);
    let mut other = self::long();
    other.registers[40 * 4] += 1;
    let other = committed(other);
    for (of, entropy, what) in [(&long, 2, "other masks"), (&other, 1, "another batch")] {
        let traced = traced(of, Manner::default()).expect("the batch is admitted");
        let sealed = of
            .circuit
            .seal_chain(&traced, &CONTEXT, [entropy; 32], &done, &mut |_, _| {});
        assert!(matches!(sealed, Err(Unproven::Malformed(_))), "{what}");
    }
    let traced = traced(&long, Manner::default()).expect("the batch is admitted");
    let many = vec![done[0].clone(); 4];
    let sealed = long
        .circuit
        .seal_chain(&traced, &CONTEXT, [1; 32], &many, &mut |_, _| {});
    assert!(matches!(sealed, Err(Unproven::Malformed(_))));
    let mut bytes = done[0].bytes();
    assert!(Record::read(&bytes[..60]).is_err());
    bytes[64..72].copy_from_slice(&ORDER.to_le_bytes());
    assert!(
        Record::read(&bytes).is_err(),
        "a value that is not canonical"
    );
}

#[test]
fn no_chain_is_larger_than_its_bound() {
    let long = long();
    let most = long.circuit.largest_chain(long.rows, LOG).expect("a chain");
    assert!(proven(&long, 1).len() <= most);
    assert!(long.circuit.largest_chain(200, LOG).is_err());
}

#[test]
fn the_length_of_a_last_segment_does_not_matter() {
    for rows in [256, 257, 510, 511, 512] {
        let gauge = gauge(3, rows);
        gauge.verified(&proven(&gauge, 1)).expect("the chain holds");
    }
}

#[test]
fn another_batchs_segment_does_not_pass_the_seam() {
    let long = long();
    let mut other = self::long();
    other.registers[40 * 4] += 1; // in the first segment
    let other = committed(other);
    let other = traced(&other, Manner::default()).expect("the batch is admitted");
    for (index, what) in [(0, "the first"), (1, "the second")] {
        let proof = lying(&long, 1, &mut |at, trace| {
            if at == index {
                replace(trace, &long.circuit.segment(&other, at));
            }
        });
        refused(&long, &proof, &format!("{what} segment of another batch"));
    }
}

#[test]
fn a_count_cannot_begin_lower_after_a_seam() {
    let mut long = long();
    long.budgets.segments -= 1;
    let forced = |faults| Manner {
        faults,
        forced: true,
        ..Manner::default()
    };
    let honest = traced(&long, forced([None, None])).expect("a prover that lies goes on");
    let layout = &long
        .circuit
        .trace(
            &long.budgets,
            &long.batch(),
            &long.salt,
            forced([None, None]),
        )
        .expect("a prover that lies goes on")
        .air
        .layout;
    let count = layout
        .counts
        .counts
        .iter()
        .find(|count| count.counted.contains(&Counted::Segments))
        .expect("segments are counted");
    let at = count
        .counted
        .iter()
        .position(|counted| *counted == Counted::Segments)
        .expect("it is there");
    let row = honest.plan[1].start;
    let before = long.circuit.segment(&honest, 1).values[count.so_far];
    let unit = F::from_u64(BASE).exp_u64(at as u64);
    // No slack is left, so one unit less after the seam brings the count to its budget.
    let fault = Fault {
        row,
        column: count.so_far,
        value: before - unit,
    };
    let lower = traced(&long, forced([Some(fault), None])).expect("a prover that lies goes on");
    for seam in [true, false] {
        let proof = long
            .circuit
            .seal_chain(&honest, &CONTEXT, [1; 32], &[], &mut |at, trace| {
                if at > 0 && seam {
                    replace(trace, &long.circuit.segment(&lower, at));
                }
            });
        refused(
            &long,
            &proof.expect("an answer"),
            "a count above its budget",
        );
    }
}

#[test]
fn every_carried_cell_is_bound_on_both_sides() {
    let long = long();
    let honest = traced(&long, Manner::default()).expect("the batch is admitted");
    let width = long.circuit.segment(&honest, 0).width();
    assert!(long.circuit.carried() < width);
    // The masks themselves, and some columns of every kind, on either side of the first seam.
    let columns = (0..width).step_by(29).chain(width - REPETITIONS..width);
    for column in columns {
        for segment in [0, 1] {
            let proof = lying(&long, 1, &mut |at, trace| {
                let row = if segment == 0 { trace.height() - 1 } else { 0 };
                if at == segment {
                    trace.values[row * width + column] += F::ONE;
                }
            });
            let broken = long.verified(&proof).is_err();
            let carried = long.circuit.carries(column) || column >= width - REPETITIONS;
            assert!(broken || !carried, "column {column} of segment {segment}");
        }
    }
}

#[test]
fn segments_cannot_be_dropped_repeated_reordered_or_swapped() {
    let long = long();
    let (proof, again) = (proven(&long, 1), proven(&long, 2));
    let (head, own) = parts(&proof, 3);
    let (_, others) = parts(&again, 3);
    assert_eq!(joined(&head, &own), proof);
    let shapes: [(&str, Vec<usize>); 6] = [
        ("a dropped first segment", vec![1, 2]),
        ("a dropped middle segment", vec![0, 2]),
        ("a dropped last segment", vec![0, 1]),
        ("a repeated segment", vec![0, 1, 1]),
        ("one more segment", vec![0, 1, 1, 2]),
        ("reordered segments", vec![1, 0, 2]),
    ];
    for (what, order) in shapes {
        let parts: Vec<Vec<u8>> = order.iter().map(|at| own[*at].clone()).collect();
        refused(&long, &joined(&head, &parts), what);
    }
    for at in 0..3 {
        let mut swapped = own.clone();
        swapped[at].clone_from(&others[at]);
        refused(
            &long,
            &joined(&head, &swapped),
            "a segment of another proof",
        );
    }
    // A chain of fewer rows that is a valid chain by itself has no segment for this one.
    let mut short = self::long();
    short.rows -= 110;
    let rows = short.rows;
    short.registers.truncate(rows * 4);
    short.codes.truncate(long.codes.len() / long.rows * rows);
    short.starts.truncate(rows);
    short.flagged.truncate(rows);
    short.budgets.segments -= 2;
    let short = committed(short);
    let shorter = proven(&short, 1);
    short.verified(&shorter).expect("the chain holds");
    refused(&long, &shorter, "a chain of fewer rows");
}

#[test]
fn no_byte_beside_the_segments_is_free() {
    let gauge = gauge(3, 600);
    let proof = proven(&gauge, 1);
    gauge.verified(&proof).expect("the chain holds");
    let lengths = HEADER + 2 * REPETITIONS * WORD;
    for at in 0..lengths + 3 * WORD {
        for bit in [0, 7] {
            let mut changed = proof.clone();
            changed[at] ^= 1 << bit;
            refused(&gauge, &changed, &format!("bit {bit} of byte {at}"));
        }
    }
    let mut longer = proof.clone();
    longer.push(0);
    refused(&gauge, &longer, "a byte more");
    for length in [0, 8, 16, 20, HEADER, lengths, proof.len() - 1] {
        refused(&gauge, &proof[..length], &format!("{length} bytes"));
    }
    let mut wrapped = proof;
    let value = word(&wrapped, HEADER) as u64;
    if let Some(other) = value.checked_add(ORDER) {
        wrapped[HEADER..HEADER + WORD].copy_from_slice(&other.to_le_bytes());
    } else {
        wrapped[HEADER..HEADER + WORD].copy_from_slice(&u64::MAX.to_le_bytes());
    }
    assert!(matches!(gauge.verified(&wrapped), Err(Invalid::Shape(_))));
}

#[test]
fn a_chain_is_bound_to_what_one_proof_is_bound_to() {
    let gauge = gauge(3, 600);
    let proof = proven(&gauge, 1);
    let claim = gauge.claim(&proof);
    let mut claims = vec![claim; 4];
    claims[1].context = &[8; 32];
    claims[2].rows = 599;
    claims[3].commitment = &[1; 32];
    let verdicts = gauge.circuit.verify_many(&claims);
    assert_eq!(verdicts[0], Ok(()));
    assert!(verdicts[1..].iter().all(|verdict| verdict.is_err()));
    for (claim, verdict) in claims.iter().zip(&verdicts) {
        assert_eq!(&gauge.circuit.verify(claim), verdict);
    }
}

#[test]
fn the_values_of_a_seam_are_new_with_each_proof() {
    let gauge = gauge(3, 300);
    let seam = |entropy| {
        let proof = proven(&gauge, entropy);
        proof[HEADER..HEADER + REPETITIONS * WORD].to_vec()
    };
    let seams: Vec<Vec<u8>> = (0..12).map(seam).collect();
    for (at, one) in seams.iter().enumerate() {
        for other in &seams[..at] {
            for (one, other) in one.chunks(WORD).zip(other.chunks(WORD)) {
                assert_ne!(one, other);
            }
        }
    }
    // About half of 36 uniform values are in the upper half of the field.
    let high = |seam: &Vec<u8>| {
        seam.chunks(WORD)
            .map(|word| word[7] >> 7)
            .collect::<Vec<_>>()
    };
    let ones = seams.iter().flat_map(high).filter(|bit| *bit == 1).count();
    assert!((6..=30).contains(&ones), "{ones} of 36");
}

#[test]
fn no_chain_proves_fewer_bits_than_its_circuit_says() {
    let gauge = gauge(3, 2);
    for (rows, log) in [
        (300, 8),
        (1_000, 8),
        (4_734, 11),
        (4_734, 12),
        (MOST_ROWS, 8),
        (MOST_ROWS, 12),
        (MOST_ROWS, 16),
    ] {
        let bits = gauge
            .circuit
            .proven_bits_chained(rows, log)
            .expect("a chain");
        assert!(
            bits >= gauge.circuit.proven_bits(rows).max(100),
            "{bits} bits for {rows} rows in segments of 2^{log}"
        );
    }
}
