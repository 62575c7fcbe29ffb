"""Policies: what a coordinator requires of batches and rules, every budget by name, as TOML.

    kind = "hardened"            # or "paper", which has alpha alone
    rows_min = 200
    rows_max = 1048576

    [margins]
    alpha = 0.01
    ...

    [acceptance]
    rules_min = 3
    ...

    [acceptance.reasons]         # why a channel has no rule, or a rule was removed
    LIT601 = "decommissioned in May"

`sluice rules policy --out policy.toml` writes the built-in policy in full, for editing.
"""

import difflib
import hashlib
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import final

import rfc8785
import tomli_w
from pydantic import TypeAdapter, ValidationError

from sluice.admission.acceptance import NOTHING_DECLARED, ROWS_MAX, ROWS_MIN, Acceptance, objections
from sluice.admission.judging import judge_floats, judge_integers, rows_within
from sluice.admission.measured import MeasuredBatch
from sluice.admission.objections import Objection
from sluice.admission.verdict import Verdict
from sluice.errors import RecordError, RulesFileError, SettingError
from sluice.files import atomically, parse_toml, read_text
from sluice.invariants import Budgets, Encoding, Margins, RuleSet, budgets_for, encode

__all__ = [
    "BUILT_IN",
    "HardenedPolicy",
    "PaperPolicy",
    "Policy",
    "accept",
    "default_policy",
    "parse_policy",
    "policy_hash",
    "policy_text",
    "read_policy",
    "write_policy",
]

LARGEST = 1 << 20  # bytes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PaperPolicy:
    """The paper's policy: at most alpha of the rows break an applicable relation, in floats."""

    alpha: float = 0.01

    @property
    def kind(self) -> str:
        """Its name in a policy file."""
        return "paper"

    @property
    def integers(self) -> bool:
        """Whether the integer evaluator decides, which a proof of every row requires."""
        return False

    @property
    def rows_min(self) -> int:
        """The shortest batch."""
        return 1

    @property
    def rows_max(self) -> int:
        """The longest batch: the paper sets no limit."""
        return sys.maxsize

    def least_rows(self, rules: RuleSet) -> int:  # noqa: ARG002
        """Return the shortest batch of a plant: the paper sets no limit."""
        return self.rows_min

    def encoding(self, rules: RuleSet) -> None:
        """Return nothing: floats need no encoding."""

    def budgets(self, rules: RuleSet, *, rows: int) -> Budgets:  # noqa: ARG002
        """Return the budgets: the paper limits violating rows alone."""
        return Budgets.of_rows(rows_within(self.alpha, rows), rows=rows)

    def judge(self, measured: MeasuredBatch) -> Verdict:
        """Judge a measured batch."""
        return judge_floats(measured, alpha=self.alpha, policy=self)

    def objections(
        self,
        rules: RuleSet,  # noqa: ARG002
        *,
        last: RuleSet | None = None,  # noqa: ARG002
        declared: Mapping[str, str] = NOTHING_DECLARED,  # noqa: ARG002
    ) -> tuple[Objection, ...]:
        """Return nothing: the paper requires nothing of rules."""
        return ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HardenedPolicy:
    """Integer arithmetic and every budget of the hardened gate."""

    rows_min: int = ROWS_MIN
    rows_max: int = ROWS_MAX
    margins: Margins = field(default_factory=Margins)
    acceptance: Acceptance = field(default_factory=Acceptance)

    @property
    def kind(self) -> str:
        """Its name in a policy file."""
        return "hardened"

    @property
    def integers(self) -> bool:
        """Whether the integer evaluator decides, which a proof of every row requires."""
        return True

    @property
    def alpha(self) -> float:
        """The share of rows that may violate."""
        return self.margins.alpha

    def least_rows(self, rules: RuleSet) -> int:
        """Return the shortest batch of a plant: in a shorter one, some of its rules say nothing."""
        return max(self.rows_min, rules.rows_needed)

    def encoding(self, rules: RuleSet) -> Encoding:
        """Return the integers of the rules."""
        return encode(rules)

    def budgets(self, rules: RuleSet, *, rows: int) -> Budgets:
        """Return the budgets of a batch of `rows` rows; rules of a paper profile are refused."""
        if rules.clean is None:
            raise SettingError(
                f"the rules of {rules.plant!r} are of profile {rules.profile.value!r}, which "
                "states nothing about clean batches; use --policy paper or mine with "
                "--profile hardened"
            )
        return budgets_for(rules, rules.clean, self.margins, rows=rows)

    def judge(self, measured: MeasuredBatch) -> Verdict:
        """Judge a measured batch."""
        batch = measured.record
        budgets = self.budgets(measured.rules, rows=len(batch))
        least = self.least_rows(measured.rules)
        if not least <= len(batch) <= self.rows_max:
            named = "the policy and its rules take" if least > self.rows_min else "the policy takes"
            raise RecordError(
                f"batch {batch.name!r} has {len(batch)} rows; {named} {least} to {self.rows_max}"
            )
        return judge_integers(measured, budgets, alpha=self.alpha, policy=self)

    def objections(
        self,
        rules: RuleSet,
        *,
        last: RuleSet | None = None,
        declared: Mapping[str, str] = NOTHING_DECLARED,
    ) -> tuple[Objection, ...]:
        """Return the objections to rules."""
        return objections(
            rules,
            self.acceptance,
            last=last,
            declared=declared,
            margins=self.margins,
            rows_min=self.rows_min,
            rows_max=self.rows_max,
        )


