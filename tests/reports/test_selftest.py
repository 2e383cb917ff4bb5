"""Is what the self-test compares with right and complete, and does each of its checks fail where it must?"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests import selftest
from trueodds.core.errors import InputError
from trueodds.selftest import installation, laws, levels, record, reference_numbers
from trueodds.selftest.outcomes import largest_deviation
from trueodds.selftest.reference_numbers import check_case, read_stored

ROOT = Path(__file__).parents[2]


def ignore_progress(_: float) -> None:
    """Show nothing."""


# What is stored


@pytest.mark.slow
@pytest.mark.reference
def test_the_stored_numbers_are_those_of_the_generator() -> None:
    made, stored = json.loads(selftest.format_lines(selftest.generate())), read_stored()
    without_versions = [re.sub(r"^(scikit-learn) [\d.]+$", r"\1", source) for source in made.pop("sources")]
    assert without_versions == [re.sub(r"^(scikit-learn) [\d.]+$", r"\1", source) for source in stored["sources"]]
    cases, known = made.pop("cases"), stored["cases"]
    assert [case | {"expected": []} for case in cases] == [case | {"expected": []} for case in known]
    for case, one in zip(cases, known, strict=True):
        # Sums of other versions of NumPy and scikit-learn may differ in the last digits.
        assert case["expected"] == pytest.approx(one["expected"], rel=1e-13, abs=1e-15), case["name"]
    assert made == {key: value for key, value in stored.items() if key in made}


def test_the_file_is_small_and_has_many_methods_with_a_source_each() -> None:
    assert selftest.FILE.stat().st_size <= selftest.MAX_BYTES
    stored = read_stored()
    assert len({(case["family"], case["method"]) for case in stored["cases"]}) >= 60
    assert all(stored["sources"][case["source"]] and case["expected"] for case in stored["cases"])


def test_each_claim_stands_in_the_documentation_and_its_tests_exist() -> None:
    stored = read_stored()
    functions = {
        file: set(re.findall(r"^ *(?:async )?def (test_\w+)", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE))
        for file in stored["files"]
    }
    assert [name for file, name in stored["tests"] if name not in functions[stored["files"][file]]] == []
    for page, claim, checks, tests in stored["claims"]:
        text = " ".join((ROOT / stored["pages"][page]).read_text(encoding="utf-8").split())
        is_method = checks.partition(":")[0] in ("estimators", "tests", "calibrators", "diagrams")
        assert (f"`{checks.partition(':')[2]}`" if is_method else claim) in text, claim
        assert tests, claim


def test_every_method_of_the_registries_is_a_claim() -> None:
    from trueodds.calibrators import CALIBRATORS
    from trueodds.diagrams import DIAGRAMS
    from trueodds.estimators import ESTIMATORS
    from trueodds.hypotests import TESTS

    families = {"estimators": ESTIMATORS, "tests": TESTS, "calibrators": CALIBRATORS, "diagrams": DIAGRAMS}
    methods = {f"{family}:{name}" for family, registry in families.items() for name in registry.names()}
    assert methods - {checks for _, _, checks, _ in read_stored()["claims"]} == set()


# Checks fail where they must


@pytest.mark.parametrize("position", range(0, 100, 9))
def test_a_value_that_is_off_by_twice_its_tolerance_fails(position: int) -> None:
    case = read_stored()["cases"][position]
    sources = read_stored()["sources"]
    check = check_case(case, sources)
    assert check.status == "passed", check.detail
    tolerance = case.get("rtol", 0) * abs(case["expected"][-1]) + case.get("atol", 0)
    moved = [*case["expected"][:-1], case["expected"][-1] + 2 * tolerance]
    assert check_case(case | {"expected": moved}, sources).status == "failed"


def test_a_missing_or_undefined_number_is_a_deviation() -> None:
    assert largest_deviation([1.0], [1.0, 2.0], 1e-9, 0.0) == (np.inf, "1 number", "2")
    assert largest_deviation([], [], 1e-9, 0.0)[0] == np.inf
    assert largest_deviation([float("nan")], [1.0], 1e-9, 0.0) == (np.inf, "nan", "1")
    assert largest_deviation([2.0], [2.0], 0.0, 0.0) == (0, "2", "2")
    # A statistic without a p-value, in both of two results.
    assert largest_deviation([1.0 + 1e-13, float("nan")], [1.0, float("nan")], 1e-9, 0.0)[0] < 1


def test_the_number_that_deviates_most_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert largest_deviation([1.0, 2.1, 3.5, 4.0], [1.0, 2.0, 3.0, 4.0], 0.0, 0.25)[1:] == ("number 3 of 4, 3.5", "3")
    case = next(case for case in read_stored()["cases"] if len(case["expected"]) > 2)
    n, moved = len(case["expected"]), [*case["expected"][:-1], case["expected"][-1] + 1.0]
    monkeypatch.setattr(reference_numbers, "evaluate_case", lambda _: moved)
    assert check_case(case, read_stored()["sources"]).detail.startswith(
        f"number {n} of {n}, {moved[-1]:.12g}, expected "
    )
    expected = [0.25, 0.5, 0.75]
    law = lambda _: iter([("calibrators", "platt", [0.25, 0.5, 0.7], expected)])
    (check,) = laws._check_law("law", law, laws.built_in_rows(2), False)
    assert check.detail == "platt is number 3 of 3, 0.7 instead of 0.75"


def test_a_method_that_raises_an_error_fails_and_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    case = read_stored()["cases"][0] | {"method": "no-such"}
    assert check_case(case, read_stored()["sources"]).status == "failed"

    def broken(*_: Any) -> Any:
        raise OSError("selftest.json is missing")

    monkeypatch.setattr(reference_numbers, "read_stored", broken)
    (check,) = record._guard("reference numbers", lambda: reference_numbers.check_reference_numbers(ignore_progress))
    assert (check.status, check.detail) == ("failed", "OSError: selftest.json is missing")


def installed(folder: Path, *, with_record: bool = True) -> Distribution:
    """A package of two modules with its list of hashes, as pip installs it."""
    package, info = folder / "trueodds", folder / "trueodds-0.1.0.dist-info"
    package.mkdir()
    info.mkdir()
    lines = ["trueodds-0.1.0.dist-info/RECORD,,"]
    for name in ("__init__", "ece"):
        (package / f"{name}.py").write_text(f'"""{name}"""\n', encoding="utf-8")
        digest = base64.urlsafe_b64encode(sha256((package / f"{name}.py").read_bytes()).digest()).rstrip(b"=").decode()
        lines.append(f"trueodds/{name}.py,sha256={digest},10")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: trueodds\nVersion: 0.1.0\n", encoding="utf-8")
    if with_record:
        (info / "RECORD").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return PathDistribution(info)


def test_hashes_find_a_change_a_loss_and_an_addition(tmp_path: Path) -> None:
    distribution, module = installed(tmp_path), tmp_path / "trueodds" / "ece.py"
    check = installation._check_files(distribution)
    assert (check.status, check.detail) == ("passed", "2 files have the SHA-256 hashes of RECORD")
    content = module.read_bytes()
    module.write_bytes(content.replace(b"ece", b"ecf"))
    check = installation._check_files(distribution)
    assert (check.status, check.detail) == ("failed", "trueodds/ece.py was changed")
    module.unlink()
    assert installation._check_files(distribution).detail == "trueodds/ece.py is missing"
    module.write_bytes(content)
    (tmp_path / "trueodds" / "other.py").write_text("", encoding="utf-8")
    check = installation._check_files(distribution)
    assert (check.status, check.detail) == ("failed", "trueodds/other.py does not belong to the package")


def test_without_a_record_nothing_is_called_passed() -> None:
    assert installation._check_files(None).status == "not checked"  # a clone, or an editable installation
    assert record.SelftestReport((installation._check_files(None),), (), {}).passed is False


def test_versions_are_compared_as_numbers() -> None:
    assert installation._version_numbers("1.10.0") > installation._version_numbers("1.9.2")
    assert installation._version_numbers("2.0.0+cpu") == (2, 0, 0)


# Levels, coverage, laws


@pytest.mark.slow
def test_a_test_without_level_and_one_without_power_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "EXACT_TESTS", {"spiegelhalter": {"null": "redraw"}})
    test = to.test
    for change in (lambda p: p / 4, lambda p: 1.0, lambda p: float("nan")):

        def changed(*args: Any, change: Any = change, **settings: Any) -> Any:
            verdict = test(*args, **settings)
            object.__setattr__(verdict, "pvalue", change(verdict.pvalue))
            return verdict

        monkeypatch.setattr(to, "test", changed)
        assert [check.status for check in levels.check_levels(ignore_progress)] == ["failed"]


@pytest.mark.slow
def test_intervals_that_are_too_short_or_too_long_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "TRUE_VALUES", {"calibration_in_the_large": -1 / 6})
    measure = to.measure
    for factor, status in ((1.0, "passed"), (0.6, "failed"), (1.5, "failed")):

        def scaled(*args: Any, factor: float = factor, **settings: Any) -> Any:
            estimate = measure(*args, **settings)
            for name in ("low", "high"):
                end = estimate.value + factor * (getattr(estimate.interval, name) - estimate.value)
                object.__setattr__(estimate.interval, name, end)
            return estimate

        monkeypatch.setattr(to, "measure", scaled)
        assert [check.status for check in levels.check_coverage(ignore_progress)] == [status]


def test_no_method_is_left_out_of_a_law_on_the_built_in_rows() -> None:
    counts = {
        k: [
            len(check.methods)
            for check in laws.check_laws(laws.built_in_rows(k), "", ignore_progress, are_built_in=True)
            if check.status == "passed"
        ]
        for k in (2, 3)
    }
    n_permuted = len(laws.ESTIMATORS) + len(laws.TESTS) + len(laws.CALIBRATORS)
    n_merged = 2 * (len(laws.TALLIED) + 1)
    assert counts[2] == [n_permuted, len(laws.COPIES), n_merged, len(laws.SCORES)]
    assert counts[3] == [n_permuted, len(laws.COPIES), n_merged, len(laws.ESTIMATORS) - 1]


@pytest.mark.parametrize("call", ["first", "second", "both"])
def test_a_method_that_refuses_rows_fails_on_built_in_ones_and_is_never_passed_on_others(
    monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    calls: dict[str, int] = {}
    measure = to.measure

    def refusing(preds: Any, name: str, **settings: Any) -> Any:
        calls[name] = calls.get(name, 0) + 1
        if name == "brier" and call in ("both", ("first", "second")[calls[name] - 1]):
            raise InputError("TO205", "Refused.", "rows", "Try others.")
        return measure(preds, name, **settings)

    monkeypatch.setattr(to, "measure", refusing)
    monkeypatch.setattr(laws, "ESTIMATORS", ("brier", "log_loss"))
    monkeypatch.setattr(laws, "CALIBRATORS", ())
    law, preds = laws._permuted_rows, laws.built_in_rows(2)
    (check,) = laws._check_law("order", law, preds, True)
    assert check.failed
    assert "brier: " in check.detail
    assert "[TO205] Refused." in check.detail
    calls.clear()
    first, *others = laws._check_law("order", law, preds, False)
    if call != "both":  # one of two results is missing
        assert (first.failed, others) == (True, [])
        return
    assert (first.status, "estimators:brier" in first.methods) == ("passed", False)
    (other,) = others
    assert (other.status, other.methods) == ("not checked", ("estimators:brier",))
    assert other.detail.startswith("not run: brier: [TO205] Refused.")


def test_an_undefined_result_is_not_called_equal() -> None:
    law = lambda _: iter([("estimators", "slope", [np.nan], [np.nan])])
    for are_built_in, status in ((True, "failed"), (False, "not checked")):
        (check,) = laws._check_law("law", law, laws.built_in_rows(2), are_built_in)
        assert (check.status, check.detail.endswith("undefined for these rows")) == (status, True)
    nothing = lambda _: iter(())
    assert [check.status for check in laws._check_law("law", nothing, laws.built_in_rows(2), True)] == ["failed"]


@pytest.mark.parametrize("kind", ["votes", "weights", "clusters", "multilabel", "confidence", "ties", "one row"])
def test_the_laws_hold_or_do_not_apply_to_rows_of_every_kind(kind: str) -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 60)
    y = rng.integers(0, 3, 60)
    preds = {
        "votes": lambda: to.Predictions(rng.multinomial(5, P), P),
        "weights": lambda: to.Predictions(y, P, weight=rng.random(60) + 0.1),
        "clusters": lambda: to.Predictions(y, P, cluster=np.arange(60) // 3),
        "multilabel": lambda: to.Predictions.from_multilabel((rng.random((60, 3)) < P).astype(int), P),
        "confidence": lambda: to.Predictions.from_confidence(P.max(axis=1), rng.integers(0, 2, 60)),
        "ties": lambda: to.Predictions(y, np.full((60, 3), 1 / 3)),
        "one row": lambda: to.Predictions([1], [[0.2, 0.5, 0.3]]),
    }[kind]()
    checks = list(laws.check_laws(preds, kind, ignore_progress))
    assert [f"{check.name}: {check.detail}" for check in checks if check.failed] == []
    assert len({check.name.partition(" (")[0] for check in checks}) == 4
    assert all(check.detail.startswith("not run: ") for check in checks if check.status == "not checked")


# Mutations of the source

RUN_SECTION = """
import sys, trueodds
from trueodds.selftest import record
assert trueodds.__file__.startswith(sys.argv[1]), trueodds.__file__
section = sys.argv[2]
checks = record._guard(section, lambda: record._run_section(section, lambda share: None, None, None))
print(*(check.name for check in checks if check.failed), sep=chr(10))
"""
MUTATIONS = [
    ("reference numbers", "binning/distance.py", "/ 2, lambda p, y: np.abs(p", "/ 2, lambda p, y: 1.01 * np.abs(p"),
    ("reference numbers", "tallies/softmax_likelihood.py", "sums[1:2], sums[2:3", "sums[1:2] + 0.01, sums[2:3"),
    ("coverage", "resampling/draws.py", "_multiplicities[:, start:stop]", "_multiplicities[:, start:stop] // 2 * 2"),
    ("laws", "tallies/tally.py", "cells=self.cells + other.cells", "cells=self.cells + self.cells"),
    ("reference numbers", "hypotests/debiased_l2.py", "pvalue=float(ndtr(-z))", "pvalue=float(2 * ndtr(-z))"),
]


def failed_checks(folder: Path, section: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", RUN_SECTION, str(folder), section],
        env={"PYTHONPATH": str(folder), "PATH": ""}, capture_output=True, text=True, check=False, encoding="utf-8",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split("\n")[:-1] if ran.stdout.strip() else []


@pytest.mark.slow
def test_five_broken_formulas_are_found(tmp_path: Path) -> None:
    package = tmp_path / "trueodds"
    shutil.copytree(ROOT / "src" / "trueodds", package)  # with the times of the files, so that compiled kernels serve
    for section, file, right, wrong in MUTATIONS:
        text = (package / file).read_text(encoding="utf-8")
        assert text.count(right) == 1, file
        (package / file).write_text(text.replace(right, wrong), encoding="utf-8")
        assert failed_checks(tmp_path, section) != [], file
        (package / file).write_text(text, encoding="utf-8")
    assert failed_checks(tmp_path, "laws") == []
