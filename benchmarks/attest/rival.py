"""Stock circom and snarkjs on the paper's circuit: the rival of `attest-sampled`.

They are GPL and not part of Sluice. `make rival` installs them in a folder, with the circuit and a
program that writes powers of tau from public secrets: keys made here are only for measuring.
"""

import json
import os
import shutil
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.attest import weigh
from sluice.attestation.systems.sampled import poseidon
from sluice.errors import ProverError

__all__ = ["Absent", "Rival", "RivalCost", "Step", "find_rival", "run_measured"]

FIXTURE, TAU = "paper.circom", "benchmark_only_powers_of_tau"
DEPTH, CHANNELS = 10, 18
BIAS, SCALE = 1 << 31, 1 << 16
HEAP = "--max-old-space-size=16384"
MAIN = """pragma circom 2.1.0;
include "paper.circom";
component main {{public [root, idx, vMax, uMax]}} = Attestation({samples}, {depth});
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One process from its start to its end."""

    seconds: float
    peak_bytes: int
    cpu_seconds: float  # over all threads; does not depend on the machine's load


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalCost:
    """The cost of the paper's toolchain for `samples` samples of 1,024 rows."""

    samples: int
    constraints: int
    compiling: Step
    setup: Step
    witness: Step
    proving: tuple[Step, ...]
    verifying: Step
    key_bytes: int

    @property
    def prove_seconds(self) -> float:
        """Time from inputs to a proof: the witness and the fastest proof from it."""
        return self.witness.seconds + min(step.seconds for step in self.proving)

    @property
    def prove_cpu_seconds(self) -> float:
        """CPU time from inputs to a proof: the witness and the least of the proofs."""
        return self.witness.cpu_seconds + min(step.cpu_seconds for step in self.proving)

    @property
    def peak_bytes(self) -> int:
        """The smallest peak memory of the proofs."""
        return min(step.peak_bytes for step in self.proving)


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """Why the rival cannot be measured."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """The rival's tools, by path."""

    node: Path
    modules: Path
    fixture: Path
    tau: Path

    def measure(self, *, samples: int, repeats: int) -> RivalCost:
        """Compile, make keys, prove `repeats` times and verify, each step in its own process."""
        with TemporaryDirectory() as folder:
            return self._measured(Path(folder), samples=samples, repeats=repeats)

    def _measured(self, folder: Path, *, samples: int, repeats: int) -> RivalCost:
        # circom's sandbox can read only the folder it runs in.
        shutil.copytree(self.modules / "circomlib" / "circuits", folder / "circomlib" / "circuits")
        shutil.copy(self.fixture, folder / FIXTURE)
        (folder / "main.circom").write_text(MAIN.format(samples=samples, depth=DEPTH))
        (folder / "input.json").write_text(json.dumps(_inputs(samples)))
        compiling = self._node(
            folder, "circom2", "main.circom", "--O2", "--r1cs", "--wasm", "-l", ".", "-o", "."
        )
        constraints, publics = _size(folder / "main.r1cs")
        power = (constraints + publics).bit_length()
        run_measured([str(self.tau), str(power), "known.ptau"], folder)
        groth16 = ("snarkjs", "groth16")
        setup = self._node(folder, *groth16, "setup", "main.r1cs", "known.ptau", "main.zkey")
        (folder / "known.ptau").unlink()
        witness = run_measured(
            [str(self.node), "main_js/generate_witness.js", "main_js/main.wasm", "input.json", "w"],
            folder,
        )
        prove = (*groth16, "prove", "main.zkey", "w", "proof.json", "public.json")
        proving = tuple(self._node(folder, *prove) for _ in range(repeats))
        self._node(folder, "snarkjs", "zkey", "export", "verificationkey", "main.zkey", "key.json")
        verify = (*groth16, "verify", "key.json", "public.json", "proof.json")
        return RivalCost(
            samples=samples,
            constraints=constraints,
            compiling=compiling,
            setup=setup,
            witness=witness,
            proving=proving,
            verifying=self._node(folder, *verify),
            key_bytes=(folder / "main.zkey").stat().st_size,
        )

    def _node(self, folder: Path, tool: str, *options: str) -> Step:
        script = (self.modules / ".bin" / tool).resolve()
        return run_measured([str(self.node), str(script), *options], folder)


def find_rival(build: Path) -> Rival | Absent:
    """Return the tools that `make rival` installed in a folder, or what is missing."""
    node = shutil.which("node")
    if node is None:
        return Absent(why="node is not installed")
    modules, rival = build / "tools" / "node_modules", build / "rival"
    needed = [modules / name for name in ("circom2", "circomlib", "snarkjs")]
    needed += [rival / FIXTURE, rival / TAU]
    missing = [path for path in needed if not path.exists()]
    if missing:
        return Absent(why=f"{missing[0]} does not exist; run 'make rival'")
    return Rival(
        node=Path(node),
        modules=modules.resolve(),
        fixture=(rival / FIXTURE).resolve(),
        tau=(rival / TAU).resolve(),
    )


def run_measured(command: list[str], folder: Path, *, accepted: tuple[int, ...] = (0,)) -> Step:
    """Run a command in a folder and measure it; raise `ProverError` on other return codes."""
    measuring = [sys.executable, "-I", str(Path(weigh.__file__).resolve()), *command]
    began = time.perf_counter()
    done = subprocess.run(  # noqa: S603 - our own interpreter, tools that were found
        measuring,
        cwd=folder,
        env=os.environ | {"NODE_OPTIONS": HEAP},
        capture_output=True,
        check=False,
    )
    seconds = time.perf_counter() - began
    if done.returncode not in accepted:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ProverError(f"{Path(command[1]).name} ended with code {done.returncode}: {last}")
    peak, cpu = done.stdout.split()
    return Step(seconds=seconds, peak_bytes=int(peak), cpu_seconds=float(cpu))


def _inputs(samples: int) -> dict[str, object]:
    """Return a batch of equal rows: one root for any sampled rows, and budgets never exceeded."""
    readings = [BIAS + 12_345 + 7_919 * at for at in range(12)]
    row = [*readings, *[BIAS + SCALE] * (CHANNELS - len(readings))]
    rest = poseidon([1, 2, 3])
    node = poseidon([poseidon(row[:9]), poseidon(row[9:]), rest])
    path = []
    for _ in range(DEPTH):
        path.append(str(node))
        node = poseidon([node, node])
    texts = [str(each) for each in row]
    return {
        "root": str(node),
        "idx": [1 + at * (1 << DEPTH) // (samples + 1) for at in range(1, samples + 1)],
        "vMax": 9 * samples,
        "uMax": 6 * samples,
        **dict.fromkeys(("xPrev", "xCur"), [texts] * samples),
        **dict.fromkeys(("hRestPrev", "hRestCur"), [str(rest)] * samples),
        **dict.fromkeys(("pathPrev", "pathCur"), [path] * samples),
    }


def _size(r1cs: Path) -> tuple[int, int]:
    """Return how many constraints and public inputs a compiled circuit has, from its header."""
    raw = r1cs.read_bytes()
    (sections,) = struct.unpack_from("<I", raw, 8)
    at = 12
    for _ in range(sections):
        kind, size = struct.unpack_from("<IQ", raw, at)
        at += 12
        if kind == 1:
            (width,) = struct.unpack_from("<I", raw, at)
            _, outputs, inputs, _, _, constraints = struct.unpack_from(
                "<IIIIQI", raw, at + 4 + width
            )
            return constraints, outputs + inputs
        at += size
    raise ProverError(f"{r1cs} has no header; circom may have failed")
