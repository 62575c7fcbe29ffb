"""`sluice attest challenge` and `sluice attest export`: commands for the sampled system only."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sluice.attestation.messages import (
    CHALLENGES,
    COMMITS,
    PROOFS,
    Challenge,
    Commit,
    context_of,
    draw_challenge,
    largest_proof_document,
)
from sluice.attestation.protocol import KeyFolder, Verifier
from sluice.attestation.systems.sampled import Sampled, SampledClaim, export, write_export
from sluice.cli.attest.proofs import open_keys, read_bounded
from sluice.cli.console import Json, emit, out
from sluice.cli.options import refuse_overwriting
from sluice.cli.paths import reads_file, reads_folder, writes_file, writes_folder
from sluice.errors import SettingError
from sluice.files import atomically

__all__ = [
    "ChallengePath",
    "challenge",
    "export_proof",
    "read_challenge",
]

ChallengePath = Annotated[
    Path | None,
    typer.Option(
        "--challenge",
        help="The coordinator's challenge (sampled only).",
        click_type=reads_file("a challenge"),
    ),
]


class ExportFormat(StrEnum):
    """The values of `--format`."""

    SNARKJS = "snarkjs"


def challenge(
    commit: Annotated[
        Path,
        typer.Argument(
            metavar="COMMIT", help="The commitment.", click_type=reads_file("a commitment")
        ),
    ],
    keys: Annotated[
        Path,
        typer.Option(
            "--keys",
            help="The folder written by 'attest setup'.",
            click_type=reads_folder("a key folder"),
        ),
    ],
    out_path: Annotated[
        Path, typer.Option("--out", help="The challenge to write.", click_type=writes_file())
    ],
    json: Json = False,
) -> None:
    """Draw a coordinator's nonce for a commitment; the nonce decides which rows are proven.

    Draw it after the commitment is on record, and only once: a plant that can request another draw
    can choose its rows.

    Example: [bold]sluice attest challenge commit.json --keys keys --out challenge.json[/bold]
    """
    folder = open_keys(keys)
    refuse_overwriting(out_path, commit)
    if out_path.exists():
        raise SettingError(
            f"{out_path} exists; a commitment is challenged only once: use the existing challenge"
        )
    signed = COMMITS.read(read_bounded(commit, COMMITS.largest))
    signed.verify(signed.content.key, step="2")
    drawn = draw_challenge(signed.content)
    claim = _claim(folder, signed.content, drawn)
    with atomically(out_path) as draft:
        draft.write_bytes(CHALLENGES.write(drawn))
    if json:
        emit({"nonce": drawn.nonce, "rows": list(claim.drawn)})
    else:
        out.print(
            f"{out_path}: nonce {drawn.nonce[:16]}... draws {len(claim.drawn)} of "
            f"{signed.content.rows:,} rows",
            markup=False,
        )


def export_proof(
    proof: Annotated[
        Path, typer.Argument(metavar="PROOF", help="The proof.", click_type=reads_file("a proof"))
    ],
    keys: Annotated[
        Path,
        typer.Option(
            "--keys",
            help="The folder written by 'attest setup'.",
            click_type=reads_folder("a key folder"),
        ),
    ],
    commit: Annotated[
        Path,
        typer.Option(
            "--commit", help="The commitment to the batch.", click_type=reads_file("a commitment")
        ),
    ],
    challenge: Annotated[
        Path,
        typer.Option(
            "--challenge", help="The coordinator's challenge.", click_type=reads_file("a challenge")
        ),
    ],
    out_path: Annotated[
        Path, typer.Option("--out", help="The folder to write.", click_type=writes_folder())
    ],
    format_: Annotated[
        ExportFormat, typer.Option("--format", help="The format of the exported files.")
    ] = ExportFormat.SNARKJS,
    json: Json = False,
) -> None:
    """Verify a sampled proof and write it for snarkjs: proof, public signals, verification key.

    Example: [bold]sluice attest export proof.json --keys keys --commit commit.json
    --challenge challenge.json --format snarkjs --out exported[/bold]
    """
    folder = open_keys(keys)
    system = _sampled(folder)
    raw = read_bounded(proof, largest_proof_document(system.largest_proof(folder.circuit)))
    raw_commit = read_bounded(commit, COMMITS.largest)
    raw_challenge = read_bounded(challenge, CHALLENGES.largest)
    verifier = Verifier(system=system, circuit=folder.circuit, pinned=folder.pinned)
    verifier.verify(raw, raw_commit, raw_challenge)
    content = PROOFS.read(raw, largest=len(raw)).content
    claim = _claim(folder, COMMITS.read(raw_commit).content, CHALLENGES.read(raw_challenge))
    written = write_export(export(content.proof, claim, system.verifying_key), out_path)
    if json:
        emit({"files": [str(path) for path in written], "format": format_.value})
    else:
        out.print(f"{out_path}: {', '.join(path.name for path in written)}", markup=False)


def read_challenge(folder: KeyFolder, path: Path | None) -> bytes | None:
    """Read the challenge; refuse a missing one that the system needs, or one that it does not."""
    if folder.system.challenged == (path is None):
        word = "needs" if path is None else "takes no"
        raise SettingError(f"system {folder.system.name!r} {word} --challenge")
    return None if path is None else read_bounded(path, CHALLENGES.largest)


def _claim(folder: KeyFolder, commit: Commit, drawn: Challenge) -> SampledClaim:
    system = _sampled(folder)
    context = context_of(commit, folder.circuit, drawn).digest()
    return system.claim(folder.circuit, bytes.fromhex(commit.commitment), commit.rows, context)


def _sampled(folder: KeyFolder) -> Sampled:
    if not isinstance(folder.system, Sampled):
        raise SettingError(
            f"{folder.path} is for system {folder.system.name!r}, which draws no rows; make keys "
            "with 'sluice attest setup --system sampled'"
        )
    return folder.system
