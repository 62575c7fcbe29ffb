"""Stock circom and snarkjs on the paper's circuit: the rival of `attest-sampled`.

They are GPL and no part of Sluice. `make rival` puts them into a folder, with the circuit and a
writer of powers of tau whose secrets are public: keys made here are for measuring alone.
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

__all__ = ["Absent", "Rival", "RivalCost", "Step", "find_rival", "weighed"]

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
    cpu_seconds: float  # of all threads, however busy the machine is


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalCost:
    """What the paper's toolchain took for so many samples of 1,024 rows."""

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
        """From inputs to a proof, at the least: the witness, and the proof from it."""
        return self.witness.seconds + min(step.seconds for step in self.proving)

    @property
    def prove_cpu_seconds(self) -> float:
        """What that took of the processors."""
        return self.witness.cpu_seconds + min(step.cpu_seconds for step in self.proving)

    @property
    def peak_bytes(self) -> int:
        """What proving held, at the least."""
        return min(step.peak_bytes for step in self.proving)


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """Why there is no rival here."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """The tools, and where they are."""

    node: Path
    modules: Path
    fixture: Path
    tau: Path

    def measure(self, *, samples: int, repeats: int) -> RivalCost:
        """Compile, make keys, prove so many times and verify, each in a process of its own."""
        with TemporaryDirectory() as folder:
            return self._measured(Path(folder), samples=samples, repeats=repeats)

    def _measured(self, folder: Path, *, samples: int, repeats: int) -> RivalCost:
        # circom's sandbox sees nothing but the folder it runs in.
        shutil.copytree(self.modules / "circomlib" / "circuits", folder / "circomlib" / "circuits")
        shutil.copy(self.fixture, folder / FIXTURE)
        (folder / "main.circom").write_text(MAIN.format(samples=samples, depth=DEPTH))
        (folder / "input.json").write_text(json.dumps(_inputs(samples)))
        compiling = self._node(
            folder, "circom2", "main.circom", "--O2", "--r1cs", "--wasm", "-l", ".", "-o", "."
        )
        constraints, publics = _size(folder / "main.r1cs")
        power = (constraints + publics).bit_length()
        weighed([str(self.tau), str(power), "known.ptau"], folder)
        groth16 = ("snarkjs", "groth16")
        setup = self._node(folder, *groth16, "setup", "main.r1cs", "known.ptau", "main.zkey")
        (folder / "known.ptau").unlink()
        witness = weighed(
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
        return weighed([str(self.node), str(script), *options], folder)


def find_rival(build: Path) -> Rival | Absent:
    """Return the tools that `make rival` left in a folder, or say what is missing."""
    node = shutil.which("node")
    if node is None:
        return Absent(why="there is no node here")
    modules, rival = build / "tools" / "node_modules", build / "rival"
    needed = [modules / name for name in ("circom2", "circomlib", "snarkjs")]
    needed += [rival / FIXTURE, rival / TAU]
    missing = [path for path in needed if not path.exists()]
    if missing:
        return Absent(why=f"{missing[0]} is not there; 'make rival' puts it there")
    return Rival(
        node=Path(node),
        modules=modules.resolve(),
        fixture=(rival / FIXTURE).resolve(),
        tau=(rival / TAU).resolve(),
    )


def weighed(command: list[str], folder: Path, *, accepted: tuple[int, ...] = (0,)) -> Step:
    """Run a command in a folder; one that does not end as accepted is a `ProverError`."""
    weighing = [sys.executable, "-I", str(Path(weigh.__file__).resolve()), *command]
    began = time.perf_counter()
    done = subprocess.run(  # noqa: S603 - our own interpreter, tools that were found
        weighing,
        cwd=folder,
        env=os.environ | {"NODE_OPTIONS": HEAP},
        capture_output=True,
        check=False,
    )
    seconds = time.perf_counter() - began
    if done.returncode not in accepted:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ProverError(f"{Path(command[1]).name} ended with {done.returncode}: {last}")
    peak, cpu = done.stdout.split()
    return Step(seconds=seconds, peak_bytes=int(peak), cpu_seconds=float(cpu))


def _inputs(samples: int) -> dict[str, object]:
    """A batch of equal rows, under one root whatever rows are drawn; budgets are never spent."""
    readings = [BIAS + 12_345 + 7_919 * at for at in range(12)]
    row = [*readings, *[BIAS + SCALE] * (CHANNELS - len(readings))]
    rest = poseidon([1, 2, 3])
    node = poseidon([poseidon(row[:9]), poseidon(row[9:]), rest])
    path = []
    for _ in range(DEPTH):
        path.append(str(node))
        node = poseidon([node, node])
    told = [str(each) for each in row]
    return {
        "root": str(node),
        "idx": [1 + at * (1 << DEPTH) // (samples + 1) for at in range(1, samples + 1)],
        "vMax": 9 * samples,
        "uMax": 6 * samples,
        **dict.fromkeys(("xPrev", "xCur"), [told] * samples),
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
    raise ProverError(f"{r1cs} has no header; did circom end well?")
