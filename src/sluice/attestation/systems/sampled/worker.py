"""Makes keys in a separate process: a statement on standard input, the keys on standard output.

Run as a script, not as a module, so that it starts in milliseconds. The process that waits for it
can be interrupted, which the Rust core cannot. The numbers with which a proof could be forged exist
in this process only, and it writes no file.
"""

import contextlib
import sys

LENGTH = 8  # bytes before the proving key, big-endian


def split(answer: bytes) -> tuple[bytes, bytes]:
    """Return the proving and the verifying key of an answer."""
    size = int.from_bytes(answer[:LENGTH], "big")
    return answer[LENGTH : LENGTH + size], answer[LENGTH + size :]


def main() -> None:
    """Answer one request."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not on every system

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would contain the numbers
    from sluice import _attest  # noqa: PLC0415 - only the worker process needs the core

    proving, verifying = _attest.SampledCircuit(sys.stdin.buffer.read()).make_keys()
    sys.stdout.buffer.write(len(proving).to_bytes(LENGTH, "big") + proving + verifying)


if __name__ == "__main__":
    main()
