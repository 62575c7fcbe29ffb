"""What a record shows to have changed in a plant, for the commands that say it."""

from sluice.cli.console import out
from sluice.invariants import Cause

__all__ = ["cause_payloads", "show_causes"]


def cause_payloads(found: tuple[Cause, ...]) -> list[dict[str, object]]:
    """Return the causes of drift as `--json` prints them."""
    return [
        {
            "kind": cause.kind.value,
            "subject": cause.subject,
            "size": cause.size,
            "unit": cause.unit,
            "since_row": cause.since_row,
            "since": cause.since,
            "sentence": cause.sentence,
        }
        for cause in found
    ]


def show_causes(found: tuple[Cause, ...]) -> None:
    """Print what may have changed in the plant; nothing if no change is certain."""
    if not found:
        return
    out.print("\n[bold]What may have changed in the plant[/bold]")
    for cause in found:
        out.print(f"  {cause.sentence}", markup=False)
