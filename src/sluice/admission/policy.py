"""Policies: what a coordinator demands, every budget by name, as TOML.

    kind = "hardened"            # or "paper", which has alpha alone
    rows_min = 200
    rows_max = 1048576

    [margins]
    alpha = 0.01
    ...

    [acceptance]
    rules_min = 3
    ...

    [acceptance.reasons]         # why a channel has no rule, or a rule is gone
    LIT601 = "decommissioned in May"

`sluice rules policy --out policy.toml` writes the built-in one in full, for editing.
"""

import difflib
import hashlib
import json
import math
import tomllib
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path

import rfc8785
import tomli_w
from pydantic import TypeAdapter, ValidationError

from sluice.errors import RulesFileError
from sluice.files import atomically
from sluice.invariants import Margins

__all__ = [
    "Acceptance",
    "HardenedPolicy",
    "PaperPolicy",
    "Policy",
    "policy_hash",
    "read_policy",
    "write_policy",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What a plant's rules must be before they may gate that plant."""

    rules_min: int = 3  # couplings, balances and windows
    coupling_tolerance_max: float = 0.5  # of nominal flow: looser cannot tell on from off
    balance_tolerance_max: float = 0.25  # of the level's span
    tank_power: float = 0.5  # of the move its flows can make: one rule a tank must see that much
    every_tank: bool = True  # a balance or window for each level, or a declared reason
    every_pump: bool = True  # a rule that reads each actuator that ran, or a declared reason
    reasons: dict[str, str] = field(default_factory=dict)  # channel or rule -> why it has none
    refused_max: float = 0.05  # share of clean batches that would be refused
    severe_max: float = 1.0  # of nominal flow or span: the worst clean rows may be said to show
    envelope_max: float = 0.5  # share of clean rows said to be in transition, per coupling
    anchors_max: float = 0.05  # share of clean windows said not to balance, per rule
    jumps_max: float = 0.01  # time jumps said to be usual, per row
    repeats_max: float = 0.1  # share of clean rows said to stand twice, per level
    looser_than_last: float = 1.0  # tolerances over those of the last accepted file


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperPolicy:
    """The paper's rule: at most alpha of the rows break an applicable relation, in floats."""

    alpha: float = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class HardenedPolicy:
    """Integer arithmetic and every budget of the hardened gate."""

    rows_min: int = 200
    rows_max: int = 1 << 20
    margins: Margins = field(default_factory=Margins)
    acceptance: Acceptance = field(default_factory=Acceptance)


Policy = PaperPolicy | HardenedPolicy

BUILT_IN: dict[str, Policy] = {"paper": PaperPolicy(), "hardened": HardenedPolicy()}


def read_policy(name: str) -> Policy:
    """Return a built-in policy by its name, or read one from a TOML file."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    path = Path(name)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise RulesFileError(
            f"policy {name!r} is neither one of {', '.join(BUILT_IN)} nor a readable file"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RulesFileError(f"policy file {path} is not TOML: {error}") from None
    kind = document.pop("kind", None)
    if kind not in BUILT_IN:
        raise RulesFileError(f"policy file {path}: kind is {kind!r}; it must be paper or hardened")
    return _checked(kind, document, path)


def write_policy(policy: Policy, path: Path) -> None:
    """Write a policy with every budget named, for a person to edit."""
    with atomically(path) as draft:
        draft.write_text(tomli_w.dumps(_document(policy)), encoding="utf-8")


def policy_hash(policy: Policy) -> str:
    """Return the content hash that binds a proof to its policy."""
    return hashlib.sha256(rfc8785.dumps(_document(policy))).hexdigest()  # type: ignore[arg-type]


def _document(policy: Policy) -> dict[str, object]:
    kind = "paper" if isinstance(policy, PaperPolicy) else "hardened"
    return {"kind": kind, **TypeAdapter(type(policy)).dump_python(policy, mode="json")}


def _checked(kind: str, document: dict[str, object], path: Path) -> Policy:
    built_in = BUILT_IN[kind]
    _refuse_unknown(document, built_in, str(path))
    adapter: TypeAdapter[Policy] = TypeAdapter(type(built_in))
    try:
        # As JSON, because strict validation of Python objects takes no table for a dataclass.
        policy = adapter.validate_json(json.dumps(document, default=str), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RulesFileError(f"policy file {path}: {where}: {first['msg']}") from None
    _refuse_impossible(policy, path)
    return policy


def _refuse_unknown(document: dict[str, object], example: object, where: str) -> None:
    known = {item.name: getattr(example, item.name) for item in fields(example)}  # type: ignore[arg-type]
    for key, value in document.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            raise RulesFileError(f"policy file {where}: unknown key {key!r}; {hint}")
        if isinstance(value, dict) and is_dataclass(known[key]):
            _refuse_unknown(value, known[key], f"{where}: [{key}]")


def _refuse_impossible(policy: Policy, path: Path) -> None:
    """Refuse numbers that no budget can be: a misprint must not open the gate."""
    tables: list[object] = [policy]
    if isinstance(policy, HardenedPolicy):
        tables += [policy.margins, policy.acceptance]
        if not 1 <= policy.rows_min <= policy.rows_max:
            raise RulesFileError(
                f"policy file {path}: rows_min is {policy.rows_min} and rows_max "
                f"{policy.rows_max}; a batch has 1 <= rows_min <= rows_max rows"
            )
    for table in tables:
        for item in fields(table):  # type: ignore[arg-type]
            value = getattr(table, item.name)
            if isinstance(value, int | float) and not (math.isfinite(value) and value >= 0):
                raise RulesFileError(
                    f"policy file {path}: {item.name} is {value}; a budget is finite and not "
                    "negative"
                )
    alpha = policy.alpha if isinstance(policy, PaperPolicy) else policy.margins.alpha
    if not alpha < 1:
        raise RulesFileError(f"policy file {path}: alpha is {alpha}; it is a share of rows below 1")
