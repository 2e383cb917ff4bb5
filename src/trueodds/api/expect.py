"""Expect the performance of predictions whose outcomes are not known yet: the public function `expect`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from trueodds.calibrators.calibrator_predictions import replace_probabilities
from trueodds.calibrators.fitted_calibrator import FittedCalibrator
from trueodds.core.docstrings import insert_shared_parameters
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.rng import as_generator, reported_seed, stream_key
from trueodds.core.settings import Level, Probability, check
from trueodds.data.predictions import Predictions
from trueodds.estimators.costs import Cost, check_cost
from trueodds.io.read import read_unlabeled
from trueodds.io.source import InMemorySource
from trueodds.resampling.expected_performance import (
    DrawnPerformance,
    Expectation,
    ExpectedMetric,
    check_metric,
    check_settings_of_metric,
    interval_of_draws,
)
from trueodds.tallies.tally import NO_ROWS_TEXT, require_rows

MAPS_PER_RESULT = 200  # number of maps that are drawn from the uncertainty of a fit
ROWS_PER_BATCH = 16_384  # whose outcomes are drawn at a time
Metric = Literal["accuracy", "brier", "log_loss", "precision", "recall", "f1", "cost"]
Average = Literal["binary", "micro", "macro", "weighted"]


@insert_shared_parameters
def expect(
    predictions: Any,
    metric: Metric = "accuracy",
    *,
    cost: Cost | None = None,
    threshold: float | None = None,
    average: Average | None = None,
    calibrator: Any = None,
    level: float = 0.95,
    draws: int = 2000,
    rng: int | np.random.Generator = 0,
) -> Expectation:
    r"""Estimate the performance that predictions will have if their probabilities are calibrated.

    No outcome is used: outcomes are drawn from the probabilities. The result rests on calibration, and cannot show that
    the probabilities are wrong. Measure the performance as soon as there are labels.

    Parameters
    ----------
    predictions : Predictions, Source, path or data frame
        Predictions, such as ``Predictions(None, p)``. Labels need not exist. If all rows have one, the observed
        performance is shown beside the expected one; it changes nothing else.
    metric : {"accuracy", "brier", "log_loss", "precision", "recall", "f1", "cost"}, default="accuracy"
        What is expected. A cost is that of the actions of least expected cost.
    cost : table (actions, K), optional
        Cost of each action for each true class, for the metric ``"cost"``.
    threshold : float, optional
        Probability from which the second of two classes is predicted. By default the most probable class is predicted.
    average : {"binary", "micro", "macro", "weighted"}, optional
        How precision, recall and F1 of several classes are averaged, as in scikit-learn. The default is ``"binary"``
        for two classes, the value of the second one, and ``"macro"`` for more.
    calibrator : FittedCalibrator or sequence of such, optional
        Fitted map that is applied to the predictions first. The interval then also covers the uncertainty of its
        parameters, which `llo` and `mcllo` of two classes have. For any other map, pass a list: the map, and its fits
        to bootstrap resamples of the rows.
    level : float, default=0.95
        Probability with which the interval covers the observed value.
    draws : int, default=2000
        Number of draws of the outcomes.
    rng : as in `as_generator`

    Returns
    -------
    Expectation
        The expected value and its interval, which prints in one line.

    Raises
    ------
    InputError
        TO101 to TO118 for invalid probabilities, TO203 for an invalid setting, TO204 or TO205 for a metric or setting
        that does not fit the predictions, TO403 for a tally, TO515 for a map without known uncertainty.

    See Also
    --------
    measure : Estimate an error or a score from rows with outcomes.

    Notes
    -----
    The expected value of a mean (accuracy, scores, cost) is

    .. math:: \frac{1}{\sum_i w_i} \sum_i w_i \sum_k p_{ik}\, s_i(k)

    with the score s_i(k) of row i if class k is observed. Precision, recall and F1 are ratios of sums of drawn
    outcomes; their expected value is the mean over the draws in which they are defined, and the share of the others is
    part of the result. The interval reaches between two draws, so that it covers at least `level` of them. It contains
    the value that will be *observed on these rows*, not only its mean. Rows are independent, given their probabilities:
    outcomes of clusters vary more.

    Cost: O(n · draws) time, which does not depend on the number of classes, and memory of O(draws · K). The outcomes of
    100,000 rows with ten classes take about two seconds on one core.

    Examples
    --------
    >>> import trueodds as to
    >>> preds = to.Predictions(None, [0.9, 0.8, 0.3, 0.1] * 100)
    >>> expected = to.expect(preds, "accuracy")
    >>> round(expected.value, 4)  # (.9 + .8 + .7 + .9) / 4
    0.825
    >>> expected.interval.low < 0.8 < expected.interval.high
    True
    """
    check_metric_name = check("metric", metric, Metric)
    table = None if cost is None else np.asarray(check_cost(cost))
    if table is not None and table.ndim != 2:
        raise InputError(
            "TO203", "cost must be one table of actions and classes.", describe(cost), "For instance [[0, 5], [1, 0]]."
        )
    requested = ExpectedMetric(
        check_metric_name,
        check("threshold", threshold, Probability | None, None),
        check("average", average, Average | None, None),
        table,
    )
    check_settings_of_metric(requested)
    level, draws = check("level", level, Level, 0.95), check("draws", draws, int, 2000)
    if not 100 <= draws <= 1_000_000:
        raise InputError("TO203", "draws must lie in 100..1,000,000.", f"⟨draws={draws}⟩", "Use the default, 2,000.")
    require_rows(predictions, NO_ROWS_TEXT)
    generator = as_generator(rng)
    key = stream_key(generator)
    fitted, maps = _sample_maps(calibrator, draws, generator)
    source = read_unlabeled(predictions)
    sums: DrawnPerformance | None = None
    notes: list[Note] = list(source.notes)
    has_clusters = False
    given = all_rows = predictions if isinstance(predictions, Predictions) else None
    for number, batch in enumerate(source.batches()):
        all_rows = batch if number == 0 and given is None else given
        for preds in InMemorySource(batch, ROWS_PER_BATCH).batches():
            sums = sums or DrawnPerformance(check_metric(requested, preds), draws, key)
            shown = preds if fitted is None else _recalibrate(fitted, preds)
            P = np.asarray(shown.P, dtype=np.float64)
            sums.add(shown, P, [_recalibrate(other, preds).P for other in maps] or [P])
            has_clusters |= preds.cluster is not None
        notes += [note for note in batch.notes if note not in notes]
    if fitted is not None and all_rows is not None:
        notes += fitted.notes_on_rows(all_rows)
    assert sums is not None
    value, drawn, observed = sums.values()
    interval, undefined = interval_of_draws(drawn, level)
    used = sums.metric
    settings: dict[str, Any] = {"seed": reported_seed(rng), "threshold": used.threshold, "average": used.average}
    settings |= {} if table is None else {"cost": table.tolist()}
    settings |= {} if fitted is None else {"calibrator": fitted.method, "maps": len(maps)}
    notes += _notes_on_assumptions(has_clusters)
    if undefined_classes := sums.undefined_classes:
        names = ", ".join(str(preds.classes[k]) for k in undefined_classes)
        where = " in every draw in which it is observed" if used.average == "weighted" else ""
        text = f"No row is predicted as {names}, so that the {used.average} precision is undefined{where}."
        notes.append(Note("TN290", text))
    settings = {name: setting for name, setting in settings.items() if setting is not None}
    return Expectation(used.name, value, sums.n, interval, undefined, observed, draws, settings, tuple(notes))


def _recalibrate(fitted: FittedCalibrator, preds: Predictions) -> Predictions:
    return replace_probabilities(preds, fitted.predict_proba(preds, logits=fitted.calibration_map.logits))


def _sample_maps(
    calibrator: Any, draws: int, generator: np.random.Generator
) -> tuple[FittedCalibrator | None, list[FittedCalibrator]]:
    """Return the map to apply and the maps from which outcomes are drawn; raise TO515 if there is no uncertainty."""
    if calibrator is None:
        return None, []
    if isinstance(calibrator, Sequence) and not isinstance(calibrator, str):
        maps = list(calibrator)
        if len(maps) < 21 or not all(isinstance(fitted, FittedCalibrator) for fitted in maps):
            fix = "Pass the map, and 20 or more of its fits to bootstrap resamples of the rows."
            raise InputError("TO203", "calibrator must be a list of fitted calibrators.", describe(calibrator), fix)
        return maps[0], maps[1 : draws + 1]
    if not isinstance(calibrator, FittedCalibrator):
        fix = "Pass the result of to.fit or to.load."
        raise InputError("TO203", "calibrator must be a fitted calibrator.", describe(calibrator), fix)
    fitted_map: Any = calibrator.calibration_map
    uncertainty = getattr(fitted_map, "uncertainty", None)
    covariance = None if uncertainty is None else uncertainty.covariance
    if covariance is None or len(covariance) != 1:
        fix = (
            "Pass ⟨calibrator=[fitted, …]⟩, the map and its fits to bootstrap resamples; or recalibrate the rows first,"
            " without this uncertainty."
        )
        got = f"{calibrator.method} of {calibrator.k} classes"
        raise InputError("TO515", "The uncertainty of the parameters of this map is not known.", got, fix)
    center = [float(np.ravel(fitted_map.tau)[0]), float(np.ravel(fitted_map.gamma)[0])]
    is_array = isinstance(fitted_map.tau, np.ndarray)
    sampled = []
    for tau, gamma in generator.multivariate_normal(center, covariance[0], size=min(MAPS_PER_RESULT, draws)):
        parameters = {"tau": np.array([tau]), "gamma": np.array([gamma])} if is_array else {"tau": tau, "gamma": gamma}
        sampled.append(replace(calibrator, calibration_map=replace(fitted_map, **parameters)))
    return calibrator, sampled


def _notes_on_assumptions(has_clusters: bool) -> list[Note]:
    text = (
        "The expected performance rests on calibration: outcomes are drawn from the probabilities, not observed. It"
        " cannot show that the probabilities are wrong; measure the performance as soon as there are labels."
    )
    notes = [Note("TN291", text)]
    if has_clusters:
        text = "Outcomes are drawn independently, although the rows have clusters, so that the interval is too narrow."
        notes.append(Note("TN292", text))
    return notes
