"""Does the command line find the studies, which are a package of their own, and say so where they are not installed?"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest
from click.testing import CliRunner

from trueodds.cli import main
from trueodds.cli.study import ENTRY_POINT_GROUP, installed_studies
from trueodds.core.errors import InputError


def offering(monkeypatch: pytest.MonkeyPatch, **table: str) -> None:
    """Packages that offer these studies, and no others."""
    offered = importlib.metadata.EntryPoints(
        importlib.metadata.EntryPoint(name, where, ENTRY_POINT_GROUP) for name, where in table.items()
    )
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **params: offered.select(**params))


@pytest.mark.parametrize("words", ["study table1", "study table1 --quick --json", "study nonsense", "list studies"])
def test_where_no_study_is_installed_the_error_says_how_to_install_them(words, monkeypatch):
    offering(monkeypatch)
    ran = CliRunner().invoke(main, words.split())
    assert ran.exit_code == 2
    assert ran.stdout == ""
    assert ran.stderr.splitlines() == [
        "error TO804",
        "problem: The studies are a package of their own, trueodds-studies, which is not installed.",
        "got: no entry points of the group trueodds.studies",
        "fix: Run in a clone of trueodds: pip install ./studies",
        "more: trueodds explain TO804",
    ]


def test_the_error_is_one_line_with_its_code(monkeypatch):
    offering(monkeypatch)
    with pytest.raises(InputError) as refusal:
        installed_studies()
    assert refusal.value.code == "TO804"
    assert "\n" not in str(refusal.value)


def test_all_other_names_are_listed_where_no_study_is_installed(monkeypatch):
    with_studies = CliRunner().invoke(main, ["list"]).stdout.splitlines()
    offering(monkeypatch)
    ran = CliRunner().invoke(main, ["list"])
    assert ran.exit_code == 0
    assert ran.stdout.splitlines() == [line for line in with_studies if not line.startswith("studies ")]
    assert len(with_studies) == len(ran.stdout.splitlines()) + 1


def test_any_package_may_offer_studies_which_are_listed_in_the_order_of_their_names(monkeypatch):
    offering(monkeypatch, later="nowhere.at.all:later", earlier="nowhere.at.all:earlier")
    assert CliRunner().invoke(main, ["list", "studies"]).stdout.split() == ["earlier", "later"]


def test_an_unknown_study_names_the_near_ones(monkeypatch):
    ran = CliRunner().invoke(main, ["study", "tabel1"])
    assert ran.exit_code == 2
    assert ran.stderr.splitlines() == [
        "error TO201",
        "problem: Unknown study.",
        "got: 'tabel1'",
        "fix: Did you mean table1?",
        "more: trueodds explain TO201",
    ]


@pytest.mark.parametrize("words", [["--help"], ["study", "--help"], ["list"], ["list", "studies"]], ids=" ".join)
def test_naming_the_studies_loads_none(words):
    code = (
        "import contextlib, sys, trueodds.cli\n"
        f"with contextlib.suppress(SystemExit):\n    trueodds.cli.main({words!r})\n"
        "sys.exit('trueodds_studies' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
