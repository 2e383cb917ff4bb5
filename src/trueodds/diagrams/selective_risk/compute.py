"""Compute the risk-coverage curve: error rate among the most confident predictions, by coverage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.formatting import format_number
from trueodds.core.rng import as_generator
from trueodds.core.settings import Count, Level
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.diagrams._style import styling
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.bins import stack_tables
from trueodds.diagrams.recipe import BandDraws, Recipe, views_of
from trueodds.diagrams.selective_risk.plot import RiskPlot
from trueodds.lenses.base import Lens
from trueodds.lenses.selective_risk import SelectiveRisk, risk_of
from trueodds.lenses.view import View
from trueodds.tallies.tally import Tally


@dataclass(frozen=True)
class RiskCoverage(Recipe):
    r"""The share of wrong answers among the surest ones, over the share of questions that they answer.

    Answers: whoever lets the model be silent where it is unsure, how many errors are left, and how many questions? At
    the coverage c stands the error rate of the surest c of all questions; equal confidences come in random order, and
    the expected rate is drawn. Under the axis stands the confidence from which on so many are answered. AURC, its mean
    over all coverages that are reached, is told with its percentile interval (`problem.selective`); the flat line is
    what an order without sense has on average, the error rate of all answers.

    The band is of each coverage by itself, not of the whole curve: percentiles of resampled rows, or of whole clusters
    where there are any; of a tally, of the rows that it counts. Where none of the surest answers is wrong, or all
    are, resamples cannot vary, and the exact binomial limit is drawn. On 500 data sets of 400 answers, right as often as
    they say, it held the truth at coverages of .2, .5, .8 and 1 in 95 to 97 % of them where confidences are uniform on
    [.5, 1], and in 91 to 97 % where they are .6, .7, .8, .9 or 1 (95 % asked).

    Views: the confidence in the answer given, of predictions of any kind. A weight of two is two rows. Units: probability.
    Cost: O(n log n), and O(n) for each resample. Raises TO203 for a setting out of range, TO205 for another lens.
    Source: El-Yaniv & Wiener (2010), JMLR 11; Geifman & El-Yaniv (2017).

    Parameters
    ----------
    asked : int, optional
        How many questions there were, where some got no answer; as many as there are rows, if not said.
    level : float
        Of band and interval.
    resamples : int
        How many.

    Columns of `table`: view coverage threshold risk low high, by coverage. `panels` hold aurc, aurc_low, aurc_high,
    random, ideal (the same errors all last), answered, asked and coverage (of the questions, how many are answered).

    >>> view = View(p=[0.9] * 50 + [0.6] * 50, y=[1] * 45 + [0] * 5 + [1, 0] * 25, name="confidence")
    >>> diagram = RiskCoverage(n_queries=125)([view])
    >>> diagram.finding.replace("\u00a0", " ").split(" AURC")[0]
    'Of all answers 30.0 % are wrong, of the surer half 10.0 %; 25 of 125 were not given.'
    """

    name: ClassVar[str] = "selective_risk"
    lens: ClassVar[str | None] = "confidence"
    clusters: ClassVar[bool] = True
    by_chance: ClassVar[tuple[str, ...]] = ("low", "high")
    exempt: ClassVar[dict[str, str]] = {"class order": "it is of the answer given, whichever class that is"}
    n_queries: Count | None = None
    level: Level = 0.95
    resamples: BandDraws = 1000

    def of_models(
        self, models: Mapping[str, Predictions | Tally], lens: Lens, rng: int | np.random.Generator = 0
    ) -> Diagram:
        """The diagram of one model, with the clusters of its rows."""
        if len(models) != 1:
            return super().of_models(models, lens, rng)  # which refuses them
        (rows,) = models.values()
        cluster = rows.cluster if isinstance(rows, Predictions) else None
        return self._of(views_of(rows, lens), cluster, as_generator(rng))

    def of(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The diagram of a view, whose rows are taken as independent."""
        return self._of(views, None, rng)

    def _of(self, views: tuple[View, ...], cluster: Array | None, rng: np.random.Generator) -> Diagram:
        if len(views) != 1 or views[0].joint or views[0].name != "confidence":
            got = views[0].name if len(views) == 1 else f"{len(views)} views"
            why = f"The diagram {self.name} is of the confidence in the answer given."
            raise InputError("TO205", why, f"lens {got!r}", "Use lens='confidence', or leave it out.")
        (view,) = views
        curve = risk_of(
            view, cluster, n_queries=self.n_queries, at=None, resamples=self.resamples, level=self.level, rng=rng
        )  # fmt: skip
        table = {"view": np.full(len(curve.at["coverage"]), view.name, dtype=object), **curve.at}
        row = _panel(view, curve)
        words = {"view", "title", "aside", "finding"}
        panels = {key: np.array([value], dtype=object if key in words else None) for key, value in row.items()}
        return RiskPlot(
            name=self.name,
            lens=view.name,
            table=stack_tables([table]),
            panels=stack_tables([panels]),
            settings={
                "n_queries": curve.n_queries,
                "level": self.level,
                "resamples": self.resamples,
                "band": "pointwise",
            },
        )


def _panel(view: View, curve: SelectiveRisk) -> dict[str, Any]:
    assert curve.interval is not None
    settled = curve.at["coverage"] >= 0.1 * curve.at["coverage"][-1]  # few answers have limits up to 1
    tallest = max(float(curve.at["high"][settled].max()), float(curve.at["risk"].max()), curve.random, 0.01)
    return {
        "view": view.name,
        "title": view.name,
        "aside": f"AURC {format_number(curve.aurc)}, random order {format_number(curve.random)}",
        "finding": _finding(curve),
        "n": view.n_rows,
        "weight": view.total,
        "aurc": curve.aurc,
        "aurc_low": curve.interval.low,
        "aurc_high": curve.interval.high,
        "random": curve.random,
        "ideal": curve.ideal,
        "answered": curve.answered,
        "n_queries": curve.n_queries,
        "coverage": curve.answered / curve.n_queries,
        "y_high": min(1.08 * tallest, 1.02),
    }


def _finding(curve: SelectiveRisk) -> str:
    assert curve.interval is not None
    half = int(np.argmin(np.abs(curve.at["coverage"] - curve.at["coverage"][-1] / 2)))
    surer = styling.percent(float(curve.at["risk"][half]))
    text = f"Of all answers {styling.percent(curve.random)} are wrong, of the surer half {surer}"
    if curve.n_queries > curve.answered:
        text += f"; {curve.n_queries - curve.answered:,} of {curve.n_queries:,} were not given"
    limits = f"{format_number(curve.interval.low)} to {format_number(curve.interval.high)}"
    if curve.gain is not None and curve.gain.low > 0:
        verdict = "better than random order"
    elif curve.gain is not None and curve.gain.high < 0:
        verdict = "worse than random order: the surer answers are wrong more often"
    else:
        verdict = "no better than random order as far as these rows can tell"
    return f"{text}. AURC\u00a0{format_number(curve.aurc)} ({limits}), {verdict}."
