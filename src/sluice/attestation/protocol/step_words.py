"""The steps of the protocol in words that an operator reads."""

__all__ = ["step_in_words"]

WORDS = {
    "1": "its registration was not accepted",
    "2": "its commitment was refused: it is another plant's, its time was committed to before, or "
    "its statistic covers too little, is missing or was not signed off",
    "3": "its challenge does not match",
    "4": "it sent no proof",
    "5.1": "its proof is not a document of this protocol, or is too large",
    "5.2": "its proof is not signed by it, or is not for its accepted rules",
    "5.3": "its proof is for a commitment that is not in the log",
    "5.4": "its attestation has expired, or another proof or a later batch was attested",
    "5.5": "its proof is for another context",
    "5.6": "its proof is for another circuit",
    "5.6.1": "its statistic is not the one that it had committed to",
    "5.7": "its proof has the wrong shape",
    "5.8": "its proof does not verify",
    "6": "it sent no token or no update in time",
    "6.1": "it declined to train, or its token is not a signed document of this protocol",
    "6.2": "its token is for another round, model or batch",
    "6.3": "its update is not the one it had pledged",
    "6.4": "its update has another size, is not finite, or is out of scale",
    "6.5": "the updates of the round had no finite aggregate",
    "6.6": "too few plants took part in the round",
    "6.7": "its statistic is of other channels or lags, or holds sums that no readings give",
    "6.8": "its statistic is not of the number of rows that the log has for its batch",
    "6.9": "its batch has another statistic, in its commitment or in the model",
    "6.9.1": "its shares of the sums do not match its proof, or it sent none to the helper",
    "6.9.2": "another member of its group is missing or was refused, or the helper gave no sum",
    "7": "it has seen a different log",
}


def step_in_words(step: str) -> str:
    """Return what failed at a step in words; why it failed is known only at the plant."""
    return WORDS.get(step, f"step {step} failed")
