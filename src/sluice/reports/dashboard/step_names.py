"""The steps of the protocol in words that an operator reads."""

__all__ = ["plain"]

WORDS = {
    "1": "its registration was not accepted",
    "2": "its commitment was refused: another's, or of a time that was committed to before",
    "3": "its challenge does not fit",
    "4": "no proof came",
    "5.1": "its proof is no document of this protocol, or too large",
    "5.2": "its proof is not signed by it, or not for its accepted rules",
    "5.3": "its proof is for a commitment that the log does not have",
    "5.4": "its commitment was attested before by another proof",
    "5.5": "its proof is for another context",
    "5.6": "its proof is for another circuit",
    "5.7": "its proof has the wrong shape",
    "5.8": "its proof does not hold",
    "6": "no token came in time, or the update was not the pledged one",
    "7": "it has seen another log",
}


def plain(step: str) -> str:
    """Say what failed at a step; the reason in the plant's readings stays at the plant."""
    return WORDS.get(step, f"step {step} failed")
