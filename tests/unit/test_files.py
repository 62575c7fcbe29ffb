"""Files are written whole or not at all, secrets are private, and reading stays within limits."""

import os
import resource
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sluice.errors import RecordError, RulesFileError, SettingError
from sluice.files import (
    LOCK,
    MOST_LEVELS,
    MOST_TOML_LEVELS,
    alone_in,
    atomically,
    demand_room,
    parse_json,
    parse_toml,
    private_file,
    private_folder,
    public_folder,
    read_bounded,
    read_text,
)

UMASKS = (0o000, 0o022, 0o077, 0o177, 0o777)


class Crash(BaseException):
    """The machine stops here."""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def break_off(path: Path) -> None:
    with atomically(path) as draft:
        draft.write_bytes(b"new")
        raise RecordError("half way")


def write(path: Path, content: bytes, *, private: bool = False) -> None:
    with atomically(path, private=private) as draft:
        draft.write_bytes(content)


@pytest.fixture
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


with_umasks = pytest.mark.parametrize("umask", UMASKS, indirect=True, ids=oct)


def test_a_failure_half_way_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "kept.csv"
    path.write_bytes(b"old")
    with pytest.raises(RecordError, match="half way"):
        break_off(path)
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["kept.csv"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(SettingError, match="cannot write .*nowhere/page.html"),
        atomically(tmp_path / "nowhere" / "page.html"),
    ):
        pass


@with_umasks
def test_results_are_readable_by_others_as_the_umask_says(umask: int, tmp_path: Path) -> None:
    write(tmp_path / "page.html", b"page")
    assert mode(tmp_path / "page.html") == (0o666 & ~umask) | 0o600


@with_umasks
def test_a_private_file_is_for_its_owner_from_the_first_byte_on(umask: int, tmp_path: Path) -> None:
    with atomically(tmp_path / "secret.key", private=True) as draft:
        assert mode(draft) == 0o600
        draft.write_bytes(b"secret")
        assert mode(draft) == 0o600
    assert mode(tmp_path / "secret.key") == 0o600


def test_a_writer_that_replaces_the_draft_does_not_publish_a_secret(tmp_path: Path) -> None:
    with atomically(tmp_path / "secret.key", private=True) as draft:
        other = tmp_path / "other"
        other.write_bytes(b"secret")
        other.chmod(0o666)
        other.replace(draft)
    assert mode(tmp_path / "secret.key") == 0o600


def test_a_public_file_does_not_open_an_existing_private_one_to_others_half_way(
    tmp_path: Path,
) -> None:
    with atomically(tmp_path / "page.html") as draft:
        assert mode(draft) == 0o600  # others see the file when it is whole


def test_threads_that_write_do_not_change_the_umask_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(_: int) -> int:
        raise AssertionError("the umask belongs to all threads")

    monkeypatch.setattr(os, "umask", changed)
    threads = [
        threading.Thread(target=write, args=(tmp_path / f"{at}.csv", b"rows")) for at in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(tmp_path.iterdir())) == 8


def recorded(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    """Record what reaches the disk, in order."""
    order: list[str] = []
    fsync, replace = os.fsync, os.replace

    def synced(handle: int) -> None:
        of = "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "draft"
        order.append(f"sync {of}")
        fsync(handle)

    def renamed(source: Path, target: Path) -> None:
        assert Path(source).parent == folder
        order.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    return order


@pytest.mark.parametrize("private", [False, True])
def test_a_file_is_on_disk_before_its_rename_and_the_rename_before_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, private: bool
) -> None:
    order = recorded(monkeypatch, tmp_path)
    write(tmp_path / "head.json", b"head", private=private)
    assert order == ["sync draft", "rename", "sync folder"]


@pytest.mark.parametrize("crash_at", range(6))
def test_a_crash_at_any_point_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash_at: int
) -> None:
    """Stop before and after each call that reaches the disk; the name holds one whole content."""
    path = tmp_path / "head.json"
    write(path, b"old")
    calls = iter(range(100))

    def crashing(call: Callable[..., None]) -> Callable[..., None]:
        def step(*arguments: object) -> None:
            if next(calls) == crash_at:
                raise Crash
            call(*arguments)
            if next(calls) == crash_at:
                raise Crash

        return step

    monkeypatch.setattr(os, "fsync", crashing(os.fsync))
    monkeypatch.setattr(os, "replace", crashing(os.replace))
    with pytest.raises(Crash):
        write(path, b"new")
    # Calls 0 and 1 are the draft's, 2 and 3 the rename's, 4 and 5 the folder's.
    assert path.read_bytes() == (b"old" if crash_at < 3 else b"new")
    assert [found.name for found in tmp_path.iterdir()] == ["head.json"]


