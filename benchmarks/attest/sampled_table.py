"""Output of `attest-sampled` as a table and as JSON: our costs beside the rival's."""

from dataclasses import asdict, dataclass

from benchmarks.attest.rival import Absent, RivalCost
from benchmarks.attest.sampled import SampledBench
from sluice.cli import out, table

__all__ = ["SCALED", "Comparison", "payload", "show"]

SCALED = 3.9
"""The rival's time for 32 samples over its time for 8; both were measured once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Our cost at 32 samples, the rival's cost, and our cost at the rival's number of samples."""

    ours: SampledBench
    rival: RivalCost | Absent
    equal: SampledBench | None = None  # None without a rival

    @property
    def scale(self) -> float:
        """The factor that converts the rival's times to 32 samples."""
        scaled = isinstance(self.rival, RivalCost) and self.rival.samples != self.ours.samples
        return SCALED if scaled else 1.0

    @property
    def ratios(self) -> dict[str, float]:
        """Our speed and size relative to the rival and the paper."""
        ratios = {"constraints_of_the_paper": self.ours.of_the_paper}
        if isinstance(self.rival, RivalCost) and self.equal is not None:
            ratios["proving_faster"] = (
                self.scale * self.rival.prove_seconds / self.ours.process.seconds
            )
            ratios["proving_less_work"] = (
                self.scale * self.rival.prove_cpu_seconds / self.ours.process.cpu_seconds
            )
            ratios["proving_memory"] = self.equal.process.peak_bytes / self.rival.peak_bytes
            ratios["setup_faster"] = self.scale * self.rival.setup.seconds / self.ours.setup_seconds
        return ratios


def payload(measured: Comparison) -> dict[str, object]:
    """Return what `--json` prints."""
    rival = measured.rival
    return {
        "bench": "attest-sampled",
        **asdict(measured.ours),
        "rival": asdict(rival) if isinstance(rival, RivalCost) else None,
        "rival_absent": rival.why if isinstance(rival, Absent) else None,
        "rival_scaled_by": measured.scale,
        "at_the_rivals_samples": asdict(measured.equal) if measured.equal else None,
        "ratios": measured.ratios,
    }


def show(measured: Comparison) -> None:
    """Print the measurement."""
    ours, rival, scale = measured.ours, measured.rival, measured.scale
    cost = rival if isinstance(rival, RivalCost) else None
    scaled = f" x {scale:g}" if scale != 1 else ""
    drawn = table(
        f"{ours.samples} of {ours.rows:,} rows, {ours.channels} channels, {ours.rules} rules",
        "what",
        "ours",
        f"circom and snarkjs, {cost.samples} samples{scaled}" if cost else "",
    )

    def seconds(step: float) -> str:
        return f"{scale * step:.1f} s"

    for what, here, there in (
        (
            "constraints",
            f"{ours.constraints:,} ({ours.of_the_paper:.0%} of the paper's)",
            f"{cost.constraints:,} as measured" if cost else "",
        ),
        ("compiling", "none", seconds(cost.compiling.seconds) if cost else ""),
        ("set-up", f"{ours.setup_seconds:.1f} s", seconds(cost.setup.seconds) if cost else ""),
        ("commit", f"{ours.commit_seconds:.2f} s", ""),
        ("prove, library call", f"{ours.prove_seconds:.2f} s", ""),
        (
            "prove, whole process with the witness",
            f"{ours.process.seconds:.2f} s",
            seconds(cost.prove_seconds) if cost else "",
        ),
        (
            "the same, CPU time",
            f"{ours.process.cpu_seconds:.2f} s",
            seconds(cost.prove_cpu_seconds) if cost else "",
        ),
        ("verify, library call", f"{ours.verify_milliseconds:.1f} ms", ""),
        ("verify, whole process", "", f"{cost.verifying.seconds:.2f} s" if cost else ""),
        ("proof", f"{ours.proof_bytes} bytes", ""),
        ("proving key", f"{ours.proving_key_bytes / 1e6:.0f} MB", ""),
        ("memory of the proving process", f"{ours.process.peak_bytes / 1e6:.0f} MB", ""),
    ):
        drawn.add_row(what, here, there)
    out.print(drawn)
    if isinstance(rival, Absent):
        out.print(f"Ours alone: {rival.why}.", markup=False)
    else:
        _show_ratios(measured, rival)


def _show_ratios(measured: Comparison, rival: RivalCost) -> None:
    ratios, equal = measured.ratios, measured.equal
    assert equal is not None
    out.print(
        f"Proving is {ratios['proving_faster']:.1f} times as fast, from files to a proof, and "
        f"needs {ratios['proving_less_work']:.1f} times less CPU time. At {rival.samples} samples "
        f"its peak memory is {equal.process.peak_bytes / 1e6:.0f} MB; that of snarkjs is "
        f"{rival.peak_bytes / 1e6:.0f} MB (ratio {ratios['proving_memory']:.2f})."
    )
