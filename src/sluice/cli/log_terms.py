"""What a federation's log says about age and sharing, as commands print it."""

from sluice.attestation.log import Ledger
from sluice.cli.console import out

__all__ = ["print_log_terms"]


def print_log_terms(ledger: Ledger) -> None:
    """Print the terms that say how much a batch shows, how old it may be, and which groups vote."""
    if ledger.terms.history:
        out.print("The federation accepts batches of any age (--history).")
    if ledger.opened.statistic is not None:
        out.print(ledger.opened.statistic.sentence, markup=False)
    for sentence in ledger.groups.sentences if ledger.grouped else ():
        out.print(sentence, markup=False)