def test_a_disk_that_cannot_store_the_rename_is_not_a_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def failing(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(5, "Input/output error")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(SettingError, match="cannot write .*head.json: Input/output error"):
        write(tmp_path / "head.json", b"head")


@with_umasks
def test_a_folder_of_secrets_is_for_its_owner_alone(umask: int, tmp_path: Path) -> None:
    folder = private_folder(tmp_path / "plant" / "private")
    assert mode(folder) == 0o700
    assert mode(folder.parent) == (0o777 & ~umask) | 0o700
    folder.chmod(0o755)
    assert mode(private_folder(folder)) == 0o700


@with_umasks
def test_a_public_folder_can_be_used_by_its_owner(umask: int, tmp_path: Path) -> None:
    folder = public_folder(tmp_path / "a" / "b")
    assert {mode(folder), mode(folder.parent)} == {(0o777 & ~umask) | 0o700}


@with_umasks
def test_a_private_file_is_created_and_an_open_one_is_closed(umask: int, tmp_path: Path) -> None:
    path = private_file(tmp_path / "store.sqlite")
    assert (mode(path), path.read_bytes()) == (0o600, b"")
    path.write_bytes(b"rows")
    path.chmod(0o644)
    assert (mode(private_file(path)), path.read_bytes()) == (0o600, b"rows")


def test_a_folder_that_another_user_laid_out_gets_no_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laid = tmp_path / "private"
    laid.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: laid.stat().st_uid + 1)
    with pytest.raises(SettingError, match="belongs to another user"):
        private_folder(laid)


def own(monkeypatch: pytest.MonkeyPatch, user: int, owners: dict[Path, int]) -> None:
    """Let paths belong to users, and this process be run by one."""
    real = Path.stat

    def stat_of(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        found = list(real(path, follow_symlinks=follow_symlinks))
        found[stat.ST_UID] = owners.get(path, found[stat.ST_UID])
        return os.stat_result(found)

    monkeypatch.setattr(Path, "stat", stat_of)
    monkeypatch.setattr(os, "geteuid", lambda: user)


@pytest.mark.parametrize(
    ("user", "around", "owner"), [(0, 0, 0), (0, 7, 7), (0, 7, 0), (7, 7, 7), (7, 0, 7)]
)
def test_secrets_go_into_ones_own_folder_and_roots_into_that_of_the_owner_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, around: int, owner: int
) -> None:
    own(monkeypatch, user, {tmp_path: around, tmp_path / "private": owner})
    assert private_folder(tmp_path / "private").is_dir()


@pytest.mark.parametrize(
    ("user", "around", "owner"), [(0, 7, 8), (0, 0, 7), (7, 7, 8), (7, 8, 8), (7, 7, 0)]
)
def test_nobody_puts_secrets_into_a_folder_of_somebody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, around: int, owner: int
) -> None:
    own(monkeypatch, user, {tmp_path: around, tmp_path / "private": owner})
    with pytest.raises(SettingError, match=rf"belongs to another user \(number {owner}\)"):
        private_folder(tmp_path / "private")


def test_a_file_where_a_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "private").write_bytes(b"")
    for make in (private_folder, public_folder):
        with pytest.raises(SettingError, match="cannot make the folder .*private"):
            make(tmp_path / "private")


def test_a_file_that_never_ends_is_refused_at_its_limit() -> None:
    with pytest.raises(RulesFileError, match="rules file /dev/zero is too large: expected at most"):
        read_bounded(Path("/dev/zero"), "rules file", largest=1_000, error=RulesFileError)


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_bytes(b"x" * 1_000)
    assert len(read_bounded(path, "rules file", largest=1_000)) == 1_000


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "client.key"
    path.write_bytes(b"key")
    path.chmod(0o640)
    with pytest.raises(SettingError, match=r"can be read by others \(mode 0640\); run 'chmod 600"):
        read_bounded(path, "private key", largest=10, private=True)
    path.chmod(0o600)
    assert read_bounded(path, "private key", largest=10, private=True) == b"key"


def test_text_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plant.toml"
    path.write_bytes(b"a = '\xff'\r\n")
    with pytest.raises(SettingError, match="plant file .*plant.toml is not UTF-8 text"):
        read_text(path, "plant file", largest=100)
    path.write_bytes(b"a\r\nb\rc\n")
    assert read_text(path, "plant file", largest=100) == "a\nb\nc\n"


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '["]]]]",' * 100_000,
        '["\\"]",' * 100_000,
        "[[]," * 100_000,
    ],
    ids=["arrays", "objects", "closed", "brackets in strings", "escaped quotes", "closed inside"],
)
def test_deep_json_is_refused_before_it_is_parsed(text: str) -> None:
    with pytest.raises(
        RulesFileError, match=f"rules file x is nested too deeply: .* {MOST_LEVELS}"
    ):
        parse_json(text, "rules file x", error=RulesFileError)


