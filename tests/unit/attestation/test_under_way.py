"""A proof in segments that is stopped, and gone on with."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from io import BytesIO
from pathlib import Path

import pytest

from sluice.attestation.systems.full import Full, worker
from sluice.attestation.systems.full import system as full_system
from sluice.attestation.systems.full.chaining import Cut
from sluice.attestation.systems.full.proving import HEADER, ProvingState, open_state, run_worker
from sluice.attestation.systems.registry import find_system, resumable
from sluice.attestation.systems.system import Circuit
from sluice.errors import ProverError, RefusedError, SettingError
from sluice.telemetry.record import Record

from .full_plant import Wiring, clean_batch, policy_of, rules_of, with_cell

SALT, CONTEXT = b"s" * 32, b"c" * 32
ROWS, LOG_ROWS = 300, 8
BOUND, LARGEST = b"b" * 32, 1 << 20
PLANT = Wiring()
Progress = Callable[[int, int], None]


class StoppedError(Exception):
    """The power is cut."""


@cache
def circuit() -> Circuit:
    return Full().circuit(rules_of(PLANT), policy_of(PLANT), rows_max=ROWS)


@cache
def batch() -> Record:
    return clean_batch(ROWS, 1)


@pytest.fixture(autouse=True)
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_system, "cut_of", lambda *_, **__: Cut(log_rows=LOG_ROWS))


def prove(path: Path, progress: Progress | None = None, context: bytes = CONTEXT) -> bytes:
    system = Full(under_way=path, progress=progress)
    return system.prove(batch(), circuit(), salt=SALT, context=context)


def verify(proof: bytes) -> None:
    commitment = Full().commit(batch(), circuit(), salt=SALT)
    Full().verify(circuit(), commitment=commitment, rows=ROWS, context=CONTEXT, proof=proof)


def stop_after(rows: int) -> Progress:
    def progress(done: int, _rows: int) -> None:
        if done >= rows:
            raise StoppedError

    return progress


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A proof that was stopped after its first segment."""
    path = tmp_path / "commit.proving"
    with pytest.raises(StoppedError):
        prove(path, stop_after(256))
    return path


def test_a_stopped_proof_goes_on(stopped: Path) -> None:
    assert stopped.stat().st_mode & 0o777 == 0o600
    kept, told = stopped.read_bytes(), []
    proof = prove(stopped, lambda done, rows: told.append((done, rows)))
    verify(proof)
    assert told == [(256, ROWS), (ROWS, ROWS)]
    # The first segment is the one that was kept, and a whole file gives the same proof again.
    whole = stopped.read_bytes()
    assert whole[: len(kept)] == kept
    first = kept[HEADER + 8 + 32 + 64 + 24 :]
    assert first in proof
    assert prove(stopped) == proof
    assert stopped.read_bytes() == whole


def test_a_record_that_was_cut_short_is_dropped(stopped: Path) -> None:
    whole = stopped.read_bytes()
    for content in (whole[:-1], whole + b"\0" * 5, whole[:-1] + bytes([whole[-1] ^ 1])):
        stopped.write_bytes(content)
        verify(prove(stopped))


def test_every_new_proof_has_other_masks(tmp_path: Path) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    one, other = (prove(path) for path in paths)
    seeds = {path.read_bytes()[HEADER - 32 : HEADER] for path in paths}
    assert len(seeds) == 2
    assert one[24:48] != other[24:48]


def test_a_file_of_another_proof_is_refused(stopped: Path) -> None:
    kept = stopped.read_bytes()
    with pytest.raises(SettingError, match="begun for another batch"):
        prove(stopped, context=b"d" * 32)
    with pytest.raises(SettingError, match="begun for another batch"):
        Full(under_way=stopped).prove(batch(), circuit(), salt=b"t" * 32, context=CONTEXT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(full_system, "cut_of", lambda *_, **__: Cut(log_rows=LOG_ROWS + 1))
        with pytest.raises(SettingError, match="begun for another batch"):
            prove(stopped)
    stopped.write_bytes(b"x" + kept[1:])
    with pytest.raises(SettingError, match="begun for another batch"):
        prove(stopped)
    assert stopped.read_bytes()[1:] == kept[1:]


def test_segments_of_other_masks_are_refused(stopped: Path) -> None:
    """The records say which trace comes next, and with another seed it is another one."""
    content = bytearray(stopped.read_bytes())
    content[HEADER - 1] ^= 1
    stopped.write_bytes(content)
    with pytest.raises(SettingError, match="proven of another trace; remove .*commit.proving"):
        prove(stopped)


def test_a_file_that_others_can_read_is_refused(stopped: Path) -> None:
    stopped.chmod(0o640)
    with pytest.raises(SettingError, match="can be read by others \\(mode 0640\\)"):
        prove(stopped)


def test_a_link_is_not_followed(stopped: Path) -> None:
    link = stopped.with_name("link")
    link.symlink_to(stopped)
    with pytest.raises(SettingError, match="cannot be opened"):
        prove(link)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(LARGEST + 1))
    path.chmod(0o600)
    with (
        pytest.raises(SettingError, match="larger than any"),
        open_state(path, BOUND, largest=LARGEST),
    ):
        pass


