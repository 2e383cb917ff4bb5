"""What is an error against the majority vote compared with: votes drawn from the predictions, not labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.reports.example import typed
from tests.test_schemas import assert_valid
from trueodds.reports.text import vote_tables
from trueodds.reports.text.terminal import render_text


def people(preds: to.Predictions) -> dict[str, Any]:
    document = assert_valid(to.audit(preds, resamples=99).to_dict(), "audit")
    assert document["people"]["majority"]["ece"]["debiased"] is None
    return document


@pytest.mark.slow
def test_the_expected_error_in_the_table_is_that_of_drawn_votes() -> None:
    # Of 2,001 votes at 60 % the majority is certain: the error is .4, and the log loss −ln .6.
    votes = np.random.default_rng(0).multinomial(2001, [0.6, 0.4], size=50)
    document = people(to.Predictions(votes, np.tile([0.6, 0.4], (50, 1))))
    majority = document["people"]["majority"]
    assert majority["ece"]["noise_floor"] == majority["ece_if_right"] == pytest.approx(0.4)
    assert majority["log_loss"]["noise_floor"] == pytest.approx(-np.log(0.6))
    table = vote_tables.vote_target_table(typed(document))
    column = [heading.name for heading in table.columns].index("expected if calibrated")
    rows = {row[:2]: row[column] for row in table.rows}
    assert rows["majority vote", "ece, positive"] == "0.4000"
    assert rows["majority vote", "log loss, canonical"] == "0.5108"
    assert "0.400 against the majority" in table.intro
    assert "if the votes of each row are drawn from the predicted probabilities" in table.intro


@pytest.mark.slow
def test_without_vote_counts_nothing_is_expected_of_the_majority() -> None:
    rng = np.random.default_rng(1)
    P = rng.dirichlet([1, 1, 1], 60)
    shares = rng.multinomial(9, P) / 9
    majority = people(to.Predictions(shares, P))["people"]["majority"]
    assert majority["ece"]["noise_floor"] is majority["log_loss"]["noise_floor"] is majority["ece_if_right"] is None


@pytest.mark.slow
def test_the_limit_of_a_row_is_called_pointwise() -> None:
    rng = np.random.default_rng(2)
    P = rng.dirichlet([1, 1, 1], 60)
    document = people(to.Predictions(rng.multinomial(9, P), P))
    table = vote_tables.furthest_row_table(typed(document))
    assert "pointwise limit" in [heading.name for heading in table.columns]
    assert "Pointwise limit: exceeded with probability at most 5 %" in table.intro
    assert "critical value" not in render_text(document)


@pytest.mark.slow
def test_vote_share_and_accuracy_have_names_of_their_own() -> None:
    # The first class is predicted in both rows: 8 of 10 votes and 4 of 10, and the majority in one of two rows.
    votes = to.Predictions([[8, 2], [4, 6]] * 20, [[0.7, 0.3], [0.6, 0.4]] * 20)
    report = to.audit(votes, resamples=99).to_dict()
    assert report["data"]["vote_share"] == report["data"]["accuracy"] == pytest.approx(0.6)
    assert report["people"]["majority"]["accuracy"] == 0.5
    labels = to.audit(to.Predictions([0, 1] * 20, [[0.7, 0.3], [0.6, 0.4]] * 20), resamples=99).to_dict()
    assert (labels["data"]["vote_share"], labels["data"]["accuracy"]) == (None, 0.5)
