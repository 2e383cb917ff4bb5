"""Calibration to human label uncertainty: entropy, distribution and ranking scores (EntCE, DistCE, RankCS)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import entr

from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.estimators.base import Mean, single_rows
from trueodds.lenses.view import View

MIN_VOTES = 30  # votes per row; below, what the votes alone add or hide is of the size of what is measured


@dataclass(frozen=True)
class VoteMean(Mean):
    """A mean over rows of how one row's probabilities compare with one row's votes.

    A binary view is the vector (1 − p, p) of two outcomes. A single label is a vote that all have cast.
    """

    lens: ClassVar[str | None] = "canonical"
    redraws: ClassVar[str] = "votes"

    def rows(self, view: View) -> Array:
        """The comparison of each row."""
        single_rows(view, self.name)
        return self.compared(*vectors(view), view)

    def compared(self, P: Array, V: Array, view: View) -> Array:
        """The number of each row from said and voted shares, both (n, m) float64."""
        raise NotImplementedError

    def parts(self, view: View) -> dict[str, float]:
        """How many votes half of the rows have at most, where that is known."""
        if view.votes is None:
            return {}
        return {"median_votes": float(np.median(view.votes[view.w > 0]))}

    def notes(self, view: View) -> list[Note]:
        """A word on what the votes can tell."""
        y, votes = view.y[view.w > 0], self.parts(view).get("median_votes")
        if votes is None and ((y > 0) & (y < 1)).any():
            text = "Votes are given as shares, and how many people voted is unknown: there is no noise floor. Pass the counts."
            return [Note("TN132", text)]
        if votes is None or votes == 1:
            text = "Rows have a single label, which is read as a vote that all have cast: even a perfect model is far from that; compare with the noise floor."
            return [Note("TN131", text)]
        if votes < MIN_VOTES:
            cast = view.votes[view.w > 0] if view.votes is not None else np.array([votes])
            who = "Every row has" if cast.min() == cast.max() else "Half of the rows have at most"
            text = f"{who} {votes:g} votes: so few would keep even a perfect model from the best value; compare with the noise floor."
            return [Note("TN131", text)]
        return []

    def joint_notes(self, views: Sequence[View]) -> list[Note]:
        """The same votes are behind every view."""
        return self.notes(views[0])


@dataclass(frozen=True)
class EntropyError(VoteMean):
    r"""Difference between the model's entropy and that of people's votes (human entropy calibration error, EntCE).

    Answers: is the model as unsure about each item as people are among themselves?

    .. math:: \tfrac1w \sum_i w_i\, |H(P_i) - H(V_i)|, \quad H(q) = -\sum_k q_k \log q_k

    Entropy does not see which classes are in doubt: a model that hesitates between the wrong ones can score 0, so read
    it beside `distce`. Shapes: a binary view (n,), or a joint view (n, m); the canonical lens if none is named. Units:
    nats, in [0, log m]; 0 is best. Signed, it is positive where the model is less sure than people. Bias: upward, and
    the votes' own entropy is too low by about (classes voted for − 1) / (2 · votes): with fewer than 30 votes per row
    that is large. `noise_floor` is what a model would score whose probabilities the votes were drawn from.
    Cost: O(nm). Needs rows. Parts: `mean_absolute`, `mean_signed`, `median_votes`. Raises TO203 for unknown settings,
    TO205 for cells, and for a correction where the numbers of votes are unknown.
    Source: Baan, Aziz, Plank & Fernández (2022); the correction, Miller (1955).

    Parameters
    ----------
    signed : bool
        Average the difference itself, so that too sure and too unsure rows cancel.
    base : {"e", "2"}
        Entropy in nats or in bits.
    correction : {None, "miller-madow"}
        Add the first-order term that the entropy of few votes lacks.

    >>> round(float(EntropyError(base="2")(View(p=[0.5, 0.5], y=[0.5, 1.0]))), 4)
    0.5
    """

    name: ClassVar[str] = "entce"
    signed: bool = False
    base: Literal["e", "2", 2] = "e"
    correction: Literal["miller-madow"] | None = None

    def as_loss(self, values: Any) -> Any:
        """A signed mean is off on either side."""
        return np.abs(values) if self.signed else values

    def compared(self, P: Array, V: Array, view: View) -> Array:
        """The difference of each row, or its size."""
        gap = self._gaps(P, V, view)
        return gap if self.signed else np.abs(gap)

    def parts(self, view: View) -> dict[str, float]:
        """The mean of the sizes and of the signed differences."""
        single_rows(view, self.name)
        gap = self._gaps(*vectors(view), view)[view.w > 0]
        share = view.w[view.w > 0] / view.total
        signs = {"mean_absolute": float(share @ np.abs(gap)), "mean_signed": float(share @ gap)}
        return signs | super().parts(view)

    def settings_used(self, view: View) -> dict[str, Any]:
        """Sign, base and correction."""
        return {"signed": self.signed, "base": str(self.base), "correction": self.correction}

    def _gaps(self, P: Array, V: Array, view: View) -> Array:
        people = _entropy(V)
        if self.correction:
            people = people + self._lacking(V, view)
        gap: Array = _entropy(P) - people
        return gap / np.log(2) if str(self.base) == "2" else gap

    def _lacking(self, V: Array, view: View) -> Array:
        """(classes voted for − 1) / (2 · votes): nothing for a row that agrees, whatever its number of votes."""
        more = (V > 0).sum(axis=1) - 1
        if view.votes is not None:
            return more / (2.0 * view.votes)
        if more[view.w > 0].any():
            raise InputError(
                "TO205",
                "The correction of an entropy needs the number of votes of each row.",
                "shares of votes",
                "Pass the votes as whole counts, or leave correction out.",
            )
        return np.zeros(len(V))


@dataclass(frozen=True)
class DistributionError(VoteMean):
    r"""Total variation between the model's probabilities and people's votes (human distribution calibration error, DistCE).

    Answers: how much probability would have to move, item by item, to agree with the people who judged it?

    .. math:: \tfrac1w \sum_i w_i\, \tfrac12 \sum_k |P_{ik} - V_{ik}|

    The strictest claim of all: every single row is to match, not groups of rows. Shapes: a binary view (n,), where it
    is mean |p - y|, or a joint view (n, m); the canonical lens if none is named. Units: probability, in [0, 1]; 0 is
    best. Bias: upward, a model whose probabilities the votes were drawn from scores about
    sum over k of sqrt(P(1-P) / (2 pi votes)), which `noise_floor` reports exactly in law. Cost: O(nm). Needs rows.
    Part: `median_votes`. Raises TO205 for cells of many rows. Source: Baan, Aziz, Plank & Fernández (2022).

    >>> round(float(DistributionError()(View(p=[[0.1, 0.2, 0.7]], y=[[0.3, 0.2, 0.5]]))), 4)
    0.2
    """

    name: ClassVar[str] = "distce"
    lower_bound: ClassVar[float] = 0.0

    def compared(self, P: Array, V: Array, view: View) -> Array:
        """The total variation of each row."""
        return np.asarray(np.abs(P - V).sum(axis=1) / 2)


@dataclass(frozen=True)
class RankAgreement(VoteMean):
    r"""Share of rows whose classes the model ranks as people do (human ranking calibration score, RankCS).

    Answers: how often does the model put the classes in the order in which people voted for them?

    .. math:: \tfrac1w \sum_i w_i\, 1\{V_{ia} > V_{ib} \Rightarrow P_{ia} > P_{ib} \text{ for all } a, b\}

    Classes with equally many votes may come in any order; classes that the votes tell apart must not be tied in P.
    That rule is ours: the paper compares sorted class numbers, where ties are settled by the number (`ties="index"`).
    Shapes: a binary view (n,), or a joint view (n, m); the canonical lens if none is named. Units: share of rows, in
    [0, 1]; 1 is best. With single labels it is the accuracy. Bias: downward, votes that happen to swap two close
    classes look like the model's fault: even a model whose probabilities the votes were drawn from stays below 1,
    at the value that `noise_floor` reports. Cost: O(nm log m). Needs rows. Parts: `tie_rate`, the share of rows where
    two classes have equally many votes, none included; `median_votes`. Raises TO203 for an unknown `ties`, TO205 for
    cells of many rows. Source: Baan, Aziz, Plank & Fernández (2022).

    Parameters
    ----------
    ties : {"tolerant", "index"}
        What becomes of classes with equally many votes.

    >>> float(RankAgreement()(View(p=[[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]], y=[[0.2, 0.2, 0.6], [0.2, 0.3, 0.5]])))
    0.5
    """

    name: ClassVar[str] = "rankcs"
    lower_bound: ClassVar[float] = 0.0
    best_value: ClassVar[float] = 1.0
    ties: Literal["tolerant", "index"] = "tolerant"

    def compared(self, P: Array, V: Array, view: View) -> Array:
        """1 for each row that agrees."""
        V = self._ballots(V, view)
        if self.ties == "index":
            same = np.argsort(P, axis=1, kind="stable") == np.argsort(V, axis=1, kind="stable")
            return same.all(axis=1).astype(np.float64)
        # By falling votes, and falling probability within a tie: each drop in votes must then be one in probability.
        order = np.lexsort((-P, -V), axis=1)
        predicted, voted = (np.take_along_axis(values, order, axis=1) for values in (P, V))
        agrees = (voted[:, :-1] == voted[:, 1:]) | (predicted[:, :-1] > predicted[:, 1:])
        return agrees.all(axis=1).astype(np.float64)

    def parts(self, view: View) -> dict[str, float]:
        """How often two classes have equally many votes."""
        single_rows(view, self.name)
        V = np.sort(self._ballots(vectors(view)[1], view)[view.w > 0], axis=1)
        tied = (V[:, 1:] == V[:, :-1]).any(axis=1)
        return {"tie_rate": float(view.w[view.w > 0] @ tied / view.total)} | super().parts(view)

    def settings_used(self, view: View) -> dict[str, Any]:
        """The rule for ties."""
        return {"ties": self.ties}

    def _ballots(self, V: Array, view: View) -> Array:
        """Votes as counts where they are known: shares that a lens added up may miss a tie by rounding."""
        return V if view.votes is None else np.rint(V * view.votes[:, None])


def vectors(view: View) -> tuple[Array, Array]:
    """Said and voted shares of every outcome, (n, m) float64; a binary view has two."""
    return view.P, view.Y


def _entropy(q: Array) -> Array:
    """In nats; what rounding left below 0 counts as 0."""
    return np.asarray(entr(np.maximum(q, 0.0)).sum(axis=1))
