"""table: each cell is what measure returns, and a value is bold only if its model beats every other one."""

from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest

import trueodds as to
from tests.api import bold_values
from tests.rates import rate_is_at_level
from tests.test_schemas import assert_valid
from trueodds.api.table_columns import MeasureColumn
from trueodds.api.table_results import ResultTable
from trueodds.core.errors import InputError
from trueodds.core.results import Estimate, Interval

FAST = {"resamples": 200}


def outcomes_and_models(n: int = 600) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Outcomes, the probabilities that they were drawn from, and two models that know less."""
    rng = np.random.default_rng(0)
    log_odds = rng.normal(0, 2, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)
    logits = {"true": log_odds, "noisy": log_odds + rng.normal(0, 3, n), "over_confident": 4 * log_odds}
    return y, {name: 1 / (1 + np.exp(-z)) for name, z in logits.items()}


@pytest.fixture(scope="module")
def table() -> ResultTable:
    y, models = outcomes_and_models()
    return to.table(y, models, ["accuracy", "ece", "brier", "log_loss"], **FAST)


# Values


def test_a_cell_is_what_measure_returns(table: ResultTable) -> None:
    y, models = outcomes_and_models()
    for measure in ("ece", "brier"):
        alone = to.measure(y, models["noisy"], measure, **FAST)
        cell = table["noisy", measure]
        assert (cell.value, cell.interval, cell.noise_floor) == (alone.value, alone.interval, alone.noise_floor)


def test_the_expected_accuracy_is_the_mean_confidence_without_redraws() -> None:
    y, models = outcomes_and_models(200)
    weight, cluster = np.arange(1.0, 201.0), np.arange(200) // 4
    for settings in ({}, {"weight": weight}, {"weight": weight, "cluster": cluster}):
        preds = to.Predictions(y, models["true"], **settings)
        confidence = np.maximum(preds.p, 1 - preds.p) if preds.p.ndim == 1 else preds.p.max(axis=1)
        cell = to.table({"a": preds}, ["accuracy"], **FAST)["a", "accuracy"]
        assert cell.noise_floor == pytest.approx(np.average(confidence, weights=preds.w), abs=1e-12)


def test_accuracy_is_the_share_of_most_probable_classes_that_were_observed() -> None:
    # Predicted classes 1, 0, 1, 0 and observed 1, 0, 0, 0: three of four.
    cell = to.table([1, 0, 0, 0], {"a": [0.9, 0.2, 0.7, 0.4]}, ["accuracy"])["a", "accuracy"]
    assert cell.value == 0.75
    y, P = [2, 0, 1, 2], np.array([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2], [0.4, 0.3, 0.3], [0.2, 0.6, 0.2]])
    assert to.table(y, {"a": P}, "accuracy")["a", "accuracy"].value == 0.5


def test_a_setting_applies_to_the_measures_that_have_it() -> None:
    y, models = outcomes_and_models()
    table = to.table(y, models, ["ece", "brier"], bins=5, bold=False, **FAST)
    assert table["true", "ece"].value == to.measure(y, models["true"], "ece", bins=5, interval=None).value
    assert table["true", "brier"].value == to.measure(y, models["true"], "brier", interval=None).value


def test_every_measure_is_computed_through_every_lens_and_accuracy_once() -> None:
    y, models = outcomes_and_models()
    table = to.table(y, models, ["accuracy", "ece"], ["confidence", "positive"], bold=False, interval=None)
    assert [(column.label, column.lens) for column in table.columns] == [
        ("accuracy", "confidence"),
        ("ece (confidence)", "confidence"),
        ("ece (positive)", "positive"),
    ]


def test_headings_come_from_a_mapping() -> None:
    y, models = outcomes_and_models()
    measures = {"ECE": "ece", "ECE of bins": to.estimators.BinnedError(), "NLL": "log_loss"}
    table = to.table(y, models, measures, interval=None)
    assert list(table.bold) == ["ECE", "ECE of bins", "NLL"]


def test_the_same_seed_gives_the_same_table() -> None:
    y, models = outcomes_and_models(200)
    first, second = (to.table(y, models, ["ece", "brier"], rng=3, **FAST).to_dict() for _ in range(2))
    assert first == second


# Bold values


def test_a_value_is_bold_if_its_model_beats_every_other_one(table: ResultTable) -> None:
    assert table.bold["log_loss"] == "true"
    losses = {name: table[name, "log_loss"].value for name in table.names}
    assert min(losses, key=lambda name: losses[name]) == "true"
    column = next(column for column in table.columns if column.label == "log_loss")
    assert all(pair.pvalue <= column.pvalue for pair in column.comparisons if "true" in (pair.first, pair.second))
    assert column.pvalue <= column.adjusted_pvalue <= 0.05


def test_the_claim_of_a_column_has_the_largest_p_value_of_its_comparisons_adjusted_for_all_measures(
    table: ResultTable,
) -> None:
    for column in table.columns:
        losses = {name: abs(column.estimates[name].value - column.best_value) for name in table.names}
        first = min(losses, key=lambda name: losses[name])
        own = [pair.pvalue for pair in column.comparisons if first in (pair.first, pair.second)]
        assert len(own) == len(table.names) - 1
        assert column.pvalue == max(own)
        assert column.bold == (first if column.adjusted_pvalue <= 0.05 else None)
    running = 0.0  # Holm by hand: sorted p-values times 4, 3, …, made increasing and limited to 1
    for rank, column in enumerate(sorted(table.columns, key=lambda column: column.pvalue)):
        running = max(running, min(1.0, (len(table.columns) - rank) * column.pvalue))
        assert column.adjusted_pvalue == pytest.approx(running)


def test_the_p_value_alone_is_that_of_compare(table: ResultTable) -> None:
    y, models = outcomes_and_models()
    alone = to.compare(y, models["true"], models["noisy"], "brier", **FAST)
    column = next(column for column in table.columns if column.label == "brier")
    assert column.comparisons[0].pvalue == pytest.approx(alone.pvalue)
    assert column.comparisons[0].difference == pytest.approx(alone.difference)


def test_models_that_tie_are_not_bold() -> None:
    y, models = outcomes_and_models()
    table = to.table(y, {"a": models["true"], "again": models["true"]}, ["accuracy", "ece", "brier"], **FAST)
    assert set(table.bold.values()) == {None}


def test_higher_accuracy_is_better() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 400)
    right = np.where(rng.random(400) < 0.95, y, 1 - y)
    table = to.table(y, {"coin": rng.random(400), "right": 0.1 + 0.8 * right}, ["accuracy"], **FAST)
    assert table.bold == {"accuracy": "right"}
    assert table.columns[0].arrow == "↑"


def test_a_measure_with_a_target_favors_the_closer_value() -> None:
    # Observed over expected: 1 is perfect. Both models expect too few events, the first nearly enough.
    rng = np.random.default_rng(2)
    p = rng.uniform(0.2, 0.8, 3000)
    y = (rng.random(3000) < p).astype(int)
    table = to.table(y, {"far": p / 2, "close": p / 1.1}, {"O:E": "o_e"}, **FAST)
    assert table["far", "O:E"].value > table["close", "O:E"].value > 1
    assert (table.bold, table.columns[0].arrow) == ({"O:E": "close"}, "→ 1")
    below = to.table(y, {"far": np.minimum(1, p * 1.2), "close": p * 1.05}, "o_e", **FAST)
    assert below.bold == {"o_e": "close"}
    around = to.table(y, {"high": p / 1.1, "low": np.minimum(1, p * 1.1)}, "o_e", **FAST)
    assert around.bold == {"o_e": None}  # about 1.1 and 0.91


def test_an_infinite_value_leaves_the_column_without_bold_values() -> None:
    y, models = outcomes_and_models()
    wrong = np.where(np.arange(len(y)) == 0, 1 - y, models["true"]).astype(float)
    table = to.table(y, {"a": models["true"], "b": wrong}, ["log_loss"], **FAST)
    assert table["b", "log_loss"].value == math.inf
    assert table.bold == {"log_loss": None}
    assert r"\infty" in table.to_latex()


def test_each_note_is_given_once_with_the_cells_that_it_concerns() -> None:
    """Each number of bins had a note of its own, six for three models through two lenses."""
    y = [0, 1, 2] * 7  # 21 rows: bins of fewer than 10 rows in every cell, but not equally many
    rng = np.random.default_rng(0)
    models = {name: rng.dirichlet(np.full(3, scale), 21) for name, scale in (("a", 0.3), ("b", 1.0), ("c", 30.0))}
    table = to.table(y, models, {"ECE": "ece", "cwECE": "sce", "Brier": "brier"}, **FAST)
    (note,) = [note for note in table.notes if note.code == "TN105"]
    first = next(note for note in table["a", "ECE"].notes if note.code == "TN105")
    assert note.text == f"a, b, c (ECE, cwECE), first in a (ECE): {first.text}"


def test_models_of_different_rows_are_not_compared_and_a_note_says_so() -> None:
    y, models = outcomes_and_models()
    table = to.table({"a": (y, models["true"]), "b": (y[:-1], models["over_confident"][:-1])}, ["brier"], **FAST)
    assert not table.compared
    assert table.bold == {"brier": None}
    (note,) = [note for note in table.notes if note.code == "TN227"]
    assert "600 and 599 rows" in note.text
    assert "Bold" not in table.caption


def test_tallies_are_not_compared() -> None:
    y, models = outcomes_and_models()
    tallies = {name: to.tally((y, p)) for name, p in models.items()}
    table = to.table(tallies, ["ece", "brier"], **FAST)
    assert not table.compared
    assert "a tally does not store rows" in str(table)
    assert table["true", "brier"].value == pytest.approx(to.measure(y, models["true"], "brier", interval=None).value)


def test_a_note_says_that_resamples_are_too_few_for_bold_values() -> None:
    y, models = outcomes_and_models()
    table = to.table(y, models, ["ece", "debiased_l2"], resamples=30)
    # 2 measures of at least 1/31 each: 0.065. 2 / 0.05 = 40 resamples suffice.
    assert any(note.code == "TN209" and "resamples=39." in note.text for note in table.notes)


@pytest.mark.slow
def test_equally_good_models_are_bold_in_at_most_the_nominal_share_of_tables() -> None:
    measures = ("accuracy", "brier", "log_loss")
    tables = (bold_values.bold_values("two equal models and a worse one", i, measures, 300) for i in range(150))
    has_bold_value = (any(model is not None for model in table.values()) for table in tables)
    assert rate_is_at_level(has_bold_value, 0.05, excluded=0.15)


@pytest.mark.slow
def test_a_better_model_is_often_bold() -> None:
    # 261 of 300 tables of 500 rows had a bold value. At least 20 of 40 is true with a probability above 99.99 %.
    tables = [bold_values.bold_values("one better model", i, ("brier", "log_loss")) for i in range(40)]
    assert sum("model 1" in table.values() for table in tables) >= 20
    assert not any({"model 2", "model 3"} & set(table.values()) for table in tables)


# Text


def column_of(estimates: dict[str, tuple[float, float, float]]) -> MeasureColumn:
    """A column of values with intervals."""
    return MeasureColumn(
        "m", "m", "positive", "lower", 0.0,
        {
            name: Estimate("m", "positive", value, 10, Interval(low, high, 0.95, "bca"))
            for name, (value, low, high) in estimates.items()
        },
    )  # fmt: skip


@pytest.mark.parametrize(
    ("half_width", "value"), [(0.021, "0.123"), (0.0021, "0.1235"), (0.00099, "0.12346"), (2.1, "0.1"), (21.0, "0")]
)
def test_numbers_have_two_digits_of_the_half_width_of_the_interval(half_width: float, value: str) -> None:
    column = column_of({"a": (0.123456, 0.123456 - half_width, 0.123456 + half_width)})
    assert column.format_cell("a").value == value


def test_a_column_has_one_number_of_decimals_that_of_the_narrowest_interval() -> None:
    column = column_of({"a": (0.1, 0.0, 0.2), "b": (0.5, 0.496, 0.504), "c": (-0.00001, -0.01, 0.01)})
    assert [column.format_cell(name).value for name in "abc"] == ["0.1000", "0.5000", "0.0000"]


def test_the_text_fits_80_columns_and_marks_bold_values(table: ResultTable) -> None:
    text = table.describe()
    assert max(map(len, text.splitlines())) <= 80
    assert "*" in text
    assert "over the 4 measures by Holm's method" in " ".join(text.split())
    assert repr(table) == text.splitlines()[0]


def test_names_and_headings_are_escaped() -> None:
    y, models = outcomes_and_models(100)
    names = {"a_b|c & 5%": models["true"], "<b>\x1b[31m": models["noisy"]}
    table = to.table(y, names, {"50 % $x$": "brier"}, bold=False, interval=None)
    latex, markdown, html = table.to_latex(), table.to_markdown(), table._repr_html_()
    assert r"a\_b\textbar{}c \& 5\%" in latex
    assert r"50 \% \$x\$ $\downarrow$" in latex
    assert r"a\_b\|c & 5%" in markdown
    assert "&lt;b&gt;" in html
    for text in (latex, markdown, html, str(table), table.to_csv()):
        assert "\x1b" not in text


def test_latex_is_a_booktabs_table(table: ResultTable) -> None:
    lines = table.to_latex(label="tab:all").splitlines()
    assert lines[0] == r"\begin{table}"
    assert r"\label{tab:all}" in lines
    rows = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    cells = [row.removesuffix("\\\\").split("&") for row in rows if row != r"\addlinespace"]
    assert [len(row) for row in cells] == [5] * 6
    assert [row[0].strip() for row in cells] == ["true", "", "noisy", "", r"over\_confident", ""]
    assert sum(r"\mathbf" in row for row in rows) >= 1
    alone = table.to_latex(interval="subscript", caption=False)
    assert alone.startswith(r"\begin{tabular}{lllll}")
    assert "_{[" in alone
    for text in (alone, table.to_latex(noise_floor=True)):  # braces and dollars are balanced
        assert text.count("{") == text.count("}")
        assert text.count("$") % 2 == 0


def test_markdown_has_a_cell_for_every_model_and_measure(table: ResultTable) -> None:
    rows = [line for line in table.to_markdown(interval=False).splitlines() if line.startswith("|")]
    assert [row.count(" | ") for row in rows] == [4] * 5
    assert "[" not in "".join(rows)
    assert "**" in "".join(rows[2:])


def test_csv_and_frame_have_the_unrounded_numbers(table: ResultTable) -> None:
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert len(rows) == len(table.frame()) == 12
    (row,) = [row for row in rows if (row["model"], row["measure"]) == ("noisy", "ece")]
    cell = table["noisy", "ece"]
    assert (float(row["value"]), float(row["low"])) == (cell.value, cell.interval.low)


def test_the_json_keeps_its_schema(table: ResultTable) -> None:
    document = assert_valid(table.to_dict(), "table")
    assert json.loads(json.dumps(document)) == document


# Arguments


@pytest.mark.parametrize(
    ("models", "settings", "code"),
    [
        ({}, {}, "TO205"),
        ([], {}, "TO205"),
        ({1: "a", "1": "b"}, {}, "TO205"),
        (None, {"measures": ["eec"]}, "TO201"),
        (None, {"measures": []}, "TO205"),
        (None, {"measures": 3}, "TO205"),
        (None, {"measures": ["ece", "ece"]}, "TO205"),
        (None, {"measures": ["ece"], "lenses": "confidences"}, "TO204"),
        (None, {"measures": ["ece"], "lenses": 3}, "TO204"),
        (None, {"measures": ["brier"], "bins": 5}, "TO202"),
        (None, {"measures": ["ece"], "level": 95}, "TO203"),
        (None, {"measures": ["ece"], "bold": "yes"}, "TO203"),
        (None, {"measures": ["ece"], "interval": "wald"}, "TO203"),
    ],
)
def test_invalid_arguments_raise_a_coded_error(models: object, settings: dict[str, object], code: str) -> None:
    y, probs = outcomes_and_models(50)
    if models is None:
        models = {name: (y, p) for name, p in probs.items()}
    elif isinstance(models, dict):
        models = dict.fromkeys(models, (y, probs["true"]))
    with pytest.raises(InputError) as caught:
        to.table(models, **settings)
    assert caught.value.code == code


def test_one_model_needs_a_name_and_is_not_compared() -> None:
    y, models = outcomes_and_models(50)
    with pytest.raises(InputError, match="mapping of names"):
        to.table((y, models["true"]), ["brier"])
    assert not to.table({"a": (y, models["true"])}, ["brier"]).compared


def identified_models() -> tuple[to.Predictions, to.Predictions, to.Predictions]:
    """A model of rows with ids, and a second one in reverse order: of all these rows, and of all but the first ten."""
    y, models = outcomes_and_models(200)
    ids = np.array([f"row {i}" for i in range(200)])
    first = to.Predictions(y, models["true"]).with_row_id(ids)
    second = to.Predictions(y, models["noisy"]).with_row_id(ids)
    return first, second[::-1], second[:9:-1]


def test_rows_with_ids_are_paired_in_any_order() -> None:
    first, reordered, _ = identified_models()
    table = to.table({"a": first, "b": reordered}, ["brier"], **FAST)
    comparison = to.compare(first, reordered, "brier", **FAST)
    assert table.columns[0].bold == "a"
    assert table.columns[0].comparisons[0].pvalue == comparison.pvalue
    assert not table.notes


def test_paired_models_are_evaluated_on_their_common_ids() -> None:
    first, _, shorter = identified_models()
    unpaired = to.table({"a": first, "b": shorter}, ["brier"], **FAST)
    assert unpaired.columns[0].bold is None
    assert "paired=True" in next(note.text for note in unpaired.notes if note.code == "TN227")
    for bold in (True, False):
        table = to.table({"a": first, "b": shorter}, ["brier"], paired=True, bold=bold, **FAST)
        assert table.n == 190
        assert table.columns[0].estimates["a"].value == pytest.approx(
            to.measure(first[10:], "brier", interval=None).value
        )
        assert [note.code for note in table.notes] == ["TN272"]
    compared = to.table({"a": first, "b": shorter}, ["brier"], paired=True, **FAST).columns[0].comparisons[0]
    assert compared.difference == pytest.approx(to.compare(first[10:], shorter, "brier", **FAST).difference)


def test_paired_is_refused_for_different_rows() -> None:
    y, models = outcomes_and_models(50)
    different = {"a": (y, models["true"]), "b": (1 - y, models["true"])}
    with pytest.raises(InputError, match="TO205"):
        to.table(different, ["brier"], paired=True)
    with pytest.raises(InputError, match="style of intervals"):
        to.table({"a": (y, models["true"])}, ["brier"]).to_latex(interval="above")
