"""`sluice demo` from the outside, and what README shows of it."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice.cli import main

from .conftest import Outcome

Run = Callable[..., Outcome]

README = Path(__file__).parents[3] / "README.md"
MODES = ["clean", "honest-only", "naive", "physics-aware", "gated"]
RECALL_SLACK = 0.02  # processors differ in the last digits, and fifteen rounds spread them
FIGURE = re.compile(r"\d+\.\d+")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the demonstration once; its report and output lie in the folder."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.raises(SystemExit) as stopped:
        main(["demo", "--fast", "--out", str(folder), "--quiet", "--keep-words"])
    assert stopped.value.code == 0
    return folder
