"""Do commands write, merge and recognize saved calibrators and tallies, and refuse copies and mixed orders?"""

from __future__ import annotations

import csv
import importlib
import json
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
    with path.open("w", encoding="utf-8", newline="") as file:
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


@pytest.mark.slow
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
    assert by_name.read_text(encoding="utf-8") == listed.read_text(encoding="utf-8")
    assert by_name.read_text(encoding="utf-8").splitlines()[0] == "label,site,p_bee,p_ant,p_cat"


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
    done = run("fit", first, "--method", "kernel", "--out", folder / "cal.onnx")
    assert (done.exit_code, fields(done.stderr)["code"]) == (2, "TO524")
    assert not (folder / "cal.onnx").exists()


def test_an_onnx_file_needs_the_library(run: Run, first: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("trueodds.cli.recalibration"), "find_spec", lambda _: None)
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


@pytest.mark.slow
def test_rows_that_a_merged_tally_contains_are_not_counted_again(run: Run, first: Path, folder: Path) -> None:
    # Days 0, 1 and 2: day 0 is merged, and given again; and the same files are tallied one by one and together.
    files = [first, animals(folder / "second.csv", NAMES, 2), animals(folder / "third.csv", NAMES, 3)]
    days = [folder / f"{i}.tally.json" for i in range(3)]
    merged, combined = folder / "m.tally.json", folder / "combined.tally.json"
    for file, day in zip(files, days, strict=True):
        run("tally", file, "--out", day)
    run("tally", *files[1:], "--out", combined)
    assert run("merge", *days[:2], "--out", merged).stdout.startswith("600 rows of 2 tallies")
    for words in (
        ("merge", merged, days[0], "--out", folder / "x.tally.json"),
        ("audit", days[2], merged, days[1]),
        ("merge", merged, combined, "--out", folder / "x.tally.json"),
        ("measure", merged, combined),
    ):
        refused = fields(run(*words).stderr)
        assert (refused["code"], refused["problem"]) == (
            "TO603",
            "Two tallies contain the same 300 rows, which would count twice.",
        )
    assert not (folder / "x.tally.json").exists()
    assert run("merge", merged, days[2], "--out", folder / "x.tally.json").stdout.startswith("900 rows")


@pytest.mark.slow
def test_an_older_tally_is_merged_and_its_copies_are_still_refused(run: Run, first: Path, folder: Path) -> None:
    second = animals(folder / "second.csv", NAMES, 2)
    days = [folder / f"{name}.tally.json" for name in ("a", "b")]
    for file, day in zip((first, second), days, strict=True):
        run("tally", file, "--out", day)
    new_copy = shutil.copy(days[0], folder / "new.tally.json")
    for day in days:  # as a version without fingerprints and checksums wrote them
        saved = json.loads(day.read_text(encoding="utf-8"))
        del saved["batches"], saved["sha256"]
        day.write_text(json.dumps(saved), encoding="utf-8")
    old_copy = shutil.copy(days[0], folder / "copy.tally.json")
    merged = folder / "m.tally.json"
    assert run("merge", *days, "--out", merged).stdout.startswith("600 rows")
    for files in ((days[0], old_copy), (days[0], new_copy), (merged, days[1])):
        assert fields(run("merge", *files, "--out", folder / "x.tally.json").stderr)["code"] == "TO603"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["exact", "tally"])
def test_a_copy_of_a_file_is_noted(run: Run, first: Path, folder: Path, mode: str) -> None:
    copy = shutil.copy(first, folder / "copy.csv")
    for command in ("measure", "audit"):
        done = run(command, first, copy, "--mode", mode)
        assert (done.exit_code, done.stdout.count("TN172")) == (0, 1)
    different = run("measure", first, animals(folder / "second.csv", NAMES, 2), "--mode", mode)
    assert "TN172" not in different.stdout
    if mode == "tally":
        assert "300 of 600 rows repeat" in run("tally", first, copy, "--out", folder / "a.tally.json").stdout
    else:
        text = " ".join(run("measure", first, copy).stdout.split())
        assert f"{copy} is a copy of {first}" in text
