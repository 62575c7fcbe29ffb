"""A line plant's template, and one of its varied sites."""

import pytest

from sluice.lab.plants import VariedSite, simulate, varied_site
from sluice.telemetry import Record
from sluice.template import Template, derive_template


@pytest.fixture(scope="session")
def line_reference() -> Record:
    return simulate("line", seed=50, days=7)


@pytest.fixture(scope="session")
def line_template(line_reference: Record) -> Template:
    return derive_template(line_reference)


@pytest.fixture(scope="session")
def line_site() -> VariedSite:
    return varied_site("line", 2, seed=3, days=7)
