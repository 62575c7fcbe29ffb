"""The glossary's old words stay out of code, docs and pages (tests/banned_words.txt)."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests" / "banned_words.txt"
SUFFIXES = {
    ".py",
    ".rs",
    ".pyi",
    ".md",
    ".html",
    ".j2",
    ".js",
    ".css",
    ".toml",
    ".template",
    ".sh",
    ".yml",
}
EXEMPT = ("docs/adr/", "CHANGELOG.md")


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def pages() -> Iterator[Path]:
    for folder in ("src", "rust", "benchmarks", "tools", "docs", "examples", "deploy"):
        yield from (path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES)
    yield from ROOT.glob("*.md")
    yield ROOT / "Makefile"


def met(text: str) -> list[str]:
    """Return the banned words of a text, after the allowed spellings are taken out."""
    rules = lines_of(LIST.read_text(encoding="utf-8"))
    for allowed in (line.removeprefix("allow: ") for line in rules if line.startswith("allow: ")):
        text = text.replace(allowed.split(" -- ")[0], "")
    banned = "|".join(line for line in rules if not line.startswith("allow: "))
    return [found[0] for found in re.finditer(rf"(?<![\w-])({banned})(?![\w-])", text)]


def test_old_words_are_gone() -> None:
    found = {}
    for path in pages():
        name = str(path.relative_to(ROOT))
        if not name.startswith(EXEMPT):
            words = met(path.read_text(encoding="utf-8"))
            if words:
                found[name] = sorted(set(words))
    assert not found


def test_the_list_finds_what_it_bans() -> None:
    assert met("a liar at the door knocks anew") == ["liar", "door", "knocks", "anew"]
    assert met('result["liars"], liar_share and the indoor liaison') == []


def test_every_allowance_has_a_reason() -> None:
    for line in lines_of(LIST.read_text(encoding="utf-8")):
        if line.startswith("allow: "):
            assert re.fullmatch(r"allow: \S+ -- .{10,}", line), line
