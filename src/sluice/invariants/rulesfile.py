"""Rules files: JSON with a schema version and a hash over the canonical form (RFC 8785).

An edited file is refused until `seal_rules` updates the hash, so no edit remains unnoticed.
"""

import hashlib
import json
from pathlib import Path

import rfc8785
from pydantic import TypeAdapter, ValidationError

from sluice.errors import RulesFileError
from sluice.files import atomically, parse_json, read_text
from sluice.invariants.ruleset import RuleSet, untied_channels

__all__ = [
    "LARGEST_RULES",
    "dump_rules",
    "load_rules",
    "parse_rules",
    "rules_hash",
    "save_rules",
    "seal_rules",
]

SCHEMA = 1
LARGEST_RULES = 4 << 20
"""Bytes of the largest rules file."""
_ADAPTER = TypeAdapter(RuleSet)


def rules_hash(rules: RuleSet) -> str:
    """Return the content hash that names these rules in every later step."""
    return _hash(_document(rules))


def save_rules(rules: RuleSet, path: str | Path) -> str:
    """Write sealed rules and return their hash."""
    path = Path(path)
    text = dump_rules(rules)
    with atomically(path) as draft:
        draft.write_text(text + "\n", encoding="utf-8")
    return rules_hash(rules)


def dump_rules(rules: RuleSet) -> str:
    """Return sealed rules as the text of a rules file."""
    document = _document(rules)
    document["hash"] = _hash(document)
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)


def load_rules(path: str | Path, *, sealed: bool = True, provisional: bool = False) -> RuleSet:
    """Read a rules file; with `sealed`, one that was edited after it was sealed is refused.

    Provisional rules are refused, except where only a watch or a reader gets them.
    """
    path = Path(path)
    text = read_text(path, "rules file", largest=LARGEST_RULES, error=RulesFileError)
    return parse_rules(text, name=str(path), sealed=sealed, provisional=provisional)


def parse_rules(text: str, *, name: str, sealed: bool = True, provisional: bool = False) -> RuleSet:
    """Read rules from JSON text; errors refer to it by `name`."""
    document, stated = _parsed(text, name)
    try:
        content = _hash(document)
    except rfc8785.CanonicalizationError as error:
        raise RulesFileError(f"rules file {name} has no canonical form: {error}") from None
    if sealed and stated != content:
        raise RulesFileError(
            f"rules file {name} was edited after it was sealed (hash {str(stated)[:12]}..., "
            f"content {content[:12]}...); check the change with 'sluice rules diff' and "
            "run 'sluice rules seal'"
        )
    rules = _rules(document, name)
    if rules.provisional and not provisional:
        raise RulesFileError(
            f"rules file {name} is provisional: its limits are those of other plants, so it serves "
            "'sluice watch' only, and neither the gate nor a proof; mine this plant's own rules"
        )
    return rules


def seal_rules(path: str | Path) -> str:
    """Check an edited file and write it again with the hash of its content."""
    path = Path(path)
    return save_rules(load_rules(path, sealed=False), path)


def _document(rules: RuleSet) -> dict[str, object]:
    """Return the content of a file; parts that only newer rules have are left out where empty.

    So rules of the first release keep their hash.
    """
    document = {"schema": SCHEMA, **_ADAPTER.dump_python(rules, mode="json")}
    if rules.untied is None:
        del document["untied"]
    facts = document["clean"]
    for part in ("switches", "blocks"):
        if facts and not facts[part]:
            del facts[part]
    return document


def _hash(document: dict[str, object]) -> str:
    return hashlib.sha256(rfc8785.dumps(document)).hexdigest()  # type: ignore[arg-type]


def _parsed(text: str, name: str) -> tuple[dict[str, object], object]:
    """Return the content of a file and the hash that it states."""
    document = parse_json(text, f"rules file {name}", error=RulesFileError)
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        schema = document.get("schema") if isinstance(document, dict) else type(document).__name__
        raise RulesFileError(
            f"rules file {name} is not of schema {SCHEMA} (got {schema!r}); mine the rules again"
        )
    stated = document.pop("hash", None)
    return document, stated


def _rules(document: dict[str, object], name: str) -> RuleSet:
    content = {key: value for key, value in document.items() if key != "schema"}
    try:
        rules = _ADAPTER.validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RulesFileError(f"rules file {name}: {where}: {first['msg']}") from None
    if _document(rules) != document:
        raise RulesFileError(
            f"rules file {name} has keys that are not part of a rule; remove them or mine it again"
        )
    if rules.untied is not None and rules.untied != untied_channels(rules):
        raise RulesFileError(
            f"rules file {name} lists {_listed(rules.untied)} as untied; no rule besides a bound "
            f"or a rate reads {_listed(untied_channels(rules))}; correct the list or mine it again"
        )
    return rules


def _listed(channels: tuple[str, ...]) -> str:
    return ", ".join(map(repr, channels)) or "no channel"
