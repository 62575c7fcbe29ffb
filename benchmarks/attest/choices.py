"""Other parameters of the `full` system, and how the Rust core is built with them.

A choice is a list of edits of the core's source. Its program is named by what it was built from, so
a program that is there need not be built again, and one of an older source is not used.
"""

import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CHOICES", "Choice", "build", "program", "source"]

ROOT = Path(__file__).parents[2]
CORE = "rust/attest-core"
FULL = f"{CORE}/src/full"
PARTS = (
    f"{CORE}/src",
    f"{CORE}/examples",
    f"{CORE}/Cargo.toml",
    "rust/attest-py",  # part of the same workspace
    ".cargo",
    "Cargo.toml",
    "Cargo.lock",
)


@dataclass(frozen=True, slots=True)
class Choice:
    """Other parameters: the edits (file, pattern, replacement) that set them."""

    name: str
    edits: tuple[tuple[str, str, str], ...] = ()
    flags: str | None = None  # RUSTFLAGS
    threads: int | None = None
    chains: bool = True  # whether it can prove chains: they bind one root of each segment


def const(name: str, value: int, *, file: str = "parameters.rs") -> tuple[str, str, str]:
    """Return the edit that gives a constant another value."""
    return f"{FULL}/{file}", rf"(pub const {name}: \w+ =) \d+;", rf"\1 {value};"


# Limits that share digits are multiples of 7 registers. Another radix rounds them up to its own.
ROUNDED = (
    (f"{FULL}/statement/checks.rs", r" && width\.is_multiple_of\(RADIX - 1\)", ""),
    (
        f"{FULL}/ladder.rs",
        r"let mut left = reach / \(RADIX - 1\);",
        "let mut left = reach.div_ceil(RADIX - 1);",
    ),
)
RADIX_4, RADIX_16 = ((const("RADIX", value, file="ladder.rs"), *ROUNDED) for value in (4, 16))
BLOWUP_16 = (const("LOG_BLOWUP", 4), const("QUERIES", 40))
QUINTIC = (
    (f"{FULL}/parameters.rs", "extension::CubicTrinomial", "extension::Binomial"),
    (f"{FULL}/parameters.rs", "CubicTrinomialExtensionField<F>", "BinomialExtensionField<F, 5>"),
    const("EXTENSION", 5),
)
KECCAK = (
    (f"{FULL}/parameters.rs", "use p3_blake3::Blake3;", "use p3_keccak::Keccak256Hash as Blake3;"),
    (f"{FULL}/parameters.rs", r"Blake3 \{\}", "Blake3"),
    (f"{FULL}/parameters.rs", r"hashing::hash_long\(", "Blake3.hash_many("),
    (f"{CORE}/Cargo.toml", r"\[dependencies\]", '[dependencies]\np3-keccak = "0.8"'),
)
ALONE = (  # the other proof system and its libraries take most of the time to compile
    (f"{CORE}/src/lib.rs", r"(?m)^pub mod (poseidon|sampled);\n", ""),
    (f"{CORE}/Cargo.toml", r"(?m)^ark-.*\n", ""),
)
CHOICES = (
    Choice("ours"),
    Choice("extension of degree 5", QUINTIC),
    Choice("Keccak for BLAKE3", KECCAK),
    Choice("folding by 2", (const("LOG_ARITY", 1),)),
    Choice("folding by 4", (const("LOG_ARITY", 2),)),
    Choice("folding by 16", (const("LOG_ARITY", 4),)),
    Choice("last polynomial of 8", (const("LOG_FINAL", 3),)),
    Choice("last polynomial of 64", (const("LOG_FINAL", 6),)),
    Choice("caps of 8 nodes", (const("LOG_CAP", 3),), chains=False),
    Choice("caps of 64 nodes", (const("LOG_CAP", 6),), chains=False),
    Choice("57 queries, 16 bits of work", (const("QUERIES", 57), const("QUERY_WORK", 16))),
    Choice("55 queries, 19 bits of work", (const("QUERIES", 55), const("QUERY_WORK", 19))),
    Choice("67 queries, no work", (const("QUERIES", 67), const("QUERY_WORK", 0))),
    Choice("blow-up 16, 40 queries", BLOWUP_16),
    Choice("radix 4", RADIX_4),
    Choice("no vector unit", flags="-C target-cpu=x86-64"),
    Choice("one thread", threads=1),
    Choice("radix 16, blow-up 16, 40 queries", (*RADIX_16, *BLOWUP_16)),
)


def source(choice: Choice) -> dict[str, str]:
    """Return every file of the core with other parameters, by its path."""
    folders = [ROOT / part for part in PARTS]
    paths = [path for folder in folders for path in (folder, *folder.rglob("*")) if path.is_file()]
    files = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}
    for name, old, new in (*ALONE, *choice.edits):
        files[name] = _edited(files[name], old, new)
    return files


def _edited(text: str, old: str, new: str) -> str:
    changed, count = re.subn(old, new, text)
    if not count:
        raise ValueError(f"the core's source has no match for {old!r}; update CHOICES")
    return changed


def program(choice: Choice, folder: Path) -> Path:
    """Return the path of a choice's program, which is named by what it is built from."""
    hasher = hashlib.sha256((choice.flags or "").encode())
    for name, text in sorted(source(choice).items()):
        hasher.update(name.encode() + b"\0" + text.encode() + b"\0")
    name = re.sub(r"\W+", "-", choice.name)
    return folder / f"{name}.{hasher.hexdigest()[:12]}"


def build(choice: Choice, folder: Path) -> None:
    """Build the core with other parameters, unless it is there."""
    made = program(choice, folder)
    if made.exists():
        return
    same = next(folder.glob(f"*{made.suffix}"), None)  # another choice, of the same source
    if same is not None:
        made.hardlink_to(same)
        return
    tree = folder / "tree"
    for part in PARTS:  # only folders are removed: cargo's `target` stays
        shutil.rmtree(tree / part, ignore_errors=True)
    for name, text in source(choice).items():  # new times, so that cargo builds what was restored
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    command = ["cargo", "build", "--release", "--quiet", "-p", "attest-core", "--example", "prove"]
    env = {**os.environ, **({"RUSTFLAGS": choice.flags} if choice.flags else {})}
    env["CARGO_TARGET_DIR"] = str(tree / "target")
    subprocess.run(command, cwd=tree, env=env, check=True)  # noqa: S603 - our own core
    partial = made.with_suffix(".partial")
    shutil.copy(tree / "target" / "release" / "examples" / "prove", partial)
    partial.rename(made)
