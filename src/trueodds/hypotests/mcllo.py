"""Would a shift and a slope of every class's log odds against one of them fit the outcomes better? MCLLO's test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, expit

from trueodds.core.errors import InputError, Note
from trueodds.hypotests.by_view import Cells, Found, ViewTest
from trueodds.hypotests.likelihood.logits import check_floor
from trueodds.hypotests.likelihood.odds import Odds, quadratic
from trueodds.hypotests.several import holm
from trueodds.problem.view import View

Array = NDArray[Any]

FORMS = ("likelihood-ratio", "wald", "score")
WIDE = 1.959963984540054  # standard errors to the ends of a 95 % interval

# Of 7,000 calibrated data sets from ten designs (n = 30 to 2000, K = 2 to 10) each form rejected 3 to 6 % at 5 % where
# the rows were worth more than this for each degree of freedom; below, the likelihood ratio up to 34 % in one design.
SAFE = 3
NAN = float("nan")


@dataclass(frozen=True)
class Mcllo(ViewTest):
    r"""Multicategory linear in log odds: is the model's vector right, up to a line in the log odds of each class?

    Null hypothesis: each label comes with its stated probability, independently given the predictions. In the model

    .. math:: \log\frac{q_j}{q_c} = \tau_j + \gamma_j \log\frac{p_j}{p_c}, \qquad j \ne c

    with the baseline class c, it says that every τ = log δ is 0 and every γ is 1. δ_j > 1 says that class j came more
    often, against c, than was said; γ_j < 1 that its odds against c are too extreme, > 1 too timid.

    Statistic: χ² with 2(K − 1) degrees of freedom, ≥ 0; two classes are Cox's regression. With `null="redraw"` it is
    the score statistic among redrawn labels, one pass per draw without a fit, exact at any number of rows. Effect, in
    probability units: the mean total variation between what was said and the fitted map. Parts: `joint` with all
    three statistics and, without weights, the posterior probability of calibration by BIC; each class with τ and γ,
    standard errors and 95 % ends, δ's ends being those of τ exponentiated, and Wald's test of both, with Holm's p;
    Wald's tests that all τ are 0 (`shift`), all γ are 1 (`scale`), all γ are equal (`equal-scales`: then the baseline
    does not matter). Where no finite parameters are best (note TN217) they and their tests are undefined, and the
    likelihood ratio is its limit. Rows that a map was fitted on do not test that map: there the statistic is 0.

    The alternative, and with it p, depends on the baseline and on the floor; it sees lines only, so that a large p
    is no proof. With `floor` the statistic at a tenth and at ten times the floor is among the parts, if it moved
    anything; outcomes of probability 0 are evidence of their own (note TN235).
    Weights: likelihood ratio adjusted, score and Wald by the sandwich with the model's variance. Cost: O(nK²) per
    Newton step, some 6 steps; redraws O(nK) per draw. From a tally p is the mean of its cell.
    Raises TO203 for unknown settings; TO205 for a probability of 0 without `floor`, and for another form than the
    score with `null="redraw"`. Source: Vennos, Xing & Franck (2026).

    Parameters
    ----------
    form : {"likelihood-ratio", "wald", "score"}, optional
        The likelihood ratio where the null is asymptotic, the score where labels are redrawn.
    baseline : int
        The class c by number; negative ones count from the last. Binary views have no choice: it changes nothing.
    floor : float
        Stands in for smaller probabilities; a note counts the rows. 0 is none.

    >>> view = View(p=[[0.6, 0.3, 0.1], [0.1, 0.6, 0.3]] * 2, y=[[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]])
    >>> found = Mcllo(form="score").on(view)
    >>> found.said["form"], found.parts["joint"]["df"]
    ('score', 4.0)
    """

    name: ClassVar[str] = "mcllo"
    lens: ClassVar[str | None] = "canonical"
    vectors: ClassVar[bool] = True
    law: ClassVar[str] = "the statistic is χ² with two degrees of freedom for each class but the baseline"
    exempt: ClassVar[dict[str, str]] = {
        "weight two": "weights are importance weights: chance grows with their squares",
        "one statistic": "redraws judge the score statistic, which needs no fit per draw",
    }

    form: str | None = None
    baseline: int = -1
    floor: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.form is not None and self.form not in FORMS:
            raise InputError("TO203", f"form is one of {', '.join(FORMS)}.", repr(self.form), "Leave it out.")
        if self.null == "redraw" and self._form != "score":
            raise InputError(
                "TO205", "Redrawn labels are judged by the score.", f"form={self.form!r}", "Leave form out."
            )
        if isinstance(self.baseline, bool) or not isinstance(self.baseline, (int, np.integer)):
            raise InputError("TO203", "baseline is the number of a class.", repr(self.baseline), "For instance -1.")
        check_floor(self.floor)

    @property
    def _form(self) -> str:
        return self.form or ("score" if self.null == "redraw" else "likelihood-ratio")

    def on(self, view: View) -> Found:
        """The statistic, the parameters, and the tests of some of them."""
        odds = Odds.of(view, self.baseline, self.floor, self.name)
        every, df = statistics(odds), odds.white.shape[1]
        pvalues = {form: _tail(df, each) for form, each in every.items()}
        joint = {"statistic": every[self._form], "df": float(df), "pvalue": pvalues[self._form]}
        joint |= {form.replace("-", "_"): each for form, each in every.items()}
        if odds.even:
            joint["posterior"] = float(expit((df * np.log(max(odds.n.sum(), 1)) - every["likelihood-ratio"]) / 2))
        parts = {"joint": joint, **_subtests(odds), **_classes(odds, view), **self._elsewhere(odds, view)}
        said = view.p if view.joint else np.stack([1 - view.p, view.p], axis=1)
        effect = float(odds.w @ np.abs(odds.fitted - said).sum(axis=1)) / (2 * float(odds.w.sum()))
        settings = {"form": self._form, "baseline": odds.baseline, "floor": self.floor}
        return Found(
            joint["statistic"], joint["pvalue"], effect, parts, settings, self._notes(odds, view), self._doubts(odds)
        )

    def degrees(self, view: View) -> int | None:
        """Two for each class but the baseline, less what cannot be told; None in the other forms."""
        if self._form != "likelihood-ratio":
            return None
        return Odds.of(view, self.baseline, self.floor, self.name).white.shape[1] or None

    def cells(self, view: View) -> Cells:
        """The score statistic, each row by itself."""
        odds = Odds.of(view, self.baseline, self.floor, self.name)

        def reader(w: Array, _wp: Array, wy: Array) -> Array:
            return odds.score(wy if view.joint else np.stack([w - wy, wy], axis=-1))

        return Cells.of_rows(view, reader)

    def _elsewhere(self, odds: Odds, view: View) -> dict[str, dict[str, float]]:
        """The statistic at other floors, where this one moved anything."""
        if not odds.touched:
            return {}
        found = {}
        for floor in (self.floor / 10, self.floor * 10):
            if floor < 1 / odds.P.shape[1]:
                other = Odds.of(view, self.baseline, floor, self.name)
                statistic = statistics(other, self._form)[self._form]
                pvalue = _tail(other.white.shape[1], statistic)
                found[f"floor:{floor:g}"] = {"statistic": statistic, "pvalue": pvalue}
        return found

    def _notes(self, odds: Odds, view: View) -> tuple[Note, ...]:
        notes = []
        if odds.touched:
            text = (
                f"The floor {self.floor:g} stood in for the probabilities of {odds.touched:,} of {view.n_rows:,} rows."
            )
            notes.append(Note("TN106", text))
        if odds.missed:
            text = f"{odds.missed:,} outcomes came that had probability 0: by itself that rejects calibration, and the statistic only says what the rest does at this floor."
            notes.append(Note("TN235", text))
        if odds.white.shape[1] < len(odds.identity):
            text = "The predictions take too few values to tell every shift from its slope: only what can be told is tested."
            notes.append(Note("TN218", text))
        elif not odds.best.converged:
            text = "The predictions separate what came from what did not, or some classes never came: no finite coefficients are best, and the likelihood is taken at its limit."
            notes.append(Note("TN217", text))
        return tuple(notes)

    def _doubts(self, odds: Odds) -> tuple[str, ...]:
        """Whether so little can be told that χ² is not to be trusted."""
        found, least = [], SAFE * odds.white.shape[1]
        if odds.worth < least:
            found.append(
                f"What is tested rests on as much as {odds.worth:.2g} rows would tell; below {least}, three for each degree of freedom, up to 34 % of calibrated models were rejected at 5 %."
            )
        if self._form != "score" and not odds.best.converged:
            found.append("No finite coefficients are best, and χ² is no law for the limit.")
        return tuple(found)


def statistics(odds: Odds, form: str | None = None) -> dict[str, float]:
    """The three statistics, or the one of a form, which may cost less.

    Where rows differ in weight the likelihood ratio is multiplied by the score statistic in the variance of the
    scores over the one in their information; that makes it χ² again. Source: Pace, Salvan & Sartori (2011).
    """
    found: dict[str, float] = {}
    slope = odds.null.gradient
    by_meat = float(((slope @ odds.white) ** 2).sum())
    if form in (None, "score"):
        found["score"] = by_meat
    if form in (None, "likelihood-ratio"):
        ratio = max(2 * (odds.null.value - odds.best.at.value), 0.0)
        by_bread = by_meat if odds.even else quadratic(slope, odds.null.hessian)
        found["likelihood-ratio"] = ratio * (by_meat / by_bread if by_bread > 0 else 1.0)
    if form in (None, "wald"):
        found["wald"] = NAN if odds.spread is None else quadratic(odds.best.theta - odds.identity, odds.spread)
    return {each: found[each] for each in FORMS if each in found}


def _subtests(odds: Odds) -> dict[str, dict[str, float]]:
    """Wald's tests of some of the parameters."""
    m = len(odds.others)
    off, gammas, taus = odds.best.theta - odds.identity, np.eye(2 * m)[::2], np.eye(2 * m)[1::2]
    asked = {"shift": taus, "scale": gammas} | ({"equal-scales": np.diff(gammas, axis=0)} if m > 1 else {})
    return {name: _wald(odds, which, off) for name, which in asked.items()}


