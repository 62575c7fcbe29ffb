"""A `sampled` proof as stock snarkjs reads it: proof, public signals and verification key.

snarkjs checks the pairing equation only. Its user must check that the public signals are the right
ones (docs/protocol.md, step 5.5).
"""

import json
from dataclasses import dataclass
from pathlib import Path

from sluice.attestation.systems.sampled.system import SampledClaim
from sluice.errors import DocumentError
from sluice.files import atomically

__all__ = ["SnarkjsExport", "export", "write_export"]

COORDINATE = 32
HEADER = 24 + 32 + 32  # the kind of key, its circuit, its proving key
CURVE = {"protocol": "groth16", "curve": "bn128"}

Json = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnarkjsExport:
    """The three documents of snarkjs."""

    proof: Json
    public: list[str]
    verification_key: Json


def export(proof: bytes, claim: SampledClaim, verifying_key: bytes) -> SnarkjsExport:
    """Convert a proof, its public inputs and the verifying key to snarkjs's format."""
    points = _Points(proof)
    a, b, c = points.first(), points.second(), points.first()
    key = _Points(verifying_key[HEADER:])
    alpha = key.first()
    beta, gamma, delta = key.second(), key.second(), key.second()
    inputs = []
    while key.left:
        inputs.append(key.first())
    return SnarkjsExport(
        proof={"pi_a": a, "pi_b": b, "pi_c": c, **CURVE},
        public=[str(signal) for signal in claim.signals],
        verification_key={
            **CURVE,
            "nPublic": len(inputs) - 1,
            "vk_alpha_1": alpha,
            "vk_beta_2": beta,
            "vk_gamma_2": gamma,
            "vk_delta_2": delta,
            "IC": inputs,
        },
    )


def write_export(exported: SnarkjsExport, folder: Path) -> tuple[Path, Path, Path]:
    """Write proof.json, public.json and verification_key.json."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, content in (
        ("proof.json", exported.proof),
        ("public.json", exported.public),
        ("verification_key.json", exported.verification_key),
    ):
        with atomically(folder / name) as draft:
            draft.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        written.append(folder / name)
    proof, public, key = written
    return proof, public, key


class _Points:
    """Reads coordinates one after the other, big-endian."""

    def __init__(self, raw: bytes) -> None:
        if len(raw) % (2 * COORDINATE):
            raise DocumentError("these bytes are not points of BN254; export a verified proof")
        self._raw, self._at = raw, 0

    @property
    def left(self) -> bool:
        return self._at < len(self._raw)

    def first(self) -> list[str]:
        return [self._number(), self._number(), "1"]

    def second(self) -> list[list[str]]:
        x, y = [self._number(), self._number()], [self._number(), self._number()]
        return [x, y, ["1", "0"]]

    def _number(self) -> str:
        coordinate = self._raw[self._at : self._at + COORDINATE]
        if len(coordinate) != COORDINATE:
            raise DocumentError("the proof or key ends too early")
        self._at += COORDINATE
        return str(int.from_bytes(coordinate, "big"))