def test_json_may_be_as_deep_as_the_limit() -> None:
    def nested(levels: int) -> str:
        return "[" * levels + "]" * levels

    assert parse_json(nested(MOST_LEVELS), "rules file x")
    with pytest.raises(RulesFileError, match="nested too deeply"):
        parse_json(nested(MOST_LEVELS + 1), "rules file x", error=RulesFileError)


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 100_000,
        "a = " + "{a=" * 100_000,
        "a." * 100_000 + "a = 1",
        "[" + "a." * 100_000 + "a]",
        '"a" . ' * 100_000 + "a = 1",
        'a = ["""x"""" ,' + "[" * 100_000,
        "a = ['''x'''' ," + "[" * 100_000,
        "a = ['it' ,'\\', # ]]]\n" + "[" * 100_000,
        "a = " + "[[]," * 100_000,
    ],
    ids=[
        *("arrays", "tables", "key", "header", "quoted key", "five quotes", "literal", "comment"),
        "closed inside",
    ],
)
def test_deep_toml_is_refused_before_it_is_parsed(text: str) -> None:
    with pytest.raises(SettingError, match=f"policy x is nested too deeply: .* {MOST_TOML_LEVELS}"):
        parse_toml(text, "policy x")


def test_a_million_empty_lists_are_refused_before_they_are_parsed() -> None:
    with pytest.raises(SettingError, match="rules x holds too many objects and arrays"):
        parse_json("[" + "[]," * 1_000_000 + "1]", "rules x")


def test_json_may_hold_as_many_lists_and_objects_as_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sluice.files.MOST_CONTAINERS", 4)
    assert parse_json('[[], {}, {"a": 1}]', "rules x") == [[], {}, {"a": 1}]
    with pytest.raises(SettingError, match="too many objects and arrays: expected at most 4, got"):
        parse_json('[[], {}, {"a": []}]', "rules x")


@pytest.mark.parametrize(
    "nested",
    [
        lambda levels: "a = " + "[" * levels + "]" * levels,
        lambda levels: "a = " + "{a = " * levels + "1" + "}" * levels,
        lambda levels: "a." * levels + "a = 1",
        lambda levels: "a = {" + "a." * levels + "a = 1}",
    ],
    ids=["arrays", "tables", "key", "key in a table"],
)
def test_toml_may_be_as_deep_as_the_limit(nested: Callable[[int], str]) -> None:
    assert parse_toml(nested(MOST_TOML_LEVELS), "policy x")
    with pytest.raises(SettingError, match=f"nested too deeply: .* {MOST_TOML_LEVELS}"):
        parse_toml(nested(MOST_TOML_LEVELS + 1), "policy x")


@pytest.mark.parametrize("number", ["9" * 5_000, "0x" + "F" * 5_000, "1" + "0" * 30])
def test_a_number_of_a_thousand_digits_is_refused(number: str) -> None:
    with pytest.raises(SettingError, match="policy x"):
        parse_toml(f"a = [{{b = {number}}}]", "policy x")


def test_brackets_and_dots_in_strings_do_not_nest() -> None:
    brackets = "[{" * 100
    assert parse_json(f'{{"a": "{brackets}"}}', "x") == {"a": brackets}
    text = f'a = "{brackets}"\nb = [{"1.5, " * 100}]\n"{"c." * 100}" = \'{brackets}\' # {brackets}'
    document = parse_toml(text, "x")
    assert document["a"] == brackets
    assert document["b"] == [1.5] * 100
    assert document["c." * 100] == brackets


# -- room and locks ---------------------------------------------------------------------------


def test_a_library_that_cannot_write_the_draft_is_no_bug(tmp_path: Path) -> None:
    def fail() -> None:
        with atomically(tmp_path / "table.parquet"):
            raise ValueError("parquet: underlying IO error: No space left (os error 28)")

    with pytest.raises(
        SettingError, match=r"cannot write .*table.parquet: No space left on device; free"
    ):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_another_error_of_the_writer_stays_what_it_is(tmp_path: Path) -> None:
    def fail() -> None:
        with atomically(tmp_path / "table.parquet"):
            raise ValueError("columns differ")

    with pytest.raises(ValueError, match="columns differ"):
        fail()


def test_room_is_asked_for_and_nothing_stays(tmp_path: Path) -> None:
    demand_room(tmp_path, 3 << 20)
    demand_room(tmp_path / "not yet there", 1)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_room_is_refused_and_nothing_stays(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, before[1]))
    try:
        with pytest.raises(SettingError, match="File too large; the command needs 3 MB there"):
            demand_room(tmp_path, 3 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_locked_until_the_work_ends(tmp_path: Path) -> None:
    with alone_in(tmp_path, "taken"):
        assert (tmp_path / LOCK).exists()
        with pytest.raises(SettingError, match="^taken$"), alone_in(tmp_path, "taken"):
            pass
        with pytest.raises(SettingError, match="^taken$"), alone_in(tmp_path, "taken"):
            pass  # the refused one has not removed the other's lock
    assert not (tmp_path / LOCK).exists()
    with alone_in(tmp_path, "taken", keep=True):
        pass
    assert (tmp_path / LOCK).exists()
    with alone_in(tmp_path, "taken"):
        pass


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
def test_a_lock_whose_file_was_removed_meanwhile_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, replaced: bool
) -> None:
    def late(handle: object, how: int) -> None:
        (tmp_path / LOCK).unlink()  # the process that held it ends just now
        if replaced:
            (tmp_path / LOCK).touch()

    monkeypatch.setattr("sluice.files.fcntl.flock", late)
    with pytest.raises(SettingError, match="^taken$"), alone_in(tmp_path, "taken"):
        pass