def test_two_processes_do_not_prove_one_batch(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with (
        open_state(path, BOUND, largest=LARGEST),
        pytest.raises(SettingError, match="another process is proving"),
        open_state(path, BOUND, largest=LARGEST),
    ):
        pass


def test_a_seed_is_kept_before_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with open_state(path, BOUND, largest=LARGEST) as begun:
        assert path.read_bytes()[HEADER - 32 :] == begun.seed
    with open_state(path, BOUND, largest=LARGEST) as again:
        assert again.seed == begun.seed
        again.add(b"record")
    with open_state(path, BOUND, largest=LARGEST) as third:
        assert third.records == [b"record"]


def test_a_file_may_be_as_large_as_a_proof_under_way(tmp_path: Path) -> None:
    path = tmp_path / "commit.proving"
    with open_state(path, BOUND, largest=LARGEST) as begun:
        begun.add(b"record")
    size = path.stat().st_size
    with open_state(path, BOUND, largest=size) as again:
        assert again.records == [b"record"]
    with (
        pytest.raises(SettingError, match="larger than any proof under way"),
        open_state(path, BOUND, largest=size - 1),
    ):
        pass


def test_a_refused_batch_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "commit.proving"
    lying = with_cell(batch(), 40, "L", 9.0)
    with pytest.raises(RefusedError, match="does not satisfy its circuit"):
        Full(under_way=path).prove(lying, circuit(), salt=SALT, context=CONTEXT)
    assert not path.exists()


def test_without_a_file_nothing_is_kept() -> None:
    with open_state(None, BOUND, largest=LARGEST) as one:
        one.add(b"record")
        assert one.file is None
    assert repr(one).count("b'") == 0


def test_a_killed_prover_is_gone_on_with(tmp_path: Path) -> None:
    """The whole command's process is killed after its first segment, as by a power cut."""
    path = tmp_path / "commit.proving"
    script = tmp_path / "killed.py"
    script.write_text(
        "import os, signal, sys\n"
        "from tests.unit.attestation import test_under_way as told\n"
        "told.full_system.cut_of = lambda *_, **__: told.Cut(log_rows=told.LOG_ROWS)\n"
        "def progress(done, rows):\n"
        "    if done >= 256: os.kill(os.getpid(), signal.SIGKILL)\n"
        "told.prove(told.Path(sys.argv[1]), progress)\n"
    )
    root = Path(__file__).parents[3]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (
        str(root), os.environ.get("PYTHONPATH"))))}  # fmt: skip
    command = [sys.executable, str(script), str(path)]
    done = subprocess.run(command, env=environment, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    verify(prove(path))


def test_a_prover_that_hangs_goes_on_with_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second worker is given the segments of the first."""
    script = tmp_path / "worker.py"
    script.write_text(
        "import os, sys, time\n"
        "requested = sys.stdin.buffer.read()\n"
        "if 'RAYON_NUM_THREADS' in os.environ:\n"
        "    found = b'p' + (b'1' if requested.endswith(b'record') else b'0')\n"
        "    sys.stdout.buffer.write(len(found).to_bytes(8, 'big') + found)\n"
        "else:\n"
        "    sys.stdout.buffer.write((7).to_bytes(8, 'big') + b'srecord')\n"
        "    sys.stdout.buffer.flush()\n"
        "    time.sleep(60)\n"
    )
    monkeypatch.setattr(worker, "__file__", str(script))
    monkeypatch.delenv("RAYON_NUM_THREADS", raising=False)
    state, told = ProvingState(seed=b""), []
    answer = run_worker(
        [b"fields"], state, patience_s=5.0, segment_done=lambda: told.append(len(state.records))
    )
    assert (answer, state.records, told) == (b"p1", [b"record"], [1])


def test_a_prover_lets_other_work_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "worker.py"
    script.write_text(
        "import importlib.util, os\n"
        f"spec = importlib.util.spec_from_file_location('worker', {worker.__file__!r})\n"
        "worker = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(worker)\n"
        "def answer(request):\n"
        "    request.read()\n"
        "    yield b'p%d' % os.getpriority(os.PRIO_PROCESS, 0)\n"
        "worker.answer = answer\n"
        "worker.main()\n"
    )
    monkeypatch.setattr(worker, "__file__", str(script))
    answer = run_worker(
        [b"fields"], ProvingState(seed=b""), patience_s=60, segment_done=lambda: None
    )
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    assert answer == b"p%d" % min(19, ours + 5)


def test_a_worker_that_ends_early_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "worker.py"
    script.write_text("import sys; sys.stdout.buffer.write((9).to_bytes(8, 'big') + b'p')")
    monkeypatch.setattr(worker, "__file__", str(script))
    with pytest.raises(ProverError, match="ended with code 0"):
        run_worker(
            [b"x" * 1_000_000], ProvingState(seed=b""), patience_s=60, segment_done=lambda: None
        )


def test_fields_are_read_one_by_one() -> None:
    fields = [b"", b"one", b"x" * 300]
    stream = worker.joined(fields)
    assert list(worker.split(BytesIO(stream))) == fields
    assert list(worker.split(BytesIO(stream[:-1]))) == fields[:2]


def test_only_full_proves_in_segments(tmp_path: Path) -> None:
    unsafe = find_system("unsafe", reveal_rows=True)
    assert resumable(unsafe, tmp_path / "state") is unsafe
    assert resumable(Full(), tmp_path / "state") == Full(under_way=tmp_path / "state")
