"""The command line as a function of its words, and files to try it on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.cli import rows
from tests.few_candidates import few_candidates
from trueodds.cli import main

Run = Callable[..., Result]


@pytest.fixture(autouse=True, scope="package")
def reduced_candidates() -> Iterator[None]:
    with few_candidates():
        yield


@pytest.fixture
def run() -> Run:
    def with_words(*words: object) -> Result:
        return CliRunner().invoke(main, [str(word) for word in words])

    return with_words


@pytest.fixture(scope="session")
def overconfident(tmp_path_factory: pytest.TempPathFactory) -> str:
    return rows.overconfident(tmp_path_factory.mktemp("over"))


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> str:
    return rows.calibrated(tmp_path_factory.mktemp("honest"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path
