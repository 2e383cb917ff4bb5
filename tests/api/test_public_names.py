"""Which names are public, and how are they called? A change shows in public_names.json, beside this file."""

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import trueodds as to
from trueodds.calibrators import CALIBRATORS
from trueodds.diagrams import DIAGRAMS
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS

FILE = Path(__file__).with_name("public_names.json")
REGISTRIES = {"estimators": ESTIMATORS, "tests": TESTS, "calibrators": CALIBRATORS, "diagrams": DIAGRAMS}


def settings_of(method: Any) -> list[str]:
    """The settings that a method takes by keyword."""
    if hasattr(method, "accepts"):
        return sorted(method.accepts())
    return [name for name in inspect.signature(method).parameters if name != "self"]


def public_names() -> dict[str, Any]:
    """The names of the package with their signatures, and the methods of each family with their settings."""
    names = {name: getattr(to, name) for name in sorted(to.__all__) if not name.startswith("__")}
    families = {
        family: {name: settings_of(registry.load(name)) for name in registry.names()}
        for family, registry in REGISTRIES.items()
    }
    packages = {name: dir(value) for name, value in names.items() if inspect.ismodule(value)}
    signatures = {name: str(inspect.signature(value)) for name, value in names.items() if name not in packages}
    return {"trueodds": signatures, "packages": packages, **families}


def test_public_names_and_signatures_are_those_of_the_file() -> None:
    assert public_names() == json.loads(FILE.read_text()), f"if this is meant: python -m {__name__}"


USES = """
import trueodds as to
preds = to.Predictions([0, 1], [0.2, 0.7])
reveal_type(to.measure(preds, "ece"))
reveal_type(to.test(preds))
reveal_type(to.fit(preds, "platt"))
reveal_type(to.draw(preds, "reliability"))
reveal_type(to.audit(preds))
reveal_type(to.by_group(preds))
reveal_type(to.power(preds))
reveal_type(to.read("a.csv"))
reveal_type(to.read_answers("a.jsonl"))
reveal_type(to.tally(preds))
reveal_type(to.scorer("ece"))
reveal_type(to.ReliabilityDisplay)
reveal_type(to.InputError)
"""


def test_a_type_checker_knows_the_public_names(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(USES)
    words = [sys.executable, "-m", "mypy", "--no-incremental", "--follow-imports=silent", str(script)]
    run = subprocess.run(words, capture_output=True, text=True, check=False, cwd=Path(to.__file__).parents[1])
    revealed = [line for line in run.stdout.splitlines() if "Revealed type" in line]
    assert len(revealed) == USES.count("reveal_type"), run.stdout
    assert [line for line in revealed if '"Any"' in line] == []


@pytest.mark.parametrize("name", ["by_group", "read_answers", "ReliabilityDisplay"])
def test_tab_completes_public_names(name: str) -> None:
    assert name in dir(to)


if __name__ == "__main__":
    FILE.write_text(json.dumps(public_names(), indent=1) + "\n")


@pytest.mark.parametrize("family", ["estimators", "tests", "calibrators", "diagrams"])
def test_a_family_lists_its_classes_and_loads_each(family: str) -> None:
    package = getattr(to, family)
    assert dir(package) == sorted(dir(package))
    assert all(
        inspect.isclass(getattr(package, name)) for name in dir(package) if name[0].isupper() and not name.isupper()
    )
    assert not hasattr(package, "NoSuchMethod")


def test_an_estimator_is_found_under_its_own_name() -> None:
    assert to.estimators.ece is ESTIMATORS.load("ece") is to.estimators.BinnedError
