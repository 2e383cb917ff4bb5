"""What should a reader know of a test of shifts and slopes, and where is its law not to be trusted?"""

from __future__ import annotations

from trueodds.core.errors import Note
from trueodds.hypotests.likelihood.odds import Odds
from trueodds.hypotests.likelihood.odds_tests import units_of
from trueodds.lenses.view import View

# Of 7,000 calibrated data sets from ten designs (n = 30 to 2000, K = 2 to 10) each form rejected 3 to 6 % at 5 % where
# the rows were worth more than this for each degree of freedom; below, the likelihood ratio up to 34 % in one design.
SAFE, REJECTED = 3, 34

# Of 500 calibrated data sets from each of 94 designs (K = 2, 3, 5; 20, 50 and 200 clusters of 5, 30 of 10, 6 of 30, one
# of 200 with forty of 5, 60 by Zipf's law, three of 300 with 300 of 3, labels of a Gaussian copula or sharing a uniform
# number, predictions equal in a cluster or not; 30, 100 and 400 single rows) Wald's form rejected 0 to 8 % at 5 %, the
# likelihood ratio too. The score, whose law counts all units alike, rejected 0 to 9 % where there were more equal ones
# than this for each degree of freedom, below up to 21 % (30 single rows; of clusters 8 %).
SAFE_UNITS, SCORE_REJECTED = 10, 21


def notes(odds: Odds, view: View, min_prob: float, form: str) -> tuple[Note, ...]:
    """What the floor moved, what came against it, and what cannot be told."""
    note_list = []
    if odds.touched:
        text = f"The floor {min_prob:g} stood in for the probabilities of {odds.touched:,} of {view.n_rows:,} rows."
        note_list.append(Note("TN106", text))
    if odds.missed:
        text = f"{odds.missed:,} outcomes came that had probability 0: by itself that rejects calibration, and the statistic only says what the rest does at this floor."
        note_list.append(Note("TN235", text))
    if (odds.identified if form == "likelihood-ratio" else odds.rank) < len(odds.identity):
        text = (
            "The predictions take too few values to tell every shift from its slope: only what can be told is tested."
        )
        note_list.append(Note("TN218", text))
    elif not odds.mle.converged:
        text = "The predictions separate what came from what did not, or some classes never came: no finite coefficients are best, and the likelihood is taken at its limit. A slight pull to the identity has finite ones: to.fit(preds, 'mcllo', penalty=0.5)."
        note_list.append(Note("TN217", text))
    if odds.units is not None:
        n_units = units_of(odds, form)
        assert n_units is not None
        if not odds.enough or (form != "score" and odds.mle.converged and odds.covariance is None):
            text = f"{odds.units.count:,} independent rows or clusters with weight cannot tell the variance of the scores in {odds.rank} directions, so the test is undefined."
            note_list.append(Note("TN237", text))
        elif n_units <= odds.rank:
            text = f"{odds.units.count:,} independent rows or clusters are so unequal that they tell the variance as {n_units:.2g} equal ones would, in {odds.rank} directions, so the test is undefined. null='redraw' needs no variance."
            note_list.append(Note("TN237", text))
    return tuple(note_list)


def doubts(odds: Odds, form: str) -> tuple[str, ...]:
    """Whether so little can be told that the law is not to be trusted."""
    reasons = []
    n_units = units_of(odds, form)
    if n_units is not None:
        equal = n_units if odds.scatter is None or odds.scatter.units is None else odds.scatter.units
        if form == "score" and equal < SAFE_UNITS * odds.rank:
            reasons.append(
                f"The variance of the scores rests on as much as {equal:.2g} equal rows or clusters would tell; below {SAFE_UNITS * odds.rank}, {SAFE_UNITS} for each degree of freedom, up to {SCORE_REJECTED} % of calibrated models were rejected at 5 % by the score."
            )
    elif odds.effective_n < SAFE * odds.rank:
        reasons.append(
            f"What is tested rests on as much as {odds.effective_n:.2g} rows would tell; below {SAFE * odds.rank}, {SAFE} for each degree of freedom, up to {REJECTED} % of calibrated models were rejected at 5 %."
        )
    if form != "score" and not odds.mle.converged:
        reasons.append("No finite coefficients are best, and χ² is no law for the limit.")
    return tuple(reasons)


def with_degrees(distribution: str, df: set[float], kind: str) -> str:
    """The law with its degrees of freedom, where all views have as many.

    >>> with_degrees("the statistic is χ²", {4.0}, "degree of freedom")
    'the statistic is χ² with 4 degrees of freedom'
    """
    if len(df) > 1:
        return f"{distribution} with as many {_several(kind)} as can be told"
    (d,) = df
    return f"{distribution} with {d:g} {kind if d == 1 else _several(kind)}"


def _several(kind: str) -> str:
    first, *rest = kind.split(" ", 1)
    return " ".join([f"{first}s", *rest])
