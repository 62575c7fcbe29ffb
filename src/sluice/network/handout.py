"""The model as a coordinator hands it out: the round after which it was, and the model's bytes."""

__all__ = ["ROUND_BYTES", "handout", "read_handout"]

ROUND_BYTES = 8


def handout(model: bytes, *, round_: int) -> bytes:
    """Return a model with the round after which it is handed out."""
    return round_.to_bytes(ROUND_BYTES, "big") + model


def read_handout(raw: bytes) -> tuple[int, bytes]:
    """Return the round and the model; who reads the model refuses what is no model."""
    return int.from_bytes(raw[:ROUND_BYTES], "big"), raw[ROUND_BYTES:]
