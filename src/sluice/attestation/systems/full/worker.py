"""Makes one proof in a separate process: request on standard input, answer on standard output.

Run as a script, not as a module, so that it starts in milliseconds. It writes no file, because the
batch and its salt are secret.
"""

import contextlib
import sys
from collections.abc import Sequence

PROVEN, REFUSED, UNUSABLE = b"p", b"r", b"u"
LENGTH = 8  # bytes before each field, big-endian


def joined(fields: Sequence[bytes]) -> bytes:
    """Return fields as one request."""
    return b"".join(len(each).to_bytes(LENGTH, "big") + each for each in fields)


def split(request: bytes) -> list[bytes]:
    """Return the fields of a request."""
    fields, at = [], 0
    while at < len(request):
        size = int.from_bytes(request[at : at + LENGTH], "big")
        fields.append(request[at + LENGTH : at + LENGTH + size])
        at += LENGTH + size
    return fields


def answer(request: bytes) -> bytes:
    """Return the proof, or the reason why there is none."""
    from sluice import _attest  # noqa: PLC0415 - only the worker process needs the core

    fields = split(request)
    statement, budgets, rows, registers, codes, starts, flagged, salt, context = fields[:9]
    log_rows, frugal = (int.from_bytes(field, "big") for field in fields[9:11])
    statistic = fields[11] if len(fields) > 11 else None
    try:
        circuit = _attest.FullCircuit(statement)
        batch = _attest.FullBatch(int.from_bytes(rows, "big"), registers, codes, starts, flagged)
        return PROVEN + circuit.prove(
            budgets, batch, salt, context, statistic, log_rows or None, bool(frugal)
        )
    except _attest.RefusedBatchError as refused:
        return REFUSED + str(refused).encode()
    except ValueError as unusable:
        return UNUSABLE + str(unusable).encode()


def main() -> None:
    """Answer one request."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not on every system

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would contain readings
    sys.stdout.buffer.write(answer(sys.stdin.buffer.read()))


if __name__ == "__main__":
    main()
