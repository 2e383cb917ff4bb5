"""table: every cell of models and segments is judged with one adjustment, and versions of a model are compared."""

from __future__ import annotations

import csv
import io
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import trueodds as to
from tests.test_schemas import assert_valid
from trueodds.api.table_results import ResultTable
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions

FAST = {"resamples": 199}
SEGMENTS = ("east", "north", "south")


def data(n: int = 900) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """Outcomes, a calibrated and an overconfident model, and segments, one of which has twelve rows."""
    rng = np.random.default_rng(0)
    log_odds = rng.normal(0, 1, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)
    segment = np.array(["east"] * 12 + ["north"] * (n // 2) + ["south"] * (n - n // 2 - 12))
    return y, {"true": 1 / (1 + np.exp(-log_odds)), "sharp": 1 / (1 + np.exp(-3 * log_odds))}, segment


@pytest.fixture(scope="module")
def table() -> ResultTable:
    y, models, segment = data()
    return to.table(y, models, ["ece", "brier"], by=segment, **FAST)


# Segments


def test_a_cell_is_what_measure_returns_for_its_rows(table: ResultTable) -> None:
    y, models, segment = data()
    for (name, p), measure, value in product(models.items(), ("ece", "brier"), SEGMENTS):
        rows = segment == value
        assert table[name, measure, value] == to.measure(y[rows], p[rows], measure, **FAST)


def test_the_test_of_a_cell_is_that_of_its_rows(table: ResultTable) -> None:
    y, models, segment = data()
    for cell in table.cells:
        rows = segment == cell.segment
        assert cell.n == rows.sum()
        if cell.status != "not judged":
            assert cell.pvalue == to.test(y[rows], models[cell.model][rows], lens="positive", **FAST).pvalue


def test_no_cell_is_left_out_and_small_ones_are_not_judged(table: ResultTable) -> None:
    assert {(cell.model, cell.segment) for cell in table.cells} == set(product(("true", "sharp"), SEGMENTS))
    small = [cell for cell in table.cells if cell.segment == "east"]
    assert all(cell.status == "not judged" and cell.pvalue is None for cell in small)
    assert all(cell.reason == "fewer than 25 rows" for cell in small)
    (note,) = [note.text for note in table.notes if note.code == "TN287"]
    assert note == "Not judged: true in east; sharp in east (fewer than 25 rows)."
    assert math.isfinite(table["true", "ece", "east"].value)


def test_the_pvalues_are_adjusted_by_holms_method_for_all_cells(table: ResultTable) -> None:
    # Of six cells two are not judged. The k-th smallest of the other four p-values is multiplied by 6 − k + 1.
    judged = sorted((cell for cell in table.cells if cell.pvalue is not None), key=lambda cell: cell.pvalue or 0.0)
    largest = 0.0
    for k, cell in enumerate(judged):
        assert cell.pvalue is not None
        largest = max(largest, min(1.0, (6 - k) * cell.pvalue))
        assert cell.adjusted_pvalue == pytest.approx(largest, rel=1e-12)
        assert (cell.status == "miscalibrated") == (largest <= 0.05)
    assert [cell.model for cell in judged if cell.status == "miscalibrated"] == ["sharp", "sharp"]


@pytest.mark.slow
def test_by_default_enough_draws_are_made_that_one_cell_can_be_significant() -> None:
    # 40 models in two segments are 80 cells: with 999 draws the smallest adjusted p-value would be 80/1000 = 0.08.
    y, models, _ = data(120)
    segment = np.arange(120) % 2
    table = to.table(y, {f"m{i}": models["sharp"] for i in range(40)}, ["brier"], by=segment, interval=None)
    assert min(cell.adjusted_pvalue or 0.0 for cell in table.cells) <= 0.05
    assert table.settings["test_resamples"] >= 80 / 0.05 - 1
    few = to.table(y, models, ["brier"], by=segment, interval=None, resamples=19)
    (note,) = [note.text for note in few.notes if note.code == "TN209"]
    assert note.endswith("Pass resamples=79.")  # four cells: 4/80 is 5 %


@pytest.mark.slow
def test_the_familywise_error_rate_of_calibrated_cells_is_at_most_the_level() -> None:
    # 60 tables of three models in three segments. At a familywise error rate of 20 %, the number of tables with a
    # rejection is at most Binomial(60, 0.2), whose 99.9 % quantile is 22.
    rng = np.random.default_rng(1)
    n_rejected = 0
    for number in range(60):
        models = {}
        for name in "abc":
            p = rng.random(90)
            models[name] = Predictions((rng.random(90) < p).astype(int), p, group={"site": np.arange(90) % 3})
        table = to.table(models, ["brier"], by="site", level=0.8, resamples=99, interval=None, rng=number)
        n_rejected += any(cell.status == "miscalibrated" for cell in table.cells)
    assert n_rejected <= 22


def test_segments_are_a_group_column_or_an_array(table: ResultTable) -> None:
    y, models, segment = data()
    named = {name: Predictions(y, p, group={"region": segment}) for name, p in models.items()}
    by_name = to.table(named, ["ece", "brier"], by="region", **FAST)
    assert by_name.by == "region"
    assert table.by == "segment"
    assert by_name.cells == table.cells
    assert by_name.columns == table.columns


def test_models_may_have_rows_in_different_segments() -> None:
    y, models, segment = data()
    without_south = segment != "south"
    named = {
        "all": Predictions(y, models["true"], group={"segment": segment}),
        "some": Predictions(y[without_south], models["true"][without_south], group={"segment": segment[without_south]}),
    }
    table = to.table(named, ["ece"], by="segment", **FAST)
    (cell,) = [cell for cell in table.cells if (cell.model, cell.segment) == ("some", "south")]
    assert (cell.n, cell.status, cell.reason) == (0, "not judged", "no rows")
    row = next(
        row
        for row in csv.DictReader(io.StringIO(table.to_csv()))
        if (row["model"], row["segment"]) == ("some", "south")
    )
    assert (row["value"], row["n"], row["status"]) == ("nan", "0", "not judged")
    assert "–?" in table.describe()
    with pytest.raises(KeyError, match="segments east, north, south"):
        table["some", "ece", "south"]


def test_tallies_with_the_group_column_have_segments() -> None:
    y, models, segment = data()
    tallies = {name: to.tally(Predictions(y, p, group={"region": segment})) for name, p in models.items()}
    table = to.table(tallies, ["ece"], by="region", **FAST)
    assert {(cell.model, cell.segment) for cell in table.cells} == set(product(models, SEGMENTS))
    assert {cell.status for cell in table.cells if cell.model == "sharp"} == {"miscalibrated", "not judged"}


def test_models_are_compared_in_every_segment_on_request() -> None:
    y, models, segment = data()
    table = to.table(y, models, ["brier"], by=segment, bold=True, **FAST)
    assert table.compared
    assert table.bold["brier", "north"] == "true"
    alone = to.table(
        y[segment == "north"], {name: p[segment == "north"] for name, p in models.items()}, ["brier"], **FAST
    )
    north = next(column for column in table.columns if column.segment == "north")
    assert north.comparisons == alone.columns[0].comparisons
    assert north.adjusted_pvalue == pytest.approx(min(1.0, 3 * (north.pvalue or 0.0)))


def test_a_missing_column_and_unsuitable_segments_are_errors() -> None:
    y, models, segment = data()
    with pytest.raises(InputError, match=r"TO409.*no group column region"):
        to.table(y, models, by="region")
    with pytest.raises(InputError, match="TO112"):
        to.table(y, models, by=segment[:5])
    with pytest.raises(InputError, match="TO403"):
        to.table({name: to.tally(y, p) for name, p in models.items()}, by=segment)
    with pytest.raises(InputError, match="TO203"):
        to.table(y, models, ["ece"], by=segment, interval="unknown")


def test_a_measure_that_is_undefined_in_a_segment_is_named_and_the_others_are_kept() -> None:
    y, models, segment = data()
    table = to.table(y, models, ["skce", "brier"], by=np.where(np.arange(len(y)) == 0, "one row", segment), **FAST)
    assert table["true", "brier", "one row"].n == 1
    assert table["true", "skce", "south"].n == (segment == "south").sum()


@pytest.mark.parametrize("interval", ["auto", None])
def test_the_json_of_segments_and_versions_has_the_schema(interval: str | None) -> None:
    y, models, segment = data()
    versions = {"net": {"before": models["sharp"], "after": models["true"]}}
    table = to.table(y, versions, ["ece"], by=segment, interval=interval, **FAST)
    document = assert_valid(table.to_dict(), "table")
    assert document["versions"] == ["before", "after"]
    assert document["segments"] == list(SEGMENTS)
    assert len(document["cells"]) == 6
    assert [len(column["differences"]) for column in document["columns"]] == [1, 1, 1]


def test_every_form_has_a_panel_per_measure(table: ResultTable) -> None:
    for text in (table.describe(), table.to_markdown(), table._repr_html_()):
        assert text.count("ece ↓") == text.count("brier ↓") == text.count("adjusted p of calibration") == 1
        assert "†" in text
    latex = table.to_latex(caption=False)
    assert latex.count(r"\multicolumn{4}{l}") == 3
    assert r"^{\dagger}" in latex
    assert latex.count(r"\begin{tabular}{lccc}") == 1


# Versions


def test_a_difference_of_versions_is_what_compare_returns() -> None:
    y, models, _ = data()
    table = to.table(y, {"net": {"before": models["sharp"], "after": models["true"]}}, ["ece", "log_loss"], **FAST)
    for column in table.columns:
        (difference,) = column.differences
        alone = to.compare(y, models["true"], models["sharp"], column.estimator, **FAST)
        assert (difference.difference, difference.interval) == (alone.difference, alone.interval)
        assert difference.pvalue == alone.pvalue
        assert (difference.model, difference.version, difference.reference) == ("net", "after", "before")
    assert table["net, after", "ece"] == to.measure(y, models["true"], "ece", **FAST)


def test_the_pvalues_of_differences_are_adjusted_for_all_of_them() -> None:
    y, models, _ = data()
    versions = {name: {"before": models["sharp"], "after": p} for name, p in models.items()}
    table = to.table(y, versions, ["ece", "brier"], **FAST)
    differences = [difference for column in table.columns for difference in column.differences]
    # The versions of one model are equal: their differences are 0. Holm's method counts them as well.
    assert [difference.difference == 0 for difference in differences] == [False, True, False, True]
    smallest = min(differences, key=lambda difference: difference.pvalue if difference.pvalue is not None else 2.0)
    assert smallest.adjusted_pvalue == pytest.approx(min(1.0, 4 * (smallest.pvalue or 0.0)))
    assert table.describe().startswith("table · 2 models × 2 versions × 2 measures")
    assert "*: significant difference between versions" in table.describe().replace("\n", " ")


def test_three_versions_are_compared_with_the_first() -> None:
    y, models, _ = data()
    versions = {"net": {"raw": models["sharp"], "half": models["sharp"] ** 0.5, "full": models["true"]}}
    (column,) = to.table(y, versions, ["brier"], **FAST).columns
    assert [(d.version, d.reference) for d in column.differences] == [("half", "raw"), ("full", "raw")]


def test_versions_must_be_the_same_for_all_models_which_are_not_compared() -> None:
    y, models, _ = data()
    with pytest.raises(InputError, match=r"TO205.*different versions"):
        to.table(y, {"a": {"before": models["true"]}, "b": {"after": models["true"]}}, ["brier"])
    with pytest.raises(InputError, match=r"TO205.*not compared with each other"):
        to.table(y, {"a": {"before": models["true"], "after": models["sharp"]}}, ["brier"], bold=True)


def test_versions_with_other_rows_are_called_unpaired() -> None:
    # Without ids the same rows in another order cannot be paired: the difference is that of independent samples.
    y, models, _ = data()
    order = np.random.default_rng(2).permutation(len(y))
    before, after = Predictions(y, models["sharp"]), Predictions(y[order], models["true"][order])
    table = to.table({"net": {"before": before, "after": after}}, ["brier"], **FAST)
    (note,) = [note.text for note in table.notes if note.code == "TN227"]
    assert note.startswith("1 of 1 difference: Compared as independent samples (net, after and net, before: their")
    assert "(unpaired comparisons, familywise error rate 5 %)" in table.caption
    assert not table.columns[0].differences[0].paired
    assert_valid(table.to_dict(), "table")
    paired = to.table(y, {"net": {"before": models["sharp"], "after": models["true"]}}, ["brier"], **FAST)
    assert paired.columns[0].differences[0].paired
    assert "unpaired" not in paired.caption
    tallies = {"net": {"before": to.tally(before), "after": to.tally(before)}}
    assert "TN227" in [note.code for note in to.table(tallies, ["ece"], **FAST).notes]
    two = to.table(
        {"net": {"before": before, "after": after}, "same": {"before": before, "after": before}}, ["brier"], **FAST
    )
    assert "(1 of 2 unpaired, familywise error rate 5 %" in two.caption


def test_the_notes_of_the_tests_of_cells_are_reported() -> None:
    y, models, segment = data()
    independent = to.table(y, models, ["brier"], by=segment, **FAST)
    (note,) = [note.text for note in independent.notes if note.code == "TN203"]
    assert note.startswith("4 of 6 cells: The null hypothesis includes independence")
    cluster = np.arange(len(y)) // 3
    clustered = {name: Predictions(y, p, cluster=cluster, group={"s": segment}) for name, p in models.items()}
    table = to.table(clustered, ["brier"], by="s", **FAST)
    assert "TN204" in [note.code for note in table.notes]
    assert "nominal familywise error rate 5 %" in table.caption
    assert "TN204" in table.caption
    assert "nominal" not in independent.caption


def test_a_dominating_cluster_does_not_count_as_many() -> None:
    y, models, _ = data()
    cluster = np.where(np.arange(len(y)) < 800, 0, np.arange(len(y)))  # 101 clusters, of which one has 800 of 900 rows
    preds = Predictions(y, models["true"], cluster=cluster, group={"s": ["all"] * len(y)})
    table = to.table({"true": preds}, ["brier"], by="s", interval=None)
    (cell,) = table.cells
    assert (cell.status, cell.reason) == ("not judged", "fewer than 25 effective clusters")
    assert table.caption.endswith("?: not judged (TN287).")


def test_segments_that_are_formed_by_the_outcome_have_a_note() -> None:
    y, models, _ = data()
    table = to.table(y, models, ["brier"], by=np.where(y == 1, "case", "control"), **FAST)
    codes = [note.code for note in table.notes]
    assert "TN167" in codes
    assert "TN185" not in codes
    one_class = to.table(np.ones(900, int), models, ["brier"], by=np.arange(900) % 2, **FAST)
    assert "TN185" in [note.code for note in one_class.notes]  # of all rows


def test_names_of_versions_that_could_be_confused_are_an_error() -> None:
    y, models, _ = data()
    versions = {"T=2, raw": models["true"], "raw": models["sharp"]}
    with pytest.raises(InputError, match=r"TO205.*T=2, raw and raw"):
        to.table(y, {"net": versions, "net, T=2": versions}, ["brier"], interval=None)
    named = to.table(y, {"net, T=2": {"a, b": models["true"], "b c": models["sharp"]}}, ["brier"], interval=None)
    assert named["net, T=2, a, b", "brier"] == to.measure(y, models["true"], "brier", interval=None)


def test_a_version_without_rows_in_a_segment_leaves_its_difference_empty():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    site = np.repeat(["a", "b"], 100)
    before, after = (to.Predictions(y, q, group={"site": site}) for q in (p, p**1.5))
    models = {"net": {"before": before, "mid": before[np.arange(100)], "after": after}}
    table = to.table(models, ["brier"], by="site", interval=None)
    lines = [line for line in table.to_markdown().splitlines() if line.startswith(("|  |", "| net"))]
    assert len({line.count("|") for line in lines}) == 1
    cells = [cell.strip() for cell in lines[3].split("|")[2:-1]]  # of the second segment
    differences = {found.version for found in table.columns[-1].differences}
    assert differences == {"after"}
    assert cells[3:5] == ["–", "–"]  # mid − before
    assert cells[5] != "–"  # after − before
    assert "net" in str(table)
    assert table.to_latex(transpose=True)


def test_a_segment_without_weight_is_shown_and_not_judged() -> None:
    y, models, segment = data()
    preds = Predictions(y, models["true"], weight=np.where(segment == "south", 0.0, 1.0), group={"s": segment})
    table = to.table({"true": preds}, ["brier"], by="s", interval=None)
    assert table.segments == SEGMENTS
    assert [(cell.n, cell.status, cell.reason) for cell in table.cells][-1] == (0, "not judged", "no rows")


def test_segments_are_read_from_a_frame_or_a_file(tmp_path: Path) -> None:
    y, models, segment = data()
    columns = {"label": y, "p_1": models["true"], "site": segment}
    table = to.table({"true": columns}, ["brier"], by="site", interval=None)
    path = tmp_path / "true.csv"
    lines = [f"{a},{b},{c}" for a, b, c in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(["label,p_1,site", *lines]), encoding="utf-8")
    assert to.table({"true": str(path)}, ["brier"], by="site", interval=None).cells == table.cells
    assert table.segments == SEGMENTS
    with pytest.raises(InputError, match=r"TO409.*read\(data, group='region'\)"):
        to.table(y, models, by="region")


def test_rows_in_other_segments_are_not_paired() -> None:
    # Outcomes that are equal in both halves would seem to be the same rows.
    y, halves = np.tile([0, 1], 200), np.repeat(["a", "b"], 200)
    p, q = (np.where(y == 1, x, 1 - x) for x in np.random.default_rng(0).uniform(0.6, 0.9, (2, 400)))
    before, after = Predictions(y, p, group={"s": halves}), Predictions(y, q, group={"s": halves[::-1]})
    versions = to.table({"net": {"before": before, "after": after}}, ["brier"], by="s", **FAST)
    assert [column.differences[0].paired for column in versions.columns] == [False, False]
    assert "unpaired comparisons" in versions.caption
    assert any(note.code == "TN227" and "in different segments" in note.text for note in versions.notes)
    models = to.table({"a": before, "b": after}, ["brier"], by="s", bold=True, **FAST)
    assert not models.compared
    assert any(note.code == "TN227" and "in different segments" in note.text for note in models.notes)


def test_equal_numbers_are_one_segment_and_numbers_are_in_numerical_order() -> None:
    y, models, _ = data()
    numbers = np.arange(len(y)) % 11
    integers = Predictions(y, models["true"], group={"s": numbers})
    kept = numbers != 9
    floats = Predictions(y[kept], models["sharp"][kept], group={"s": numbers[kept].astype(float)})
    table = to.table({"a": integers, "b": floats}, ["brier"], by="s", interval=None)
    assert table.segments == tuple(map(str, range(11)))
    assert ("b", "9", 0) in [(cell.model, cell.segment, cell.n) for cell in table.cells]


def test_versions_may_be_in_another_order_and_every_model_must_have_them() -> None:
    y, models, _ = data()
    reordered = {"a": {"x": models["true"], "y": models["sharp"]}, "b": {"y": models["sharp"], "x": models["true"]}}
    (column,) = to.table(y, reordered, ["brier"], interval=None).columns
    assert len({difference.difference for difference in column.differences}) == 1
    for other in (models["sharp"], {}):
        with pytest.raises(InputError, match=r"TO205.*different versions.*none of b, not x, y"):
            to.table(y, {"a": reordered["a"], "b": other}, ["brier"], interval=None)
    with pytest.raises(InputError, match=r"TO205.*different versions"):
        to.table(y, {"a": {}}, ["brier"], interval=None)


def test_one_of_a_kind_is_in_the_singular() -> None:
    y, models, segment = data()
    one = to.table(y, {"true": models["true"]}, ["brier"], by=np.repeat("all", len(y)), **FAST)
    assert one.describe().startswith("table · 1 model × 1 segment × 1 measure · n=900 · 0 of 1 cell")
    assert "cells" not in one.caption
    two = to.table(y, models, ["brier"], by=segment, bold=True, **FAST)
    assert "over the 1 measure and 3 segments by Holm's method" in two.caption
    many = to.table(y, {"true": models["true"]}, ["brier"], by=np.arange(900) // 15, interval=None)
    (note,) = [note.text for note in many.notes if note.code == "TN287"]
    assert note.endswith("true in 5; 54 more (fewer than 25 rows).")


def test_versions_in_segments_have_the_pvalues_of_their_cells() -> None:
    y, models, segment = data()
    table = to.table(y, {"net": {"before": models["sharp"], "after": models["true"]}}, ["brier"], by=segment, **FAST)
    for text in (table.describe(), table.to_markdown(), table.to_latex(caption=False)):
        assert text.count("adjusted p of calibration, segment=") == len(SEGMENTS)
    assert table.to_latex(caption=False).count(r"\multicolumn{5}{l}") == 6
