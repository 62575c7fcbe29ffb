"""Runs provers: a process for each proof, which can be stopped, and gone on with after a crash.

The file of a proof under way contains the seed of its masks and the segments that are proven. It is
as secret as the batch: with the masks, the proof would show the readings. docs/explanation/
full-proof.md says why going on with a proof does not use a mask twice.
"""

import contextlib
import fcntl
import hashlib
import os
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from sluice.attestation.systems.full import worker
from sluice.errors import ProverError, SettingError

__all__ = ["ProvingState", "open_state", "run_worker"]

MAGIC: Final = b"sluice-proving-2"
HASH: Final = 32
SEED: Final = 32
LENGTH: Final = 8
HEADER: Final = len(MAGIC) + HASH + SEED


@dataclass(slots=True, kw_only=True)
class ProvingState:
    """A proof under way: the seed of its masks, and the segments that are proven."""

    seed: bytes = field(repr=False)
    records: list[bytes] = field(default_factory=list, repr=False)
    file: IO[bytes] | None = None

    def add(self, record: bytes) -> None:
        """Keep a segment; it is on disk before the next one is begun."""
        self.records.append(record)
        if self.file is not None:
            self.file.write(_written(record))
            self.file.flush()
            os.fsync(self.file.fileno())


@contextlib.contextmanager
def open_state(path: Path | None, bound: bytes, *, largest: int) -> Iterator[ProvingState]:
    """Begin a proof, or go on with the one in this file.

    `bound` is the hash of everything that is proven. A file of another proof, and one that another
    process is using, is refused. A record that a crash cut short is dropped.
    """
    if path is None:
        yield ProvingState(seed=secrets.token_bytes(SEED))
        return
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise SettingError(f"{path} cannot be opened: {error.strerror}") from None
    with os.fdopen(file, "r+b") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SettingError(f"another process is proving with {path}; wait for it") from None
        yield _read_state(path, opened, bound, largest)


def _read_state(path: Path, opened: IO[bytes], bound: bytes, largest: int) -> ProvingState:
    status = os.fstat(opened.fileno())
    if status.st_mode & 0o077:
        raise SettingError(
            f"{path} can be read by others (mode {status.st_mode & 0o777:04o}), and it contains "
            "the masks of a proof; remove it and prove again"
        )
    if status.st_size > largest:
        raise SettingError(f"{path} is larger than any proof under way; remove it and prove again")
    content = opened.read()
    if len(content) < HEADER:  # new, or a crash came before the first segment was begun
        seed = secrets.token_bytes(SEED)
        opened.seek(0)
        opened.truncate()
        opened.write(MAGIC + bound + seed)
        opened.flush()
        os.fsync(opened.fileno())
        return ProvingState(seed=seed, file=opened)
    seed = content[HEADER - SEED : HEADER]
    if content[: HEADER - SEED] != MAGIC + bound:
        raise SettingError(
            f"{path} was begun for another batch, commitment, statistic or --memory; give the same "
            "ones, or remove it to start again"
        )
    records, at = [], HEADER
    while (record := _record_at(content, at)) is not None:
        records.append(record)
        at += LENGTH + HASH + len(record)
    opened.seek(at)
    opened.truncate()
    return ProvingState(seed=seed, records=records, file=opened)


def _written(record: bytes) -> bytes:
    return len(record).to_bytes(LENGTH, "big") + hashlib.sha256(record).digest() + record


def _record_at(content: bytes, at: int) -> bytes | None:
    size = int.from_bytes(content[at : at + LENGTH], "big")
    start = at + LENGTH + HASH
    record = content[start : start + size]
    whole = size > 0 and content[at : start + size] == _written(record)
    return record if whole else None


def run_worker(
    fields: Sequence[bytes],
    state: ProvingState,
    *,
    patience_s: float,
    segment_done: Callable[[], None],
) -> bytes:
    """Run a worker and return the last field of its answer; call `segment_done` after each segment.

    One that hangs is stopped, and tried once more with a single thread, after the last segment that
    it proved.
    """
    for threads in (None, 1):
        answer = _run_once((*fields, *state.records), state, patience_s, segment_done, threads)
        if answer is not None:
            return answer
    raise ProverError(f"the prover gave no proof within {patience_s:.0f} s, twice")


def _run_once(
    fields: Sequence[bytes],
    state: ProvingState,
    patience_s: float,
    segment_done: Callable[[], None],
    threads: int | None,
) -> bytes | None:
    """Return the last field of the answer, or None if the worker was stopped."""
    stopped = threading.Event()
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(  # noqa: S603 - our own interpreter and script
            [sys.executable, "-I", str(Path(worker.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | ({"RAYON_NUM_THREADS": str(threads)} if threads else {}),
        ) as process,
    ):

        def stop() -> None:
            stopped.set()
            process.kill()

        clock = threading.Timer(patience_s, stop)
        clock.start()
        try:
            last = _converse(process, fields, state, segment_done)
            code = process.wait()
        except BaseException:
            process.kill()
            raise
        finally:
            clock.cancel()
        if code == 0 and last is not None:
            return last
        if stopped.is_set():
            return None
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines()[-1:]
    why = " ".join(lines) or "no error output"
    raise ProverError(f"the prover ended with code {code} ({why})")


def _converse(
    process: subprocess.Popen[bytes],
    fields: Sequence[bytes],
    state: ProvingState,
    segment_done: Callable[[], None],
) -> bytes | None:
    assert process.stdin is not None
    assert process.stdout is not None
    # A worker that ended is reported by its code. Closing flushes, which breaks the pipe again.
    with contextlib.suppress(BrokenPipeError), process.stdin:
        for each in fields:
            process.stdin.write(worker.joined([each]))
    last = None
    for answer in worker.split(process.stdout):
        if answer[:1] == worker.SEGMENT:
            state.add(answer[1:])
            segment_done()
        else:
            last = answer
    return last
