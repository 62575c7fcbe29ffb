"""What `attest-sampled` measured, as a table and as JSON: ours beside the rival's."""

from dataclasses import asdict, dataclass

from benchmarks.attest.rival import Absent, RivalCost
from benchmarks.attest.sampled import SampledBench
from sluice.cli import out, table

__all__ = ["SCALED", "Beside", "payload", "show"]

SCALED = 3.9
"""What the rival takes for 32 samples over what it takes for 8, as both were measured once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Ours at 32 samples; the rival, and ours at as many samples as the rival was measured at."""

    ours: SampledBench
    rival: RivalCost | Absent
    equal: SampledBench | None = None  # none where there is no rival

    @property
    def scale(self) -> float:
        """By what the rival's times are multiplied to be those of 32 samples."""
        scaled = isinstance(self.rival, RivalCost) and self.rival.samples != self.ours.samples
        return SCALED if scaled else 1.0

    @property
    def ratios(self) -> dict[str, float]:
        """How many times faster, and by how much smaller."""
        told = {"constraints_of_the_paper": self.ours.of_the_paper}
        if isinstance(self.rival, RivalCost) and self.equal is not None:
            told["proving_faster"] = (
                self.scale * self.rival.prove_seconds / self.ours.process.seconds
            )
            told["proving_less_work"] = (
                self.scale * self.rival.prove_cpu_seconds / self.ours.process.cpu_seconds
            )
            told["proving_memory"] = self.equal.process.peak_bytes / self.rival.peak_bytes
            told["setup_faster"] = self.scale * self.rival.setup.seconds / self.ours.setup_seconds
        return told


def payload(measured: Beside) -> dict[str, object]:
    """Return the measurement as JSON has it."""
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


def show(measured: Beside) -> None:
    """Print the measurement."""
    ours, rival, scale = measured.ours, measured.rival, measured.scale
    told = rival if isinstance(rival, RivalCost) else None
    scaled = f" x {scale:g}" if scale != 1 else ""
    drawn = table(
        f"{ours.samples} of {ours.rows:,} rows, {ours.channels} channels, {ours.rules} rules",
        "what",
        "ours",
        f"circom and snarkjs, {told.samples} samples{scaled}" if told else "",
    )

    def seconds(step: float) -> str:
        return f"{scale * step:.1f} s"

    for what, here, there in (
        (
            "constraints",
            f"{ours.constraints:,} ({ours.of_the_paper:.0%} of the paper's)",
            f"{told.constraints:,} as measured" if told else "",
        ),
        ("compiling", "none", seconds(told.compiling.seconds) if told else ""),
        ("set-up", f"{ours.setup_seconds:.1f} s", seconds(told.setup.seconds) if told else ""),
        ("commit", f"{ours.commit_seconds:.2f} s", ""),
        ("prove, library call", f"{ours.prove_seconds:.2f} s", ""),
        (
            "prove, whole process with the witness",
            f"{ours.process.seconds:.2f} s",
            seconds(told.prove_seconds) if told else "",
        ),
        (
            "the same, of all processors",
            f"{ours.process.cpu_seconds:.2f} s",
            seconds(told.prove_cpu_seconds) if told else "",
        ),
        ("verify, library call", f"{ours.verify_milliseconds:.1f} ms", ""),
        ("verify, whole process", "", f"{told.verifying.seconds:.2f} s" if told else ""),
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


def _show_ratios(measured: Beside, rival: RivalCost) -> None:
    ratios, equal = measured.ratios, measured.equal
    assert equal is not None
    out.print(
        f"Proving is {ratios['proving_faster']:.1f} times as fast, from files to a proof, and "
        f"takes the processors {ratios['proving_less_work']:.1f} times less. At "
        f"{rival.samples} samples it holds {equal.process.peak_bytes / 1e6:.0f} MB where snarkjs "
        f"holds {rival.peak_bytes / 1e6:.0f} MB: {ratios['proving_memory']:.2f} of it."
    )
