"""Are the measures after recalibration those of predictions that were recalibrated fold by fold?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import trueodds as to
from trueodds.calibrators.choose import assign_folds
from trueodds.calibrators.temperature import TemperatureSpec
from trueodds.cli import main
from trueodds.core.typing import Array
from trueodds.estimators.recalibrated import cross_fitted_predictions
from trueodds.lenses.view import View

NAMES = ("ece", "log_loss")


def overconfident(n: int = 400, k: int = 3, **columns: Any) -> to.Predictions:
    """Logits that are twice as large as they should be."""
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 1.5, (n, k))
    calibrated, stated = (np.exp(factor * logits) for factor in (1, 2))
    calibrated /= calibrated.sum(axis=1, keepdims=True)
    y = (calibrated.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=k - 1)
    return to.Predictions(y, stated / stated.sum(axis=1, keepdims=True), **columns)


def recalibrated_by_hand(preds: to.Predictions) -> to.Predictions:
    """The predictions with the temperature of the other four folds, by the public functions."""
    fold = assign_folds(preds.P, preds.Y, preds.w, 5, preds.cluster, np.random.default_rng(0)).fold_of_row
    P = np.empty(preds.P.shape)
    for f in range(5):
        P[fold == f] = to.fit(preds[fold != f], "temperature").predict_proba(preds.P[fold == f])
    return to.Predictions(labels(preds), P, sum_tolerance=1e-6, cluster=preds.cluster)


def labels(preds: to.Predictions) -> Array:
    assert preds.y is not None
    return preds.y


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_value_interval_and_noise_floor_are_those_of_the_recalibrated_predictions(name: str, k: int) -> None:
    preds = overconfident(k=k)
    after = to.measure(preds, f"{name}_recalibrated", resamples=200)
    by_hand = to.measure(recalibrated_by_hand(preds), name, resamples=200)
    assert after.value == pytest.approx(by_hand.value)
    assert after.noise_floor == pytest.approx(by_hand.noise_floor)
    assert after.interval is not None
    assert by_hand.interval is not None
    assert [after.interval.low, after.interval.high] == pytest.approx([by_hand.interval.low, by_hand.interval.high])
    assert after.lens == by_hand.lens
    assert after.estimator == f"{name}_recalibrated"
    assert {"calibrator": "temperature", "folds": 5, "fold_seed": 0}.items() <= after.settings.items()
    assert after.value < to.measure(preds, name, interval=None).value
    assert "TN285" in [note.code for note in after.notes]


def test_calibrator_folds_bins_and_lens_are_settings() -> None:
    preds = overconfident()
    how: dict[str, Any] = {"lens": "class:1", "bins": 7, "rng": 2, "resamples": 99}
    estimate = to.measure(preds, "ece_recalibrated", calibrator="identity", folds=3, **how)
    plain = to.measure(preds, "ece", **how)
    assert (estimate.value, estimate.interval) == (plain.value, plain.interval)  # the identity changes nothing
    assert (estimate.settings["folds"], estimate.settings["fold_seed"]) == (3, 2)
    by_instance = to.measure(preds, "ece_recalibrated", calibrator=TemperatureSpec(), interval=None)
    assert by_instance.value == to.measure(preds, "ece_recalibrated", interval=None).value
    with pytest.raises(to.InputError, match="TO201"):
        to.measure(preds, "log_loss_recalibrated", calibrator="temprature")


def test_rows_of_a_cluster_share_their_fold() -> None:
    # Each row occurs four times: without clusters, its copies would be fitted to its own outcome.
    once, rows = overconfident(60), np.repeat(np.arange(60), 4)
    preds = to.Predictions(labels(once)[rows], once.P[rows], cluster=rows)
    by_hand = to.measure(recalibrated_by_hand(preds), "log_loss", interval=None).value
    assert to.measure(preds, "log_loss_recalibrated", interval=None).value == pytest.approx(by_hand)


def test_no_row_is_recalibrated_by_its_own_outcome() -> None:
    # The outcome of the first row changes the fits of the other folds, but not its own probabilities.
    preds = overconfident(50)
    y = labels(preds).copy()
    y[0] = (y[0] + 1) % 3
    first, second = (cross_fitted_predictions(one, TemperatureSpec(), 5, 0)
                     for one in (preds, to.Predictions(y, preds.P)))  # fmt: skip
    assert first.P[0] == pytest.approx(second.P[0])
    assert not np.allclose(first.P, second.P)


def test_models_are_compared_and_tabulated_after_recalibration() -> None:
    sharp = overconfident()
    flat = to.Predictions(labels(sharp), np.sqrt(sharp.P) / np.sqrt(sharp.P).sum(axis=1, keepdims=True))
    # A temperature of two undoes the difference of the models.
    comparison = to.compare(sharp, flat, "log_loss_recalibrated")
    assert comparison.difference == pytest.approx(0, abs=1e-6)
    columns = ["log_loss", "log_loss_recalibrated", "ece", "ece_recalibrated"]
    table = to.table({"sharp": sharp, "flat": flat}, columns, resamples=99)
    assert [column.label for column in table.columns] == columns
    estimates = [column.estimates["sharp"].value for column in table.columns]
    assert estimates[1] < estimates[0]
    assert estimates[3] < estimates[2]
    assert table.columns[0].bold == "flat"
    assert table.columns[1].bold is None


def test_groups_are_measured_after_one_recalibration_of_all_rows() -> None:
    preds = overconfident(600, group={"site": np.arange(600) % 2})
    by_group = to.by_group(preds, "ece_recalibrated", resamples=199)
    assert by_group.overall.value == pytest.approx(to.measure(preds, "ece_recalibrated", interval=None).value)
    assert to.by_group(preds, "ece", resamples=199).pvalue <= 0.01 < by_group.pvalue


def test_a_part_of_the_predictions_cannot_be_recalibrated() -> None:
    preds = overconfident(20)
    with pytest.raises(to.InputError, match="TO403"):
        to.measure(to.tally(preds), "ece_recalibrated")
    with pytest.raises(to.InputError, match="TO205"):
        to.estimators.ece_recalibrated()(View(p=[0.2, 0.7, 0.9], y=[0, 1, 1], classes=3))
    with pytest.raises(to.InputError, match="TO502"):
        to.measure(to.Predictions.from_multilabel([[0, 1], [1, 1]], [[0.2, 0.7], [0.8, 0.4]]), "ece_recalibrated")
    with pytest.raises(to.InputError, match="TO507"):
        to.measure([1], [0.5], "ece_recalibrated")


@pytest.mark.slow
def test_the_command_line_measures_and_gates_before_and_after(tmp_path: Path) -> None:
    preds = overconfident(200)
    file = tmp_path / "preds.csv"
    rows = [",".join([*map(repr, p.tolist()), str(y)]) for p, y in zip(preds.P, labels(preds), strict=True)]
    file.write_text("\n".join(["p_0,p_1,p_2,label", *rows]) + "\n", encoding="utf-8")

    def run(*words: object) -> Any:
        return CliRunner().invoke(main, [str(word) for word in words])

    how = ("--estimator", "ece_recalibrated", "--set", "calibrator=temperature", "--set", "folds=4")
    done = run("measure", file, *how, "--fail-on", "ece_recalibrated.high>0.9")
    assert done.exit_code == 0, done.output
    assert "temperature, fitted to the other 3 folds, recalibrated each row" in " ".join(done.stdout.split())
    assert run("audit", file, "--resamples", 99, "--fail-on", "log_loss_recalibrated>0.1").exit_code == 1
