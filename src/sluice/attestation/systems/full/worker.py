"""Makes one proof in a separate process: request on standard input, answer on standard output.

Run as a script, not as a module, so that it starts in milliseconds. It writes no file, because the
batch and its salt are secret. A chain is answered segment by segment; nothing of a finished segment
stays in this process.
"""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import IO

SEGMENT, PROVEN, REFUSED, UNUSABLE = b"s", b"p", b"r", b"u"
LENGTH = 8  # bytes before each field, big-endian
NICENESS = 5
"""Other work of the plant's machine goes first."""


def joined(fields: Sequence[bytes]) -> bytes:
    """Return fields as one request."""
    return b"".join(len(each).to_bytes(LENGTH, "big") + each for each in fields)


def split(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the fields of a request, or of an answer, as they come; a field cut short ends it."""
    while len(head := stream.read(LENGTH)) == LENGTH:
        size = int.from_bytes(head, "big")
        field = stream.read(size)
        if len(field) < size:
            return
        yield field


def answer(request: IO[bytes]) -> Iterator[bytes]:
    """Yield the fields of the answer: one for each segment of a chain, and a last one.

    The first byte of a field says what it is. The last one is the proof, what a chain begins with,
    or the reason why there is none.
    """
    from sluice import _attest  # noqa: PLC0415 - only the worker process needs the core

    fields = split(request)
    statement, budgets = next(fields), next(fields)
    planes = [next(fields) for _ in range(5)]
    rows = int.from_bytes(planes[0], "big")
    salt, context = next(fields), next(fields)
    log_rows = int.from_bytes(next(fields), "big")
    entropy, statistic, done = next(fields), next(fields) or None, list(fields)
    try:
        circuit = _attest.FullCircuit(statement)
        batch = _attest.FullBatch(rows, *planes[1:])
        planes.clear()
        if not log_rows:
            yield PROVEN + circuit.prove(budgets, batch, salt, context, statistic)
            return
        head = circuit.prove_segments(
            budgets, batch, salt, context, entropy, log_rows, done, _tell, statistic
        )
        yield PROVEN + head
    except _attest.RefusedBatchError as refused:
        yield REFUSED + str(refused).encode()
    except ValueError as unusable:
        yield UNUSABLE + str(unusable).encode()


def _tell(record: bytes) -> None:
    _write(SEGMENT + record)


def _write(field: bytes) -> None:
    sys.stdout.buffer.write(joined([field]))
    sys.stdout.buffer.flush()


def main() -> None:
    """Answer one request."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not on every system

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would contain readings
    with contextlib.suppress(AttributeError, OSError):
        os.nice(NICENESS)
    for field in answer(sys.stdin.buffer):
        _write(field)


if __name__ == "__main__":
    main()
