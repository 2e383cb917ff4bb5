"""Does a registry name its members without loading them, and refuse what it does not know?"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

from tests.problem.refused import refused
from trueodds.core.registry import Registry, listed, near, settings_of


@dataclass(frozen=True)
class Plain:
    """A member whose settings are its fields."""

    size: int = 3


HERE = Registry("shape", {"plain": f"{__name__}:Plain", "gone": "trueodds.no_such_module:Nothing"})


def test_names_load_no_member() -> None:
    assert HERE.names() == ("plain", "gone")


def test_listing_the_estimators_loads_no_module_of_theirs() -> None:
    code = (
        "import sys; from trueodds.estimators import ESTIMATORS; ESTIMATORS.names();"
        "print([m for m in sys.modules if m.startswith('trueodds.estimators.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_member_is_made_from_its_settings() -> None:
    assert HERE.make("plain", {"size": 5}) == Plain(5)
    assert settings_of(Plain) == ("size",)


def test_an_unknown_member_or_setting_is_refused_with_the_near_ones() -> None:
    with refused("TO201", "'plane'", fix="plain"):
        HERE.load("plane")
    with refused("TO202", "'sice'", fix="size"):
        HERE.make("plain", {"sice": 5})


def test_near_names_come_first_else_all_are_listed() -> None:
    assert near("confidnce", ["confidence", "positive"]) == "Did you mean confidence?"
    assert near("zzz", ["b", "a"]) == "Known: a, b."


def test_the_words_of_other_libraries_are_known_where_ours_is_among_the_names():
    assert near("quantile", ["equal-mass", "uniform"]) == "Did you mean equal-mass?"
    assert near("Sigmoid", ["platt", "beta"]) == "Did you mean platt?"
    assert near("sigmoid", ["uniform"]) == "Known: uniform."


def test_of_many_names_the_first_are_listed_and_the_others_counted() -> None:
    names = [f"name_{i}" for i in range(1000)]
    said = listed(names)
    assert said.startswith("Known: name_0, name_1, ")
    assert len(said) < 240
    shown = said.count("name_")
    assert said.endswith(f" and {1000 - shown} more.")
    assert listed(["x" * 500]) == f"Known: {'x' * 500}."
