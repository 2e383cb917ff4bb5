"""What each recalibration does to rows it has not seen."""

import numpy as np

import trueodds as to
from trueodds.data.predictions import Predictions
from trueodds_studies.common.recalibration_methods import (
    METHODS,
    MIN_PROB,
    evaluate_methods,
    method_rows,
    sqrt_bin_count,
)


def rows(seed, n=400):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), n)
    true = P**0.5 / (P**0.5).sum(axis=1, keepdims=True)
    return Predictions((true.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1), P)


def test_bins_are_the_root_of_the_rows_rounded_up():
    assert (sqrt_bin_count(396), sqrt_bin_count(132), sqrt_bin_count(100)) == (
        20,
        12,
        10,
    )  # as the paper prints for its 396 and 132 rows


def test_every_method_is_tested_on_the_rows_it_has_not_seen():
    table = {row["method"]: row for row in method_rows(rows(0), rows(1))}
    assert list(table) == [method.label for method in METHODS]
    none, temperature = table["none"], table["temperature on log p"]
    assert none["changed"] == temperature["changed"] == 0.0
    assert none["accuracy"] == temperature["accuracy"]
    # Odds are too extreme by a power of two, which a temperature mends whole.
    assert temperature["log loss"] < none["log loss"]
    assert none["p"] < 0.001 < temperature["p"]
    assert all(row["n"] == 400 for row in table.values())


def test_rows_in_clusters_are_tested_by_whole_clusters():
    learn, evaluation = rows(0, 100), rows(1, 100)
    twice = [
        Predictions(np.repeat(r.y, 2), np.repeat(r.P, 2, axis=0), cluster=np.repeat(np.arange(100), 2))
        for r in (learn, evaluation)
    ]
    (single,), (double,) = (list(evaluate_methods(*pair, METHODS[:1])) for pair in ((learn, evaluation), twice))
    assert double.verdict.settings["null"] == "redraw"
    assert single.verdict.settings["null"] == "asymptotic"
    # A row that stands twice is one piece of news:
    # as independent rows its statistic, and so the evidence, would double.
    unclustered = Predictions(twice[1].y, twice[1].P)
    assert double.row["p"] > to.test(unclustered, "mcllo", null="redraw", min_prob=MIN_PROB).pvalue
    assert double.row["log loss"] == single.row["log loss"]
    assert (double.row["n"], double.calibration_map.name) == (200, "identity")
