"""Stock snarkjs and circomlibjs beside our proofs and hashes. They are GPL: tools of tests only."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from sluice import _attest
from sluice.admission.policy import PaperPolicy
from sluice.attestation.systems.sampled.keys import make_sampled
from sluice.attestation.systems.sampled.rows import SampledRows
from sluice.attestation.systems.sampled.snarkjs import export, write_export
from sluice.attestation.systems.sampled.system import Sampling, core_of, planes_of, statement_of
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record

TOOLS = Path(__file__).parents[2] / "build" / "tools"
ROWS, SALT, CONTEXT = 60, bytes(range(32)), b"c" * 32

VERIFY = """
const {groth16} = require("snarkjs"), read = (name) => JSON.parse(require("fs").readFileSync(name));
const [key, signals, proof] = ["verification_key", "public", "proof"].map((n) => read(`${n}.json`));
const flip = (number) => (BigInt(number) ^ 1n).toString();
const holds = (s, p) => groth16.verify(key, s, p).catch(() => false);
(async () => {
  const found = {whole: await holds(signals, proof), altered: []};
  for (let at = 0; at < signals.length; at++) {
    const other = signals.slice(); other[at] = flip(other[at]);
    found.altered.push(await holds(other, proof));
  }
  for (const point of ["pi_a", "pi_c"]) for (const at of [0, 1]) {
    const other = structuredClone(proof); other[point][at] = flip(other[point][at]);
    found.altered.push(await holds(signals, other));
  }
  for (const at of [0, 1]) for (const half of [0, 1]) {
    const other = structuredClone(proof); other.pi_b[at][half] = flip(other.pi_b[at][half]);
    found.altered.push(await holds(signals, other));
  }
  console.log(JSON.stringify(found)); process.exit(0);
})();
"""
HASH = """
const {buildPoseidonReference} = require("circomlibjs");
const {leaves, arities, inputs} = JSON.parse(require("fs").readFileSync("tree.json"));
buildPoseidonReference().then((poseidon) => {
  const hash = (group) => poseidon.F.toString(poseidon(group));
  let level = leaves;
  for (const arity of arities) {
    const next = [];
    for (let at = 0; at < level.length; at += arity) next.push(hash(level.slice(at, at + arity)));
    level = next;
  }
  console.log(JSON.stringify({root: level[0], hashes: inputs.map(hash)})); process.exit(0);
});
"""


def node(script: str, folder: Path) -> dict[str, object]:
    """Run a script of ours with the installed tools in a folder."""
    found = shutil.which("node")
    if found is None or not (TOOLS / "node_modules").is_dir():
        pytest.skip("no node, or its tools are not installed (make tools)")
    done = subprocess.run(
        [found, "-e", script],
        cwd=folder,
        env={"NODE_PATH": str(TOOLS / "node_modules"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=True,
        timeout=120,
    )
    told = json.loads(done.stdout)
    assert isinstance(told, dict)
    return told


@pytest.fixture(scope="module")
def line() -> Record:
    return simulate("line", seed=0, days=8)


@pytest.fixture(scope="module")
def rules(line: Record) -> RuleSet:
    return mine(line.rows(0, 4_320), line.rows(4_320, 8_640), profile=Profile.PAPER_WIDE)


def test_snarkjs_accepts_our_proof_and_none_that_was_altered(
    line: Record, rules: RuleSet, tmp_path: Path
) -> None:
    batch = line.rows(8_640, 8_640 + ROWS)
    sampling = Sampling(samples=2, violations=1)
    system = make_sampled(tmp_path / "keys", rules, PaperPolicy(), sampling, rows_max=64)
    circuit = system.circuit(rules, PaperPolicy(), rows_max=64)
    commitment = system.commit(batch, circuit, salt=SALT)
    proof = system.prove(batch, circuit, salt=SALT, context=CONTEXT)
    claim = system.claim(circuit, commitment, ROWS, CONTEXT)
    write_export(export(proof, claim, system.verifying_key), tmp_path)
    found = node(VERIFY, tmp_path)
    assert found["whole"] is True
    assert found["altered"] == [False] * (len(claim.signals) + 8)


def test_circomlibjs_agrees_on_hashes_and_on_the_root(
    line: Record, rules: RuleSet, tmp_path: Path
) -> None:
    batch = line.rows(8_640, 8_640 + ROWS)
    statement = statement_of(rules, PaperPolicy(), Sampling(samples=2, violations=1), rows_max=64)
    core, planes = core_of(statement.content), planes_of(SampledRows.of(statement, batch))
    inputs = [[str(each) for each in range(1, count + 1)] for count in range(1, 17)]
    told = {"leaves": core.leaves(planes, SALT), "arities": [8, 8], "inputs": inputs}
    (tmp_path / "tree.json").write_text(json.dumps(told), encoding="utf-8")
    found = node(HASH, tmp_path)
    assert found["root"] == str(int.from_bytes(core.commit(planes, SALT), "big"))
    assert found["hashes"] == [_attest.poseidon_hash(each) for each in inputs]
