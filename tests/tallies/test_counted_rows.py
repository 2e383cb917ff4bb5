"""Is a tally of rows with counts that of the repeated rows, and as exact for a billion of them?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import trueodds as to
from tests.data.refused import refused
from tests.tallies.batches import numbers, softmaxed
from trueodds.cli import main
from trueodds.data.predictions import Predictions

N = 60
RNG = np.random.default_rng(3)
COUNTS = RNG.integers(1, 40, N)
GROUP = RNG.choice(["a", "b", "c"], N)

KINDS: dict[str, Callable[[], Predictions]] = {
    "two classes": lambda: Predictions(RNG.integers(0, 2, N), RNG.random(N), weight=COUNTS, group=GROUP),
    "three classes": lambda: softmaxed(N, 3, 1, weight=COUNTS, group=GROUP),
    "votes": lambda: Predictions(RNG.integers(1, 4, (N, 3)), softmaxed(N, 3, 1).p, weight=COUNTS),
    "confidence": lambda: Predictions.from_confidence(RNG.random(N), RNG.integers(0, 2, N), weight=COUNTS),
    "labels": lambda: Predictions.from_multilabel(RNG.integers(0, 2, (N, 3)), RNG.random((N, 3)), weight=COUNTS),
}


def table(per_score: int) -> Predictions:
    """Scores of a calibrated model, with the number of events and of other rows at each of them."""
    rng = np.random.default_rng(0)
    p = np.arange(1, 200) / 200
    events = rng.binomial(per_score, p)
    rows = Predictions(np.repeat([1, 0], len(p)), np.tile(p, 2), weight=np.concatenate([events, per_score - events]))
    return rows[rows.w > 0]


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_tally_of_the_repeated_rows(kind: str) -> None:
    preds = KINDS[kind]()
    counted, repeated = to.tally(preds, weight_kind="frequency"), to.tally(preds.expand_frequencies())
    assert (counted.n, counted.weight) == (COUNTS.sum(), COUNTS.sum())
    ours, theirs = numbers(counted), numbers(repeated)
    assert ours.keys() == theirs.keys()
    for name, values in theirs.items():
        np.testing.assert_allclose(ours[name], values, rtol=1e-11, atol=1e-11, err_msg=name)


@pytest.mark.slow
def test_a_billion_rows_have_the_error_of_their_shares_and_its_narrow_interval() -> None:
    small, large = table(5_000), table(5_000_000)
    shares = to.measure(large, "ece", weight_kind="importance", interval=None).value
    of_many = to.measure(large, "ece", weight_kind="frequency", resamples=200)
    assert of_many.n == 199 * 5_000_000
    assert of_many.value == pytest.approx(shares, rel=1e-9)
    of_few = to.measure(small, "calibration_in_the_large", weight_kind="frequency", resamples=200)
    of_many = to.measure(large, "calibration_in_the_large", weight_kind="frequency", resamples=200)
    width_of_few, width_of_many = (result.interval.high - result.interval.low for result in (of_few, of_many))
    assert width_of_few / width_of_many == pytest.approx(1000**0.5, rel=0.2)
    assert to.test(large, "spiegelhalter", weight_kind="frequency").pvalue > 0.001


def test_counted_and_repeated_rows_have_the_same_results() -> None:
    rows = table(40)
    exact = to.measure(rows, "ece", weight_kind="frequency", mode="exact", interval=None)
    counted = to.measure(rows, "ece", weight_kind="frequency", mode="tally", interval=None)
    assert counted.value == pytest.approx(exact.value, rel=1e-9)
    assert counted.n == exact.n == 199 * 40


def test_counts_are_whole_numbers() -> None:
    preds = Predictions([0, 1], [0.2, 0.9], weight=[1.5, 2])
    with refused("TO110", "1.5 in row 0", fix="importance"):
        to.tally(preds, weight_kind="frequency")
    assert to.tally(preds).weight == 3.5


def test_what_needs_single_rows_says_so() -> None:
    with refused("TO110", "sum 9.95e+08", fix="fit a calibrator"):
        to.fit(table(5_000_000), "temperature", weight_kind="frequency")
    with refused("TO403", "frequency", fix="omit it here"):
        to.measure(to.tally(table(10), weight_kind="frequency"), "ece", weight_kind="frequency")


def test_the_command_line_counts_too(tmp_path: Path) -> None:
    file, out = tmp_path / "cells.csv", tmp_path / "cells.tally.json"
    file.write_text("p,label,n\n0.2,0,3000000000\n0.2,1,1000000000\n", encoding="utf-8")
    columns = ["--label", "label", "--probs", "p", "--weight", "n", "--weight-kind", "frequency"]
    done = CliRunner().invoke(main, ["tally", str(file), *columns, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "4,000,000,000 rows" in done.output
    result: Any = to.measure(to.load(out), "ece", interval=None)
    assert (result.n, result.value) == (4_000_000_000, pytest.approx(0.05))
