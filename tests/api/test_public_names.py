"""Which names are public, and how are they called? A change shows in public_names.json, beside this file."""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import trueodds as to
from trueodds.calibrators import CALIBRATORS, class_name
from trueodds.core.registry import Registry
from trueodds.core.settings import Settings
from trueodds.diagrams import DIAGRAMS
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS

STUB = "# Written by `python -m tests.api.test_public_names`, for type checkers and editors."
FILE = Path(__file__).with_name("public_names.json")
REGISTRIES = {"estimators": ESTIMATORS, "tests": TESTS, "calibrators": CALIBRATORS, "diagrams": DIAGRAMS}


def settings_of(method: Any) -> list[str]:
    """The settings that a method takes by keyword."""
    if "setting_names" in dir(method) and method.setting_names.__func__ is not Settings.setting_names.__func__:
        return sorted(method.setting_names())
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
    metrics = {name: str(inspect.signature(getattr(to.metrics, name))) for name in packages["metrics"]}
    return {"trueodds": signatures, "packages": packages, "metrics": metrics, **families}


def method_stub(package: str, registry: Registry) -> str:
    """The names of the methods' package as a stub: the registry, each class, and each method's name for its class."""
    classes = {attribute: registry.load(name) for attribute, name in registry.classes().items()}
    imports = sorted({f"from {one.__module__} import {one.__name__} as {one.__name__}" for one in classes.values()})
    aliases = [f"{name} = {one.__name__}" for name, one in sorted(classes.items()) if name != one.__name__]
    constants = [f"{name}: str" for name, value in vars(package_of(package)).items() if isinstance(value, str)]
    constants += [
        f"{name}: tuple[str, ...]" for name, value in vars(package_of(package)).items() if type(value) is tuple
    ]
    constants = [line for line in constants if not line.startswith("_")]
    lines = [STUB, "from trueodds.core.registry import Registry as Registry", *imports]
    return "\n".join([*lines, "", f"{package.upper()}: Registry", *constants, *aliases]) + "\n"


def calibrator_stub() -> str:
    """The scikit-learn classes of the calibrators as a stub, with their settings."""
    lines = [
        STUB,
        "from typing import Any",
        "",
        "from trueodds.calibrators.fitted_calibrator import FittedCalibrator as FittedCalibrator",
        "from trueodds.calibrators.fitted_calibrator import load as load",
        "from trueodds.calibrators.fitting import fit as fit",
        "from trueodds.calibrators.recalibrated_classifier import RecalibratedClassifier as RecalibratedClassifier",
        "from trueodds.calibrators.sklearn import Calibrator as Calibrator",
        "from trueodds.core.registry import Registry",
        "",
        "CALIBRATORS: Registry",
        "",
        "def class_name(method: str) -> str: ...",
    ]
    for method in CALIBRATORS.names():
        name = class_name(method)
        settings = list(inspect.signature(getattr(to.calibrators, name)).parameters)
        arguments = ", ".join(["self", "*", *(f"{setting}: Any = ..." for setting in settings)])
        lines += ["", f"class {name}(Calibrator):", f"    def __init__({arguments}) -> None: ..."]
    lines += ["", *(f"{method} = {class_name(method)}" for method in CALIBRATORS.names())]
    return "\n".join(lines) + "\n"


def stubs() -> dict[Path, str]:
    """The stub of each package of methods, formatted, by its path."""
    texts = {name: method_stub(name, REGISTRIES[name]) for name in ("estimators", "tests", "diagrams")}
    texts["calibrators"] = calibrator_stub()
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "stub.pyi", "-"]
    formatted = {
        name: subprocess.run(command, input=text, capture_output=True, text=True, check=True, encoding="utf-8").stdout
        for name, text in texts.items()
    }
    return {Path(package_of(name).__file__ or "").with_suffix(".pyi"): text for name, text in formatted.items()}


def package_of(name: str) -> ModuleType:
    """The package of a family of methods."""
    package: ModuleType = getattr(to, name)
    return package


def test_public_names_and_signatures_are_those_of_the_file() -> None:
    assert public_names() == json.loads(FILE.read_text(encoding="utf-8")), f"if this is meant: python -m {__name__}"


def test_type_checkers_and_editors_see_every_method() -> None:
    for path, text in stubs().items():
        assert path.read_text(encoding="utf-8") == text, f"if this is meant: python -m {__name__}"


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
reveal_type(to.ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.7]))
reveal_type(to.calibrators.Temperature(min_prob=1e-6))
reveal_type(to.calibrators.Temperature().fit([[0.2, 0.8]], [1]))
reveal_type(to.estimators.ece)
reveal_type(to.tests.cox)
reveal_type(to.estimators.skce)
reveal_type(to.diagrams.Reliability)
reveal_type(to.audit(preds).verdict)
reveal_type(to.compare(preds, preds, "brier"))
reveal_type(to.load("calibrator.json"))
reveal_type(to.metrics.expected_calibration_error([0, 1], [0.2, 0.7], norm="l2"))
reveal_type(to.InputError)
"""


@pytest.mark.slow
def test_a_type_checker_knows_the_public_names(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(USES, encoding="utf-8")
    words = [sys.executable, "-m", "mypy", "--no-incremental", "--cache-dir", os.devnull, "--follow-imports=silent"]
    run = subprocess.run(
        [*words, str(script)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(to.__file__).parents[1],
        encoding="utf-8",
    )
    revealed = [line for line in run.stdout.splitlines() if "Revealed type" in line]
    assert len(revealed) == USES.count("reveal_type"), run.stdout
    assert [line for line in revealed if '"Any"' in line] == []


@pytest.mark.parametrize("name", ["by_group", "read_answers", "ReliabilityDisplay", "__version__", "tests"])
def test_tab_completes_public_names(name: str) -> None:
    assert name in dir(to)


@pytest.mark.parametrize("family", REGISTRIES)
def test_tab_completes_every_method_of_a_family(family: str) -> None:
    assert set(REGISTRIES[family].names()) <= set(dir(getattr(to, family)))


if __name__ == "__main__":
    FILE.write_text(json.dumps(public_names(), indent=1) + "\n", encoding="utf-8")
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("family", ["estimators", "tests", "calibrators", "diagrams"])
def test_a_family_lists_its_classes_and_loads_each(family: str) -> None:
    package = getattr(to, family)
    assert dir(package) == sorted(dir(package))
    assert all(
        inspect.isclass(getattr(package, name)) for name in dir(package) if name[0].isupper() and not name.isupper()
    )
    assert not hasattr(package, "NoSuchMethod")


def test_every_method_is_found_under_its_own_name_even_if_its_module_has_that_name() -> None:
    for family in ("estimators", "tests", "diagrams"):
        for name in REGISTRIES[family].names():
            assert getattr(getattr(to, family), name) is REGISTRIES[family].load(name)
    for name in CALIBRATORS.names():
        assert getattr(to.calibrators, name) is getattr(to.calibrators, class_name(name))
    assert to.estimators.ece is to.estimators.BinnedError
