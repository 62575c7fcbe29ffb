"""The vectors that the Rust tests read too are what the evaluator and the encoding say today."""

import json

import pytest

from sluice import _attest

from .full_vectors import VECTORS, document


def test_the_committed_vectors_are_the_ones_that_are_made() -> None:
    assert VECTORS.read_text(encoding="utf-8") == document()


FILE = json.loads(VECTORS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("vector", FILE["vectors"], ids=lambda vector: vector["name"])
def test_the_circuit_agrees(vector: dict[str, str]) -> None:
    circuit = _attest.FullCircuit(FILE["statements"][vector["statement"]].encode())
    planes = (bytes.fromhex(vector[name]) for name in ("registers", "codes", "starts", "flagged"))
    batch = _attest.FullBatch(int(vector["rows"]), *planes)
    assert circuit.commit(batch, bytes.fromhex(vector["salt"])).hex() == vector["commitment"]
    if vector["admitted"]:
        circuit.examine(vector["budgets"].encode(), batch)
    else:
        with pytest.raises(_attest.RefusedBatchError):
            circuit.examine(vector["budgets"].encode(), batch)
