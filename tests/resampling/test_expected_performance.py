"""The expected performance of rows without outcomes: exact values, coverage, and agreement with scikit-learn."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binom
from sklearn import metrics

import trueodds as to
from tests.slow_parameters import slow_except
from trueodds import InputError, Predictions
from trueodds.cli import main
from trueodds.core.typing import Array
from trueodds.resampling.expected_performance import ExpectedMetric

RNG = np.random.default_rng(5)
METRICS = ("accuracy", "brier", "log_loss", "precision", "recall", "f1")
COST = [[0.0, 5.0], [1.0, 0.0]]


def draw_labels(P: Array, rng: np.random.Generator) -> Array:
    return (P.cumsum(axis=1) < rng.random(len(P))[:, None]).sum(axis=1)


@pytest.mark.slow
def test_expected_means_are_worked_out_by_hand() -> None:
    preds = Predictions(None, [0.9, 0.2])
    assert to.expect(preds, "accuracy").value == pytest.approx((0.9 + 0.8) / 2)
    assert to.expect(preds, "brier").value == pytest.approx((0.9 * 0.1 + 0.2 * 0.8) / 2)  # mean p(1 − p)
    entropy = -0.9 * np.log(0.9) - 0.1 * np.log(0.1) - 0.2 * np.log(0.2) - 0.8 * np.log(0.8)
    assert to.expect(preds, "log_loss").value == pytest.approx(entropy / 2)
    # Acting costs 1 − p, waiting 5p: the first row acts (.1 against 4.5), the second too (.8 against 1).
    assert to.expect(preds, "cost", cost=COST).value == pytest.approx((0.1 + 0.8) / 2)
    assert to.expect(preds, "accuracy", threshold=0.1).value == pytest.approx((0.9 + 0.2) / 2)
    weighted = Predictions(None, [0.9, 0.2], weight=[3, 1])
    assert to.expect(weighted, "accuracy").value == pytest.approx((3 * 0.9 + 0.8) / 4)
    three = Predictions(None, [[0.5, 0.3, 0.2]])
    assert to.expect(three, "brier").value == pytest.approx(1 - 0.25 - 0.09 - 0.04)  # 1 − Σp²
    confidence = Predictions.from_confidence([0.9, 0.4], None)
    assert to.expect(confidence, "accuracy").value == pytest.approx(0.65)


@pytest.mark.parametrize("metric", ["accuracy", "brier", "log_loss", "cost"])
@pytest.mark.parametrize("k", [2, 4, 40])
def test_draws_have_the_exact_mean_and_variance(metric: str, k: int) -> None:
    P, w, draws = RNG.dirichlet(np.full(k, 0.5), 60), RNG.integers(1, 4, 60), 20_000
    cost = RNG.uniform(0, 3, (3, k)) if metric == "cost" else None
    preds = Predictions(None, P, weight=w)
    result = to.expect(preds, metric, cost=cost, draws=draws, level=0.6826895)  # ± 1 sd if it is normal
    values = ExpectedMetric(metric, cost=cost).values(preds, P)
    mean = (P * values).sum(axis=1)
    variance = float(w**2 @ ((P * values**2).sum(axis=1) - mean**2)) / w.sum() ** 2
    assert result.value == pytest.approx(float(w @ mean) / w.sum())
    assert result.interval is not None
    # A quantile at ± 1 sd has a standard error of 1.5 sd/√draws; the rest allows for skewness and steps.
    half = (result.interval.high - result.interval.low) / 2
    assert half == pytest.approx(np.sqrt(variance), rel=0.1)
    assert (result.interval.high + result.interval.low) / 2 == pytest.approx(result.value, abs=0.15 * np.sqrt(variance))


@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
@pytest.mark.parametrize("k", [2, 5, 40])
def test_the_observed_value_is_that_of_scikit_learn(name: str, average: str, k: int) -> None:
    P = RNG.dirichlet(np.linspace(0.2, 1, k), 3000)
    y = draw_labels(P, RNG)
    result = to.expect(Predictions(y, P), name, average=average, draws=200)
    score: Any = getattr(metrics, f"{name}_score")
    present = sorted(set(y) | set(P.argmax(axis=1)))
    assert len(present) == k
    assert result.observed == pytest.approx(score(y, P.argmax(axis=1), average=average))
    assert result.interval is not None
    assert result.interval.low <= result.value <= result.interval.high


def test_labels_change_nothing_but_what_is_observed() -> None:
    p = RNG.uniform(0.05, 0.95, 400)
    y = (RNG.random(400) < p).astype(int)
    partly = np.where(np.arange(400) < 200, y, np.nan)
    for metric in METRICS:
        results = [to.expect(Predictions(labels, p), metric) for labels in (y, 1 - y, partly, None)]
        assert len({(result.value, result.interval) for result in results}) == 1
        assert [result.observed is None for result in results] == [False, False, True, True]
    assert to.expect(Predictions(y, p), "recall").observed == pytest.approx(metrics.recall_score(y, p > 0.5))
    assert to.expect(Predictions(y, p), "brier").observed == pytest.approx(metrics.brier_score_loss(y, p))


def test_batches_and_files_do_not_change_the_draws(tmp_path: Path) -> None:
    P = RNG.dirichlet([1, 1, 1], 500)
    rows = ["p_a,p_b,p_c", *(",".join(map(repr, row)) for row in P.tolist())]
    (tmp_path / "rows.csv").write_text("\n".join(rows), encoding="utf-8")
    for metric in ("log_loss", "f1"):
        whole = to.expect(Predictions(None, P), metric)
        for batch_rows in (7, 200):
            part = to.expect(to.read(tmp_path / "rows.csv", label=None, batch_rows=batch_rows), metric)
            assert part.value == pytest.approx(whole.value, rel=1e-12)
            assert part.interval is not None
            assert whole.interval is not None
            assert (part.interval.low, part.interval.high) == pytest.approx((whole.interval.low, whole.interval.high))
    assert to.expect(Predictions(None, P), rng=1).interval != to.expect(Predictions(None, P), rng=2).interval


DESIGNS: dict[str, tuple[str, int, Callable[[np.random.Generator, int], Array], dict[str, Any]]] = {
    "recall of 30 rows": ("recall", 30, lambda rng, n: rng.beta(0.6, 1.2, n), {}),
    "precision of 30 rows": ("precision", 30, lambda rng, n: rng.beta(0.6, 1.2, n), {}),
    "f1 of 50 rows": ("f1", 50, lambda rng, n: rng.beta(1, 3, n), {"threshold": 0.3}),
    "accuracy of sharp rows": ("accuracy", 40, lambda rng, n: rng.beta(0.1, 0.1, n), {}),
    "brier of rare events": ("brier", 200, lambda rng, n: rng.beta(0.5, 30, n), {}),
    "log loss of rare events": ("log_loss", 200, lambda rng, n: rng.beta(0.5, 30, n), {}),
    "macro f1 of 4 classes": ("f1", 120, lambda rng, n: rng.dirichlet([1, 0.7, 0.5, 0.3], n), {}),
    "weighted recall": ("recall", 100, lambda rng, n: rng.dirichlet([1, 0.5, 0.2], n), {"average": "weighted"}),
    "cost": ("cost", 60, lambda rng, n: rng.beta(1, 4, n), {"cost": COST}),
}


@pytest.mark.parametrize("design", slow_except(DESIGNS, ["brier of rare events", "cost"]))
def test_the_interval_covers_what_is_observed(design: str) -> None:
    # Of 400 calibrated sets, those that are covered at 95 % are Binomial(400, .95): at least 365 with probability
    # 1 − .0003. Values are discrete, so that the coverage may be larger.
    metric, n, make, settings = DESIGNS[design]
    rng, covered, defined = np.random.default_rng(11), 0, 0
    for number in range(400):
        p = make(rng, n)
        y = draw_labels(np.stack([1 - p, p], axis=1) if p.ndim == 1 else p, rng)
        result = to.expect(Predictions(y, p), metric, rng=number, **settings)
        if result.interval is None or result.observed is None or np.isnan(result.observed):
            continue  # no row is predicted as an event, or no event was observed
        defined += 1
        covered += result.interval.low - 1e-12 <= result.observed <= result.interval.high + 1e-12
    assert defined > 300
    assert covered >= binom.ppf(0.0003, defined, 0.95)


@pytest.mark.slow
def test_the_interval_includes_the_uncertainty_of_a_fitted_map() -> None:
    # The map is fitted to 150 rows: without its uncertainty the interval of a large set covers far less than 95 %.
    rng, covered, narrow, sets = np.random.default_rng(3), 0, 0, 40
    for number in range(sets):
        x = rng.normal(0, 1.5, 150 + 2000)
        y = (rng.random(len(x)) < 1 / (1 + np.exp(-(0.4 + 0.7 * x)))).astype(int)
        p = 1 / (1 + np.exp(-x))
        fitted = to.fit(Predictions(y[:150], p[:150]), "llo")
        new = Predictions(y[150:], p[150:])
        with_map = to.expect(new, "accuracy", calibrator=fitted, draws=400, rng=number)
        without = to.expect(fitted.recalibrate(new), "accuracy", draws=400, rng=number)
        assert with_map.interval is not None
        assert without.interval is not None
        assert with_map.value == pytest.approx(without.value)
        assert with_map.observed is not None
        covered += with_map.interval.low <= with_map.observed <= with_map.interval.high
        narrow += without.interval.low <= with_map.observed <= without.interval.high
    assert covered >= binom.ppf(0.001, sets, 0.95)
    assert narrow < binom.ppf(0.001, sets, 0.95)


def test_a_map_without_known_uncertainty_is_refused_and_bootstrap_fits_are_taken() -> None:
    p = RNG.uniform(0.05, 0.95, 300)
    preds = Predictions((RNG.random(300) < p).astype(int), p)
    fitted = to.fit(preds, "temperature")
    with pytest.raises(InputError, match=r"TO515.*temperature of 2 classes"):
        to.expect(preds, calibrator=fitted)
    fits = [to.fit(preds[RNG.integers(0, 300, 300)], "temperature") for _ in range(30)]
    result = to.expect(preds, "brier", calibrator=[fitted, *fits])
    assert result.value == pytest.approx(to.expect(fitted.recalibrate(preds), "brier").value)
    assert result.settings["maps"] == 30


def test_rows_of_the_fit_are_noted(tmp_path: Path) -> None:
    p = RNG.uniform(0.05, 0.95, 300)
    preds = Predictions((RNG.random(300) < p).astype(int), p)
    fitted = to.fit(preds, "llo")
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.column_stack([preds.y, p]), delimiter=",", header="label,p", comments="", fmt="%.17g")

    def codes(data: Any) -> list[str]:
        return [note.code for note in to.expect(data, "brier", calibrator=fitted, draws=100).notes]

    assert codes(preds).count("TN164") == 1
    assert codes(to.read(path, probs="p")).count("TN164") == 1
    assert "TN164" not in codes(preds[::-1])
    assert "TN164" not in codes(Predictions(None, p))  # rows are recognized by their labels


def test_undefined_draws_are_counted_and_left_out() -> None:
    rare = to.expect(Predictions(None, [0.6, 0.1, 0.02]), "recall")
    # No event occurs with probability .4 · .9 · .98 = .353; 2,000 draws have a standard error of .011.
    assert rare.undefined == pytest.approx(0.353, abs=0.045)
    assert "undefined in 3" in str(rare)
    never = to.expect(Predictions(None, [0.1, 0.2]), "precision")
    assert (np.isnan(never.value), never.interval, never.undefined) == (True, None, 1.0)
    assert "TN155" in {note.code for note in never.notes}


def test_the_result_says_that_it_rests_on_calibration() -> None:
    result = to.expect(Predictions(None, [0.2, 0.7]))
    assert "if the probabilities are calibrated" in repr(result)
    assert "TN291" in result.summary()
    assert result.to_dict()["rests_on_calibration"] is True
    assert "calibrated" in result._repr_html_()
    clustered = to.expect(Predictions(None, [0.2, 0.7], cluster=[0, 0]))
    assert "TN292" in {note.code for note in clustered.notes}
    assert float(result) == result.value


@pytest.mark.parametrize(
    ("preds", "settings", "code"),
    [
        (Predictions(None, [0.2, 0.7]), {"metric": "auc"}, "TO203"),
        (Predictions(None, [0.2, 0.7]), {"metric": "brier", "threshold": 0.3}, "TO205"),
        (Predictions(None, [0.2, 0.7]), {"metric": "accuracy", "average": "macro"}, "TO205"),
        (Predictions(None, [0.2, 0.7]), {"metric": "cost"}, "TO205"),
        (Predictions(None, [0.2, 0.7]), {"metric": "accuracy", "cost": COST}, "TO205"),
        (Predictions(None, [0.2, 0.7]), {"metric": "cost", "cost": [[1, 2, 3]]}, "TO205"),
        (Predictions(None, [0.2, 0.7]), {"threshold": 1.5}, "TO203"),
        (Predictions(None, [0.2, 0.7]), {"draws": 5}, "TO203"),
        (Predictions(None, [[0.2, 0.7, 0.1]]), {"threshold": 0.3}, "TO205"),
        (Predictions(None, [[0.2, 0.7, 0.1]]), {"metric": "f1", "average": "binary"}, "TO205"),
        (Predictions.from_confidence([0.2], None), {"metric": "recall"}, "TO205"),
        (Predictions.from_multilabel([[0, 1]], [[0.2, 0.7]]), {}, "TO204"),
        (to.tally(Predictions([0, 1], [0.2, 0.7])), {}, "TO403"),
    ],
)  # fmt: skip
def test_settings_that_do_not_fit_are_refused(preds: Any, settings: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError, match=code):
        to.expect(preds, **settings)


def test_the_precision_of_a_class_that_is_never_predicted_is_undefined_with_a_note() -> None:
    preds = Predictions(None, [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1]] * 20, classes=["a", "b", "c"])
    notes = {}
    for average in ("macro", "weighted"):
        expected = to.expect(preds, "precision", average=average)
        assert np.isnan(expected.value) == (average == "macro")
        assert expected.undefined == pytest.approx(1 if average == "macro" else 1 - 0.9**40, abs=0.02)
        notes[average] = next(note.text for note in expected.notes if note.code == "TN290")
    assert notes["macro"] == "No row is predicted as c, so that the macro precision is undefined."
    assert notes["weighted"].endswith("the weighted precision is undefined in every draw in which it is observed.")
    binary = to.expect(Predictions(None, [0.2, 0.4]), "precision")
    assert np.isnan(binary.value)
    assert "TN290" in {note.code for note in binary.notes}
    for settings in ({"metric": "precision", "average": "micro"}, {"metric": "recall"}, {"metric": "f1"}):
        assert "TN290" not in {note.code for note in to.expect(preds, **settings).notes}


def test_the_command_needs_no_label_and_gates_the_value(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("p_no,p_yes\n" + "0.1,0.9\n0.2,0.8\n0.7,0.3\n" * 50, encoding="utf-8")
    done = CliRunner().invoke(main, ["expect", str(path), "--fail-on", "value<.7", "--json", "-"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["value"] == pytest.approx(0.8)
    assert document["rests_on_calibration"] is True
    words = ["expect", str(path), "--metric", "recall", "--threshold", ".25"]
    assert CliRunner().invoke(main, [*words, "--fail-on", "value<.7"]).exit_code == 0  # every row is predicted
    assert CliRunner().invoke(main, ["expect", str(path), "--fail-on", "value.low<.8"]).exit_code == 1
    (tmp_path / "cost.csv").write_text("action,no,yes\nwait,0,5\nact,1,0\n", encoding="utf-8")
    costs = ["expect", str(path), "--metric", "cost", "--cost", str(tmp_path / "cost.csv")]
    assert "expected cost" in CliRunner().invoke(main, costs).output
    refused = CliRunner().invoke(main, ["expect", str(path), "--label", "outcome"])
    assert (refused.exit_code, "TO304" in refused.output) == (2, True)