def _classes(odds: Odds, view: View) -> dict[str, dict[str, float]]:
    """Shift and slope of each class."""
    m, found = len(odds.others), []
    off = odds.best.theta - odds.identity
    for i in range(m):
        told: dict[str, float] = {}
        for name, at in (("tau", 2 * i + 1), ("gamma", 2 * i)):
            value, se = NAN, NAN
            if odds.spread is not None:
                value, se = float(odds.best.theta[at]), float(np.sqrt(odds.spread[at, at]))
            told |= {name: value, f"{name}_se": se, f"{name}_low": value - WIDE * se, f"{name}_high": value + WIDE * se}
        for end in ("", "_low", "_high"):
            told[f"delta{end}"] = float(np.exp(np.minimum(told[f"tau{end}"], 700.0)))
        found.append(told | _wald(odds, np.eye(2 * m)[2 * i : 2 * i + 2], off))
    for one, p in zip(found, holm([one["pvalue"] for one in found]), strict=True):
        one["holm"] = p
    names = [f"class:{j}" for j in odds.others] if view.joint else ["event"]
    return dict(zip(names, found, strict=True))


def _wald(odds: Odds, which: Array, off: Array) -> dict[str, float]:
    if odds.spread is None:
        return {"statistic": NAN, "df": float(len(which)), "pvalue": NAN}
    statistic = quadratic(which @ off, which @ odds.spread @ which.T)
    return {"statistic": statistic, "df": float(len(which)), "pvalue": _tail(len(which), statistic)}


def _tail(df: int, statistic: float) -> float:
    """How often χ² is as large."""
    return float(chdtrc(df, statistic)) if df else NAN
