"""Where a prover's time goes: what is read from perf, and what is drawn."""

import pytest

from benchmarks.attest.profile import OTHER, flame_graph, phase_of, stacks_of

SCRIPT = """prove 1 2.0: 5 cpu-clock:
\t  16a p3_dft::butterflies::apply+0x2d (/bin/prove)
\t  10a prove::main+0x58 (/bin/prove)

prove 1 2.1: 5 cpu-clock:
\t  16b attest_core::full::witness::Trace<A>::fill+0x1 (/bin/prove)
\t  10a prove::main+0x58 (/bin/prove)

prove 1 2.2: 5 cpu-clock:
\t  16c clear_page+0x1 ([kernel.kallsyms])
"""


def test_stacks_are_read_from_the_outside_in() -> None:
    assert stacks_of(SCRIPT) == [
        ("prove::main", "p3_dft::butterflies::apply"),
        ("prove::main", "attest_core::full::witness::Trace<A>::fill"),
        ("clear_page",),
    ]


def test_every_stack_has_a_phase() -> None:
    assert [phase_of(stack) for stack in stacks_of(SCRIPT)] == ["codewords", "witness", OTHER]


def test_a_flame_graph_has_a_bar_for_each_function() -> None:
    drawn = flame_graph(stacks_of(SCRIPT))
    assert drawn.count("<rect") == 4
    assert "prove::main: 2 of 3" in drawn
    assert "Trace&lt;A&gt;::fill: 1 of 3" in drawn


@pytest.mark.parametrize(
    ("function", "phase"),
    [
        ("attest_core::full::transform::Transform::halve", "codewords"),
        ("attest_core::full::prover::Steps::evaluate", "quotient"),
        ("attest_core::full::codewords::Coset::serialize", "hashing: trees and the proof of work"),
        ("blake3_hash_many_avx512", "hashing: trees and the proof of work"),
        ("p3_matrix::Matrix::columnwise_dot_product", "openings"),
        ("attest_core::full::transform::rows_at", "openings"),
        ("attest_core::full::seam::read", "degree and layout of constraints"),
    ],
)
def test_functions_of_our_own_prover_have_a_phase(function: str, phase: str) -> None:
    assert phase_of(("prove::main", function)) == phase
