"""The caption of a table: it names bins and lenses, and explains only what the table shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import trueodds as to
from trueodds.api.table_caption import caption_sentences
from trueodds.api.table_columns import MeasureColumn
from trueodds.api.table_results import ResultTable
from trueodds.core.errors import InputError
from trueodds.core.results import Estimate, Interval


def rows(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Labels of three classes, and the probabilities from which they are drawn."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), n)
    return (P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=2), P


def table(measures: Any, lenses: Any = None, *, better: bool = False, **settings: Any) -> ResultTable:
    """A table of two models, of which the second is equally good or worse."""
    y, P = rows()
    other = np.roll(P, 1, axis=1) if better else P
    return to.table(y, {"a": P, "b": other}, measures, lenses, resamples=100, **settings)


def formats(result: ResultTable) -> dict[str, str]:
    """The captions in all formats, with blanks in place of line breaks."""
    texts = {
        "text": result.describe(),
        "markdown": result.to_markdown(noise_floor=True),
        "latex": result.to_latex(noise_floor=True),
        "html": result._repr_html_(),
        "caption": result.caption,
    }
    return {name: " ".join(text.split()).replace("\\", "") for name, text in texts.items()}


def test_no_format_explains_bold_values_if_there_are_none() -> None:
    result = table(["ece", "brier"])
    assert result.compared
    assert set(result.bold.values()) == {None}
    for name, text in formats(result).items():
        assert "Bold:" not in text
        assert "No model is significantly better than every other model" in " ".join(text.split())
        assert f"so no value is {'marked *' if name == 'text' else 'bold'}." in " ".join(text.split())


def test_every_format_explains_bold_values_if_there_are_some() -> None:
    result = table(["ece", "brier"], better=True)
    assert result.bold["brier"] == "a"
    for name, text in formats(result).items():
        assert ("*: " if name == "text" else "Bold: ") + "significantly better than every other model" in text
        assert "no value is" not in text


def test_the_caption_names_bins_and_lenses_in_words() -> None:
    measures = {"Acc": "accuracy", "ECE": "ece", "cwECE": "sce", "L2": "debiased_l2", "NLL": "log_loss", "B": "brier"}
    caption = table(measures).caption
    n_bins = table(measures)["a", "L2"].settings["bins"]
    assert caption.startswith(
        "ECE: 15 uniform bins of the confidence; cwECE: 15 uniform bins of the probability of each class, mean of the "
        f"classes; L2: {n_bins} equal-mass bins of the confidence; NLL, B: all predicted probabilities. n = 300 rows"
    )
    named = table(["ece", "brier"], ["class:1", "top-label"], bins=10, bold=False).caption
    assert "10 uniform bins of the probability of class 1" in named
    assert "brier (top-label): the confidence within each predicted class" in named


def test_a_table_of_accuracy_alone_needs_no_description_of_columns() -> None:
    assert table(["accuracy"]).caption.startswith("n = 300 rows, the same for all models. Brackets")


def test_parentheses_are_the_expected_value_of_any_measure() -> None:
    result = table(["accuracy", "log_loss", "ece"])
    for text in formats(result).values():
        assert "Parentheses: expected value if the model were calibrated." in text
        assert "(noise floor)" not in text
    assert "expected if calibrated" in str(result["a", "accuracy"])
    assert "noise floor" in str(result["a", "ece"])
    assert "Parentheses" not in result.to_latex()


def column(value: float, high: float, method: str) -> MeasureColumn:
    """A column of one model."""
    estimate = Estimate("ece", "confidence", value, 10, Interval(0.0, high, 0.95, method))
    return MeasureColumn("ece", "ece", "confidence", "lower", 0.0, {"a": estimate})


@pytest.mark.parametrize(
    ("value", "high", "method", "is_explained"),
    [
        (0.01, 0.01, "folded-normal", True),
        (0.01, 0.01, "residual-norm", True),
        (0.01, 0.02, "folded-normal", False),
        (0.01, 0.01, "bca", False),  # not extended
        (0.0, 0.0, "folded-normal", False),  # no interval to speak of
    ],
)
def test_only_an_interval_that_ends_at_its_estimate_is_explained(
    value: float, high: float, method: str, is_explained: bool
) -> None:
    sentences = caption_sentences([column(value, high, method)], 0.95, compared=False, interval=True, noise_floor=True)
    assert any("correct the upward bias" in sentence for sentence in sentences) == is_explained


def test_a_wide_table_spans_both_columns_of_a_page() -> None:
    lines = table(["ece"]).to_latex(wide=True, label="tab:a").splitlines()
    assert (lines[0], lines[-1]) == (r"\begin{table*}", r"\end{table*}")


def test_headings_and_names_may_be_latex() -> None:
    y, P = rows()
    result = to.table(y, {r"\textsc{A}": P}, {"$L_2$": "ece"}, interval=None)
    assert r"\textsc{A} & $" in result.to_latex(raw_labels=True)
    assert r"& $L_2$ $\downarrow$" in result.to_latex(raw_labels=True)
    assert r"\caption{$L_2$: 15 uniform bins" in result.to_latex(raw_labels=True)
    assert r"\caption{\$L\_2\$: 15 uniform bins" in result.to_latex()


def test_a_caption_of_your_own_is_latex_with_raw_labels() -> None:
    result, caption = table(["ece"], interval=None), r"Results of \citet{guo}, $n=5$."
    assert rf"\caption{{{caption}}}" in result.to_latex(caption=caption, raw_labels=True)
    assert r"\caption{Results of \textbackslash{}citet\{guo\}, \$n=5\$.}" in result.to_latex(caption=caption)


def test_the_caption_says_what_an_estimator_without_bins_computes() -> None:
    text = table({"smECE": "smece", "KS": "ks"}, interval=None).caption
    assert "smECE: smooth ECE with automatic bandwidth of the confidence" in text
    assert "KS: Kolmogorov–Smirnov distance of the confidence" in text


@pytest.mark.parametrize("measure", ["cwece", "Classwise-ECE", ("ece", {"lens": "classwise"})])
def test_the_message_on_a_class_wise_error_names_sce(measure: Any) -> None:
    with pytest.raises(InputError, match=r"TO201.*\{'cwECE': 'sce'\}"):
        table([measure])
