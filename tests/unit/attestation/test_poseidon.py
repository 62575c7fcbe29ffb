"""The Rust core, reached from Python, agrees with the vectors that `cargo test` reads too."""

import json
from pathlib import Path
from typing import TypedDict

import pytest

from sluice import _attest
from sluice.attestation.systems.sampled.system import poseidon
from sluice.errors import SettingError


class Hash(TypedDict):
    inputs: list[str]
    digest: str


class Refused(TypedDict):
    inputs: list[str]
    expect: str


class Vectors(TypedDict):
    provenance: str
    hashes: list[Hash]
    refused: list[Refused]


VECTORS: Vectors = json.loads(
    (Path(__file__).parents[2] / "vectors" / "poseidon.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("vector", VECTORS["hashes"], ids=lambda v: f"{len(v['inputs'])} inputs")
def test_digest_equals_circomlib(vector: Hash) -> None:
    assert poseidon([int(element) for element in vector["inputs"]]) == int(vector["digest"])


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=lambda v: f"{v['expect']} {v['inputs']}")
def test_refused_inputs(vector: Refused) -> None:
    message = {"arity": "1 to 16 inputs", "encoding": "not a canonical field element"}
    with pytest.raises(ValueError, match=message[vector["expect"]]):
        _attest.poseidon_hash(vector["inputs"])


def test_a_negative_element_is_an_input_error() -> None:
    with pytest.raises(SettingError, match="canonical"):
        poseidon([-1])
