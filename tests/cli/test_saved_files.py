"""Do commands write, merge and recognize saved calibrators and tallies, and refuse copies and mixed orders?"""

from __future__ import annotations

import csv
import importlib
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run
from trueodds.calibrators.fitted_calibrator import load

NAMES = ["ant", "bee", "cat"]


def animals(path: Path, names: list[str], seed: int) -> Path:
    """300 rows with labels 0, 1, 2 for ant, bee, cat, and the columns in the order of `names`."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet([1, 2, 3], 300)
    y = (P.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["label", "site", *(f"p_{name}" for name in names)])
        columns = P[:, [NAMES.index(name) for name in names]].tolist()
        lines.writerows([int(c), "NS"[i % 2], *p] for i, (c, p) in enumerate(zip(y, columns, strict=True)))
    return path


@pytest.fixture
def first(folder: Path) -> Path:
    return animals(folder / "first.csv", NAMES, 1)


@pytest.fixture
def other(folder: Path) -> Path:
    return animals(folder / "other.csv", ["bee", "ant", "cat"], 2)


LISTED = ("--probs", "p_ant,p_bee,p_cat")


def fields(stderr: str) -> dict[str, str]:
    code, *rest = stderr.splitlines()
    return {"code": code.removeprefix("error ")} | dict(line.split(": ", 1) for line in rest)


def test_files_with_integer_labels_and_other_orders_are_refused_in_either_order(
    run: Run, first: Path, other: Path
) -> None:
    for files in ((first, other), (other, first)):
        done = run("measure", *files, "--estimator", "brier")
        assert (done.exit_code, fields(done.stderr)["code"]) == (2, "TO309")
        assert "--probs p_" in done.stderr
    orders = ((first, other), (other, first))
    results = {run("measure", *files, *LISTED, "--estimator", "brier").stdout.split()[1] for files in orders}
    assert len(results) == 1  # the bootstrap interval depends on the order of the rows


def test_tallies_of_other_orders_are_merged_only_if_the_columns_were_listed(
    run: Run, first: Path, other: Path, folder: Path
) -> None:
    a, b, c, total = (folder / f"{name}.tally.json" for name in ("a", "b", "c", "total"))
    assert run("tally", first, "--out", a).exit_code == 0
    assert run("tally", other, "--out", b).exit_code == 0
    done = run("merge", a, b, "--out", total)
    assert (done.exit_code, fields(done.stderr)["code"]) == (2, "TO401")
    assert "--probs p_a,p_b" in fields(done.stderr)["fix"]
    assert not total.exists()
    assert run("tally", other, *LISTED, "--out", c).exit_code == 0
    assert run("merge", a, c, "--out", total).exit_code == 0
    tallied = run("measure", total, "--estimator", "brier").stdout.split()[:2]
    assert tallied == run("measure", first, other, *LISTED, "--estimator", "brier").stdout.split()[:2]


def test_a_calibrator_is_applied_by_the_names_of_the_columns(run: Run, first: Path, other: Path, folder: Path) -> None:
    cal, by_name, listed = folder / "cal.json", folder / "by_name.csv", folder / "listed.csv"
    assert run("fit", first, "--method", "vector", "--out", cal).exit_code == 0
    assert run("apply", cal, other, "--out", by_name).exit_code == 0
    assert run("apply", cal, other, *LISTED, "--out", listed).exit_code == 0
    assert by_name.read_text() == listed.read_text()
    assert by_name.read_text().splitlines()[0] == "label,site,p_bee,p_ant,p_cat"


def test_classes_that_are_the_columns_in_another_order_are_refused(run: Run, other: Path) -> None:
    done = run("measure", other, "--classes", "ant,bee,cat")
    assert (done.exit_code, fields(done.stderr)["code"]) == (2, "TO113")
    assert "--probs p_ant,p_bee,p_cat" in fields(done.stderr)["fix"]


def test_a_copy_of_a_tally_is_refused(run: Run, first: Path, folder: Path) -> None:
    a, copy, total = (folder / f"{name}.tally.json" for name in ("a", "copy", "total"))
    run("tally", first, "--out", a)
    shutil.copy(a, copy)
    for words in (("merge", a, copy, "--out", total), ("audit", a, copy)):
        done = run(*words)
        assert (done.exit_code, fields(done.stderr)["code"]) == (2, "TO603")
        assert fields(done.stderr)["problem"].startswith("Two tallies have the same sums")
    assert not total.exists()


def test_an_onnx_file_is_a_graph(run: Run, first: Path, folder: Path) -> None:
    onnx = pytest.importorskip("onnx")
    cal = folder / "cal.onnx"
    assert run("fit", first, "--method", "temperature", "--out", cal).exit_code == 0
    assert [node.name for node in onnx.load(cal).graph.output] == ["calibrated"]
    done = run("apply", cal, first, "--out", folder / "x.csv")
    assert fields(done.stderr)["problem"] == "An ONNX graph is not read back."


def test_an_onnx_file_of_a_map_without_formula_is_refused(run: Run, first: Path, folder: Path) -> None:
    done = run("fit", first, "--method", "isotonic", "--out", folder / "cal.onnx")
    assert (done.exit_code, fields(done.stderr)["code"]) == (2, "TO524")
    assert not (folder / "cal.onnx").exists()


def test_an_onnx_file_needs_the_library(run: Run, first: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("trueodds.cli.fit"), "find_spec", lambda _: None)
    done = run("fit", first, "--method", "temperature", "--out", folder / "cal.onnx")
    assert fields(done.stderr)["code"] == "TO524"
    assert "onnx" in fields(done.stderr)["fix"]


@pytest.mark.parametrize("method", ["isotonic", "histogram"])
def test_a_tally_is_enough_for_some_calibrators(run: Run, first: Path, folder: Path, method: str) -> None:
    part, cal = folder / "a.tally.json", folder / "cal.json"
    run("tally", first, "--out", part)
    done = run("fit", part, "--method", method, "--out", cal)
    assert done.exit_code == 0
    assert "TN561" in done.stdout
    assert (load(cal).method, load(cal).n, load(cal).classes) == (method, 300, tuple(NAMES))


def test_other_calibrators_need_the_rows(run: Run, first: Path, folder: Path) -> None:
    part = folder / "a.tally.json"
    run("tally", first, "--out", part)
    done = run("fit", part, "--out", folder / "cal.json")
    assert (done.exit_code, fields(done.stderr)["code"]) == (2, "TO403")
    assert "isotonic, histogram" in fields(done.stderr)["problem"]


def test_a_tally_has_no_crossings_and_its_groups_are_audited(run: Run, first: Path, folder: Path) -> None:
    part = folder / "a.tally.json"
    run("tally", first, "--group", "site", "--out", part)
    done = run("audit", part, "--crossings")
    assert fields(done.stderr)["code"] == "TO323"
    assert "--crossings" in fields(done.stderr)["got"]
    assert "True" not in done.stderr
    assert f"trueodds audit {part} reports the groups" in fields(run("groups", part).stderr)["fix"]


def test_a_file_of_another_kind_is_named(run: Run, first: Path, folder: Path) -> None:
    part, cal, out = folder / "a.tally.json", folder / "cal.json", folder / "out.csv"
    run("tally", first, "--out", part)
    run("fit", first, "--method", "temperature", "--out", cal)
    expected = {
        ("merge", part, first, "--out", out): ("TO402", f"Tally the rows first: trueodds tally {first} --out F."),
        ("merge", part, cal, "--out", out): ("TO402", "Name tallies only."),
        ("apply", first, cal, "--out", out): ("TO503", f"The calibrator comes first: trueodds apply {cal} FILE"),
        ("audit", cal): ("TO603", f"trueodds apply {cal} FILE"),
    }
    for words, (code, fix) in expected.items():
        refused = fields(run(*words).stderr)
        assert refused["code"] == code
        assert fix in refused["fix"]
    assert not out.exists()
