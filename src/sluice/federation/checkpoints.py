"""Checkpoints on disk: weights, rule memory and decisions, in one file that is written atomically.

The file is safetensors (loading it runs no code) with the rest as JSON in its header. It names its
federation by a fingerprint of everything that decides its result; a checkpoint of another
federation is refused.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from sluice.aggregation import Centre, Fresh, RuleMemory, State
from sluice.arrays import frozen
from sluice.errors import CheckpointError
from sluice.federation.admission_check import Decision
from sluice.federation.rounds import Checkpoint
from sluice.files import atomically, parse_json

__all__ = ["CheckpointFile"]

SCHEMA = "sluice-checkpoint/2"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFile:
    """Stores the latest checkpoint of one federation in one file."""

    path: Path
    fingerprint: str

    def load(self) -> Checkpoint | None:
        """Return the checkpoint; None if there is no file."""
        for left in self.path.parent.glob(f".{self.path.name}.*.draft"):
            left.unlink(missing_ok=True)  # of a run that was killed while it wrote
        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="numpy") as opened:
                header = parse_json(
                    (opened.metadata() or {})["checkpoint"], "its header", error=CheckpointError
                )
                tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - no mapping
        except (OSError, SafetensorError, KeyError, ValueError, CheckpointError) as error:
            raise CheckpointError(
                f"checkpoint {self.path} cannot be read ({error}); remove it to start again"
            ) from None
        if header.get("schema") != SCHEMA:
            raise CheckpointError(
                f"checkpoint {self.path} is of schema {header.get('schema')!r}, expected "
                f"{SCHEMA!r}; finish it with the version that wrote it, or remove it"
            )
        if header["fingerprint"] != self.fingerprint:
            raise CheckpointError(
                f"checkpoint {self.path} belongs to a federation with other data or settings; "
                "choose another folder, or remove it to start again"
            )
        return _read(header, tensors)

    def keep(self, checkpoint: Checkpoint) -> None:
        """Write the checkpoint to a draft, make it durable, then replace the last one."""
        tensors, memory = _state_tensors(checkpoint.state)
        header = {
            "schema": SCHEMA,
            "fingerprint": self.fingerprint,
            "round": checkpoint.round,
            "state": memory,
            "decisions": {
                client: {
                    "admitted": decision.admitted,
                    "rows": decision.rows,
                    "reasons": list(decision.reasons),
                }
                for client, decision in checkpoint.decisions.items()
            },
            "excluded": dict(checkpoint.excluded),
            "unchanged": checkpoint.unchanged,
            "influence": {client: share.hex() for client, share in checkpoint.influence.items()},
            "passed": dict(checkpoint.passed),
        }
        payload = save(
            {"parameters": checkpoint.parameters, **tensors},
            metadata={"checkpoint": json.dumps(header, allow_nan=False)},
        )
        with atomically(self.path) as draft:
            draft.write_bytes(payload)


def _state_tensors(state: State) -> tuple[dict[str, Any], dict[str, Any]]:
    match state:
        case RuleMemory():
            names = sorted(state.sums)
            tensors = {f"memory.{at}": state.sums[name] for at, name in enumerate(names)}
            return tensors, {"kind": "memory", "clients": names}
        case Centre():
            return {"centre": state.vector}, {"kind": "centre"}
        case Fresh():
            return {}, {"kind": "fresh"}
        case _:
            raise CheckpointError(
                f"a {type(state).__name__} is for one round and cannot be stored between rounds"
            )


def _parameters(saved: Any) -> Any:
    """Return weights as float32; bytes, which hold the members' statistics, stay as they are."""
    return saved if saved.dtype == np.uint8 else saved.astype(np.float32)


def _read(header: dict[str, Any], tensors: dict[str, Any]) -> Checkpoint:
    memory = header["state"]
    state: State = Fresh()
    if memory["kind"] == "memory":
        state = RuleMemory(
            sums={name: tensors[f"memory.{at}"] for at, name in enumerate(memory["clients"])}
        )
    elif memory["kind"] == "centre":
        state = Centre(vector=tensors["centre"])
    return Checkpoint(
        round=header["round"],
        parameters=frozen(_parameters(tensors["parameters"])),
        state=state,
        decisions={
            client: Decision(
                admitted=decision["admitted"],
                rows=decision["rows"],
                reasons=tuple(decision["reasons"]),
            )
            for client, decision in header["decisions"].items()
        },
        influence={client: float.fromhex(share) for client, share in header["influence"].items()},
        passed=header["passed"],
        excluded=header["excluded"],
        unchanged=header["unchanged"],
    )
