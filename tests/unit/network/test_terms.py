"""The documents by which plants join are read up to a limit, and no further."""

from pathlib import Path

import pytest

from sluice.errors import DocumentError, SettingError
from sluice.network.terms import JoinRequest, read_document

LARGEST = 16 * 1024 * 1024


def test_a_file_beyond_the_limit_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    path.write_bytes(b" " * LARGEST)
    with pytest.raises(DocumentError, match="is not a valid join request"):
        read_document(JoinRequest, path)
    path.write_bytes(b" " * (LARGEST + 1))
    with pytest.raises(SettingError, match="expected at most 16,777,216 bytes"):
        read_document(JoinRequest, path)
