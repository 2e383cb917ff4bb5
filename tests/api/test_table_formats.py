"""table: the forms of its arguments, the cells that it returns, and its text, LaTeX, CSV, frame and HTML."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest

import trueodds as to
from tests.api.test_table import FAST, outcomes_and_models
from trueodds.api.table_columns import MeasureColumn
from trueodds.api.table_results import ResultTable
from trueodds.core.errors import InputError
from trueodds.core.results import Estimate
from trueodds.core.table import display_width


@pytest.fixture(scope="module")
def table() -> ResultTable:
    y, models = outcomes_and_models()
    return to.table(y, models, ["accuracy", "ece", "brier", "log_loss"], **FAST)


@pytest.mark.parametrize(
    "measures", [["brier", "ece"], {"B": "brier", "E": "ece"}, "brier", np.array(["brier", "ece"])]
)
def test_a_list_of_models_takes_measures_in_every_form(measures: object) -> None:
    y, probs = outcomes_and_models(50)
    first, second = probs["true"], probs["noisy"]
    forms: dict[str, object] = {
        "pairs": [(y, first), (y, second)],
        "lists": [(list(y), list(first)), (list(y), list(second))],
        "predictions": [to.Predictions(y, first), to.Predictions(y, second)],
    }
    expected = to.table({"a": (y, first), "b": (y, second)}, measures, interval=None).to_markdown()
    for name, models in forms.items():
        assert to.table(models, measures, interval=None).to_markdown() == expected, name
    assert to.table(y, [first, second], measures, interval=None).to_markdown() == expected
    assert to.table(list(y), {"a": list(first), "b": list(second)}, measures, interval=None).to_markdown() == expected
    assert to.table([(y, first)], measures, interval=None).names == ("a",)


def test_a_ranking_takes_a_list_of_pairs() -> None:
    y, probs = outcomes_and_models(50)
    pairs = [(y, p) for p in probs.values()]
    assert to.compare(pairs, "brier", resamples=50).order == to.compare(y, list(probs.values()), "brier").order


def test_lens_is_the_same_as_lenses() -> None:
    y, probs = outcomes_and_models(50)
    models = {"a": (y, probs["true"])}
    table = to.table(models, ["ece"], lens="class:0", interval=None)
    assert table.columns[0].lens == "class:0"
    assert table.to_dict() == to.table(models, ["ece"], np.array(["class:0"]), interval=None).to_dict()
    with pytest.raises(InputError, match=r"TO202.*lens and lenses"):
        to.table(models, ["ece"], ["class:0"], lens="class:1")


@pytest.mark.parametrize("cell", [("true", "nope"), ("nope", "ece"), "true", 3, ("true",)])
def test_an_unknown_cell_raises_a_key_error_that_lists_the_headings(table: ResultTable, cell: object) -> None:
    with pytest.raises(KeyError, match=r"models true, noisy, over_confident; headings accuracy, ece, brier, log_loss"):
        table[cell]


def test_models_of_different_sizes_have_a_range_of_rows() -> None:
    y, probs = outcomes_and_models(400)
    table = to.table({"a": (y, probs["true"]), "b": (y[:100], probs["noisy"][:100])}, ["brier"], **FAST)
    for text in (table.caption, table.to_latex(), table.to_markdown(), table.describe()):
        assert "n = 100 to 400 rows." in " ".join(text.split())
    assert "n=100 to 400" in repr(table)


def test_without_intervals_three_digits_of_the_largest_value_are_printed() -> None:
    y, probs = outcomes_and_models(50)
    table = to.table({"a": (y, probs["true"])}, ["ece"], interval=None)
    for values, texts in [((0.00104, 0.00096), ("0.00104", "0.00096")), ((0.25, 0.0001), ("0.2500", "0.0001"))]:
        estimates = {name: Estimate("ece", "confidence", x, 9) for name, x in zip("ab", values, strict=True)}
        column = MeasureColumn("ece", "ece", "confidence", "lower", 0.0, estimates)
        assert tuple(column.format_cell(name).value for name in "ab") == texts
    assert table.columns[0].decimals == 4


def test_numbers_that_are_missing_are_nan_in_a_frame_and_empty_in_csv() -> None:
    pytest.importorskip("pandas")
    y, probs = outcomes_and_models(50)
    table = to.table({"a": (y, probs["true"])}, ["ece"], interval=None)
    frame = table.frame()
    for name in ("low", "high", "noise_floor"):
        assert frame[name].dtype == float
        assert math.isnan(frame[name][0])
    assert ",,,," in table.to_csv()


def test_latex_takes_intervals_as_true_or_false(table: ResultTable) -> None:
    assert table.to_latex() == table.to_latex(interval=True) == table.to_latex(interval="below")
    assert table.to_latex(interval=False) == table.to_latex(interval=None)
    for settings in ({"label": "tab:x"}, {"wide": True}, {"label": "tab:x", "wide": True}):
        with pytest.raises(InputError, match="needs a caption") as error:
            table.to_latex(caption=False, **settings)
        assert error.value.code == "TO205"
        with pytest.raises(InputError, match="needs a caption"):
            table.to_latex(caption="", **settings)


def estimated_width(latex: str) -> float:
    """Width of a tabular in points: 5 for a character, 4 in small type, and 12 between cells."""
    widths: dict[int, float] = {}
    for line in latex.splitlines():
        if " & " not in line and not line.startswith("&"):
            continue
        for column, cell in enumerate(line.removesuffix("\\\\").split("&")):
            point_size = 4.0 if "scriptsize" in cell or "_{" in cell else 5.0
            text = re.sub(r"\\(mathbf|scriptsize|small|,|uparrow|downarrow)|[${}_ ]", "", cell)
            widths[column] = max(widths.get(column, 0.0), point_size * len(text))
    return sum(width + 12 for width in widths.values())


def test_five_measures_with_intervals_and_floors_fit_a_text_of_five_and_a_half_inches() -> None:
    y, probs = outcomes_and_models(300)
    measures = {"Acc": "accuracy", "ECE": "ece", "cwECE": "sce", "Brier": "brier", "NLL": "log_loss"}
    table = to.table(y, {"ResNet-110": probs["true"], "ViT": probs["noisy"]}, measures, **FAST)
    width = 72.27 * 5.5
    assert estimated_width(table.to_latex(noise_floor=True, caption=False)) < width
    assert estimated_width(table.to_latex(interval="brackets", caption=False)) > width


def test_a_transposed_table_has_a_row_per_measure(table: ResultTable) -> None:
    lines = table.to_latex(interval=None, caption=False, transpose=True).splitlines()
    assert lines[0] == r"\begin{tabular}{llll}"
    assert lines[2] == r"& true & noisy & over\_confident \\"
    assert [line.split(" & ")[0] for line in lines[4:8]] == [
        r"accuracy $\uparrow$",
        *(rf"{name} $\downarrow$" for name in ("ece", "brier", r"log\_loss")),
    ]
    upright = table.to_latex(interval=None, caption=False).splitlines()[4:7]
    assert [line.rstrip(" \\").split(" & ")[2] for line in upright] == lines[5].rstrip(" \\").split(" & ")[1:]


@pytest.mark.parametrize("raw_labels", [False, True])
def test_a_row_of_latex_never_starts_with_an_argument_of_the_line_before(raw_labels: bool) -> None:
    # LaTeX reads a bracket or star after \\\\ or \\midrule, even on the next line, as its argument.
    y, probs = outcomes_and_models(60)
    names = ["[a] model", "*starred", " [indented", "plain", "\\textbf{x}" if raw_labels else "5 % | x"]
    table = to.table(dict.fromkeys(names, (y, probs["true"])), {"[b]": "brier", "*c": "ece"}, **FAST)
    lines = table.to_latex(raw_labels=raw_labels, noise_floor=True).splitlines()
    for before, line in itertools.pairwise(lines):
        if before.endswith(("\\\\", "rule")):
            assert not line.lstrip().startswith(("[", "*"))
    assert "{}[a] model & " in "\n".join(lines)


def test_text_is_aligned_for_wide_characters_and_fits_the_given_width() -> None:
    y, probs = outcomes_and_models(300)
    models = {
        "猫のモデル": (y, probs["true"]),
        "a model with a very long name, longer than half a line": (y, probs["noisy"]),
    }
    table = to.table(models, ["accuracy", "ece", "brier"], **FAST)
    for width in (50, 80, 110):
        lines = table.describe(width).splitlines()[1:]
        assert max(map(display_width, lines)) <= width
    heading, cat, *_ = table.describe(110).splitlines()[1:]
    column = display_width(heading.partition("accuracy")[0])
    assert display_width(cat.partition(f"{table['猫のモデル', 'accuracy'].value:.2f}"[:4])[0]) == column
    assert "a model with a very" in table.describe(110)
    assert "…" in table.describe(110)


def test_the_notebook_shows_the_table_as_other_results_are_shown(table: ResultTable) -> None:
    html = table._repr_html_()
    assert "background:transparent" in html
    assert html.count('<th scope="row"') == 3
    assert html.count("<strong>") == sum(model is not None for model in table.bold.values())
    for note in table.notes:
        assert f">{note.code}</code>" in html
