"""The filter's process does not search the disk for a missing module in every call."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from sluice.network.coordinator import filter_process

from .conftest import Consortium


class Searches:
    """Counts the searches for modules, as Python makes them for each failing import."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - Python's signature
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        self.names.append(name)
        return None


def test_calls_of_the_filter_do_not_search_for_a_module_that_is_not_installed(
    consortium: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sniffio", sys)  # so that it is taken out again at the end
    monkeypatch.delitem(sys.modules, "sniffio")
    served: list[str] = []

    def serve(*_: object, **__: object) -> None:
        searches = Searches()
        monkeypatch.setattr(sys, "meta_path", [searches, *sys.meta_path])
        with suppress(ImportError):
            import_module("sniffio")  # as httpcore does in every call
        served.extend(searches.names)

    monkeypatch.setattr("uvicorn.run", serve)
    filter_process.main(consortium.site.folder)
    assert "sniffio" not in served
