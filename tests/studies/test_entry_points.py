"""Is every study found by its name? The entry points of the project file are the table; each runs a function."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path

import pytest

from trueodds.cli.study import ENTRY_POINT_GROUP, declared_studies, installed_studies

PROJECT = Path(__file__).parents[2] / "studies" / "pyproject.toml"
DECLARED: dict[str, str] = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["entry-points"][
    ENTRY_POINT_GROUP
]


def test_what_is_installed_is_what_the_project_file_declares():
    """Where this fails after a study was added: `pip install --editable ./studies` reads the entry points again."""
    assert declared_studies() == DECLARED
    assert installed_studies().names() == tuple(sorted(DECLARED))


@pytest.mark.parametrize("name", DECLARED)
def test_a_study_is_the_function_of_its_name_and_has_its_row_on_the_page(name: str):
    run = installed_studies().load(name)
    assert run.__name__ == name
    assert run.__module__.startswith("trueodds_studies.")
    page = (PROJECT.parents[1] / "docs" / "studies.md").read_text(encoding="utf-8")
    assert f"| [`{name}`](" in page


@pytest.mark.parametrize("name", DECLARED)
def test_a_study_takes_its_chance_as_rng(name: str):
    settings = inspect.signature(installed_studies().load(name)).parameters
    assert "rng" in settings
    assert "seed" not in settings
