"""Output of `python -m benchmarks attest-full`: our costs beside recorded figures of others."""

from dataclasses import dataclass

from benchmarks.attest.full import AttestBench, Cost
from sluice.cli import out, table

__all__ = ["FIGURES", "Figure", "payload", "show"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The cost of a proof elsewhere, measured once before this run; the middle of its range."""

    what: str
    source: str
    rows: int  # of the batch
    seconds: float
    peak_bytes: float
    verify_seconds: float
    proof_bytes: float


FIGURES = (
    Figure(
        what="paper's circuit, snarkjs 0.7.4",
        source="EPYC",
        rows=1_024,
        seconds=43.0,
        peak_bytes=1.2e9,
        verify_seconds=0.61,
        proof_bytes=799,
    ),
    Figure(
        what="paper's circuit, rapidsnark 0.0.8",
        source="EPYC",
        rows=1_024,
        seconds=7.6,
        peak_bytes=320e6,
        verify_seconds=0.0075,
        proof_bytes=256,
    ),
    Figure(
        what="paper's circuit, snarkjs",
        source="M3 Pro",
        rows=1_024,
        seconds=12.0,
        peak_bytes=3.8e9,
        verify_seconds=0.29,
        proof_bytes=806,
    ),
    Figure(
        what="prototype, gnark 0.16",
        source="EPYC",
        rows=1_024,
        seconds=3.7,
        peak_bytes=516e6,
        verify_seconds=0.002,
        proof_bytes=196,
    ),
    Figure(
        what="prototype, Plonky3 0.4, blow-up 8",
        source="EPYC",
        rows=1_024,
        seconds=0.354,
        peak_bytes=102e6,
        verify_seconds=0.015,
        proof_bytes=904e3,
    ),
    Figure(
        what="prototype, Plonky3 0.4, blow-up 4",
        source="EPYC",
        rows=1_024,
        seconds=0.205,
        peak_bytes=67e6,
        verify_seconds=0.023,
        proof_bytes=1.3e6,
    ),
    Figure(
        what="prototype, Plonky3 0.4, blow-up 4",
        source="EPYC",
        rows=8_192,
        seconds=1.52,
        peak_bytes=421e6,
        verify_seconds=0.022,
        proof_bytes=1.42e6,
    ),
)

NOTE = (
    "EPYC: two idle cores of an AMD EPYC (Zen 3); whole processes, except for the prototypes. M3 "
    "Pro: as printed in the paper. The paper's circuit samples 32 rows of a batch (297,736 "
    "constraints). The prototypes prove the row rule on 18 channels, without windows, budgets, "
    "liveness or a digest; at 8,192 rows with fewer than 100 proven bits."
)


def payload(measured: AttestBench) -> dict[str, object]:
    """Return what `--json` prints."""
    return {
        "bench": "attest-full",
        "plant": measured.plant,
        "channels": measured.channels,
        "moving_channels": measured.moving_channels,
        "rules": {kind.value: count for kind, count in measured.rules},
        "columns": measured.columns,
        "constraints": measured.constraints,
        "processors": measured.processors,
        "load": measured.load,
        "costs": [_cost(cost) for cost in measured.costs],
        "elsewhere": [_elsewhere(figure, measured) for figure in FIGURES],
    }


def _cost(cost: Cost) -> dict[str, object]:
    return {
        "rows": cost.rows,
        "prove_seconds": cost.seconds,
        "prove_runs": list(cost.prove_s),
        "row_seconds": cost.seconds / cost.rows,
        "commit_seconds": cost.commit_s,
        "verify_seconds": cost.verify_seconds,
        "peak_bytes": cost.usage.peak_bytes,
        "cpu_seconds": cost.usage.cpu_s,
        "proof_bytes": cost.proof_bytes,
        "proven_bits": cost.proven_bits,
    }


def _elsewhere(figure: Figure, measured: AttestBench) -> dict[str, object]:
    beside = measured.at(figure.rows)
    ratio = None if beside is None else figure.seconds / beside.seconds
    return {
        "what": figure.what,
        "source": figure.source,
        "rows": figure.rows,
        "prove_seconds": figure.seconds,
        "peak_bytes": figure.peak_bytes,
        "verify_seconds": figure.verify_seconds,
        "proof_bytes": figure.proof_bytes,
        "times_ours": ratio,
    }


def show(measured: AttestBench) -> None:
    """Print our costs, then those of others with their ratio to ours."""
    columns = ("rows", "prove", "runs", "a row", "CPU", "memory", "verify", "proof", "bits")
    drawn = table("python -m benchmarks attest-full", *columns)
    for cost in measured.costs:
        drawn.add_row(
            f"{cost.rows:,}",
            _time(cost.seconds),
            f"{len(cost.prove_s)}: {min(cost.prove_s):.2f}-{max(cost.prove_s):.2f} s",
            f"{cost.seconds / cost.rows * 1e6:.0f} us",
            _time(cost.usage.cpu_s),
            _bytes(cost.usage.peak_bytes),
            _time(cost.verify_seconds),
            _bytes(cost.proof_bytes),
            str(cost.proven_bits),
        )
    out.print(drawn)
    rules = ", ".join(f"{count} {kind.value}" for kind, count in measured.rules)
    out.print(
        f"{measured.plant}: {measured.channels} channels, of which {measured.moving_channels} "
        f"move; rules {rules}; {measured.columns} columns, {measured.constraints} constraints. "
        f"{measured.processors} processors, load {measured.load:.1f} at the start.\n"
        "Times include encoding, starting a prover process, digest, masks from the system's "
        "randomness and serialisation. Medians; CPU time and peak memory are of the prover process."
    )
    _show_elsewhere(measured)


def _show_elsewhere(measured: AttestBench) -> None:
    columns = ("what", "on", "rows", "prove", "times ours", "memory", "verify", "proof")
    drawn = table("Other systems, measured before this run", *columns)
    for figure in FIGURES:
        beside = measured.at(figure.rows)
        drawn.add_row(
            figure.what,
            figure.source,
            f"{figure.rows:,}",
            _time(figure.seconds),
            "" if beside is None else f"{figure.seconds / beside.seconds:.1f}",
            _bytes(figure.peak_bytes),
            _time(figure.verify_seconds),
            _bytes(figure.proof_bytes),
        )
    out.print(drawn)
    out.print(NOTE)


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"


def _bytes(size: float) -> str:
    if size < 1_000:
        return f"{size:.0f} B"
    return f"{size / 1e6:,.0f} MB" if size >= 1e7 else f"{size / 1e3:,.0f} kB"