Policy = PaperPolicy | HardenedPolicy

REPLACED = {
    "anchor_extra": "'anchor_points', a share of the windows of a rule",
    "repeat_rows": "'repeat_points', a share of the rows",
    "segments_extra": "'segment_points', a share of the rows",
    "severe_rows": "'severe_share', a share of the rows",
}
"""Keys of policy files of the first release, and what states the same as a share."""

BUILT_IN: dict[str, Policy] = {"paper": PaperPolicy(), "hardened": HardenedPolicy()}


def default_policy(rules: RuleSet) -> Policy:
    """Return the hardened policy where the rules support it, else the paper's."""
    return HardenedPolicy() if rules.clean else PaperPolicy()


def accept(
    rules: RuleSet,
    policy: Policy,
    *,
    last: RuleSet | None = None,
    declared: Mapping[str, str] = NOTHING_DECLARED,
) -> tuple[Objection, ...]:
    """Return the objections to a plant's rules; empty if they are accepted.

    `last` are the rules accepted before: rules that are looser than those get objections.
    `declared` are the approver's reasons why a channel needs no rule, beside those of the policy.
    The text of a rules file is no reason.
    """
    return policy.objections(rules, last=last, declared=declared)


def read_policy(name: str) -> Policy:
    """Return a built-in policy by its name, or read one from a TOML file."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    path = Path(name)
    if path.is_dir() or not path.exists():
        raise RulesFileError(
            f"policy {name!r} is neither one of {', '.join(BUILT_IN)} nor a readable file"
        )
    text = read_text(path, "policy file", largest=LARGEST, error=RulesFileError)
    return parse_policy(text, name=name)


def parse_policy(text: str, *, name: str) -> Policy:
    """Read a policy from TOML text; errors refer to it by `name`."""
    document = parse_toml(text, f"policy file {name}", error=RulesFileError)
    kind = document.pop("kind", None)
    if kind not in tuple(BUILT_IN):  # a list has no hash
        raise RulesFileError(f"policy file {name}: kind is {kind!r}; it must be paper or hardened")
    return _checked(kind, document, name)


def write_policy(policy: Policy, path: str | Path) -> None:
    """Write a policy with every budget named, for a person to edit."""
    path = Path(path)
    with atomically(path) as draft:
        draft.write_text(policy_text(policy), encoding="utf-8")


def policy_text(policy: Policy) -> str:
    """Return a policy as the text of a policy file."""
    return tomli_w.dumps(_document(policy))


def policy_hash(policy: Policy) -> str:
    """Return the content hash that binds a proof to its policy."""
    return hashlib.sha256(rfc8785.dumps(_document(policy))).hexdigest()  # type: ignore[arg-type]


def _document(policy: Policy) -> dict[str, object]:
    return {"kind": policy.kind, **TypeAdapter(type(policy)).dump_python(policy, mode="json")}


def _checked(kind: str, document: dict[str, object], name: str) -> Policy:
    built_in = BUILT_IN[kind]
    _refuse_unknown(document, built_in, name)
    adapter: TypeAdapter[Policy] = TypeAdapter(type(built_in))
    try:
        # As JSON, because strict validation of Python objects accepts no dict for a dataclass.
        policy = adapter.validate_json(json.dumps(document, default=str), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RulesFileError(f"policy file {name}: {where}: {first['msg']}") from None
    _refuse_impossible(policy, name)
    return policy


def _refuse_unknown(document: dict[str, object], example: object, where: str) -> None:
    known = {item.name: getattr(example, item.name) for item in fields(example)}  # type: ignore[arg-type]
    for key, value in document.items():
        if key in REPLACED:
            raise RulesFileError(
                f"policy file {where}: {key!r}, a number of its own for batches of any length, was "
                f"replaced by {REPLACED[key]}; remove {key!r}, or state the share"
            )
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            raise RulesFileError(f"policy file {where}: unknown key {key!r}; {hint}")
        if isinstance(value, dict) and is_dataclass(known[key]):
            _refuse_unknown(value, known[key], f"{where}: [{key}]")


def _refuse_impossible(policy: Policy, name: str) -> None:
    """Refuse impossible numbers: a misprint must not open the gate."""
    tables: list[object] = [policy]
    if isinstance(policy, HardenedPolicy):
        tables += [policy.margins, policy.acceptance]
        if not 1 <= policy.rows_min <= policy.rows_max:
            raise RulesFileError(
                f"policy file {name}: rows_min is {policy.rows_min} and rows_max "
                f"{policy.rows_max}; a batch has 1 <= rows_min <= rows_max rows"
            )
    for table in tables:
        for item in fields(table):  # type: ignore[arg-type]
            value = getattr(table, item.name)
            if isinstance(value, int | float) and not (math.isfinite(value) and value >= 0):
                raise RulesFileError(
                    f"policy file {name}: {item.name} is {value}; a budget is finite and not "
                    "negative"
                )
    if not policy.alpha < 1:
        raise RulesFileError(
            f"policy file {name}: alpha is {policy.alpha}; it is a share of rows below 1"
        )
