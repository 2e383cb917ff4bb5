"""Is a fix justified, and which? Fit and choose on some rows, confirm on the others, else change nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.base import Map, Rule, applied, for_logs, taken
from trueodds.calibrators.choose import Choice, choose
from trueodds.calibrators.choosing.confirm import Confirmation, confirm
from trueodds.calibrators.choosing.folds import held_out, units
from trueodds.calibrators.choosing.report import Recalibration
from trueodds.calibrators.identity import IdentityMap
from trueodds.calibrators.likelihood.logs import LogProbabilities, Probabilities, probabilities
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.results import figure, percent
from trueodds.core.rng import as_generator
from trueodds.core.settings import OWN, Folds, Level, Probability, Seed

Array = NDArray[Any]

MOST = 500_000  # probabilities on which candidates are compared; the standard errors of more are below any use
_FEWEST = 20  # rows (clusters) below which a third of them can confirm nothing


@dataclass(frozen=True)
class AutoRule(Rule):
    """The simplest calibrator that is good and has proved itself on untouched rows; else the identity.

    A seeded, stratified split: on 1 − `share` of the rows the candidates are cross-fitted in `folds` and one is
    chosen by log loss and the one-standard-error rule; on the rest a one-sided paired test at level `alpha` confirms
    the gain. If it does, the chosen recipe is fitted again on all rows ("procedure confirmed"). `candidates` are
    names or rules; None is every calibrator that is a `candidate` and suits the number of classes, with its defaults:
    of those that are alike, one. Clusters are never split. Which rows fall where
    depends on their order and on `rng`. Cost: `folds` + 3 fits of each candidate. Source: cross-validated choice with
    Breiman et al.'s (1984) one-standard-error rule; confirmation by a paired test on rows held out from both.

    >>> P, Y = np.array([[0.1, 0.9]] * 400), np.eye(2)[[1, 1, 1, 0] * 100]
    >>> AutoRule().fit(P, Y, np.ones(400)).said()
    'T = 2.00'
    """

    name: ClassVar[str] = "auto"
    complexity: ClassVar[int] = 100
    keeps_argmax: ClassVar[bool] = False
    candidate: ClassVar[bool] = False
    takes_logs: ClassVar[bool] = True
    exempt: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("row order", "weights", "class order"),
        "which rows fit and which confirm is drawn over the rows in their order",
    )
    candidates: Annotated[tuple[str | Rule, ...] | None, OWN] = None
    folds: Folds = 5
    share: Probability = 0.3
    alpha: Level = 0.05
    rng: Seed | np.random.Generator = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._rules()

    def settings(self) -> dict[str, Any]:
        """The settings, with the candidates by name."""
        return {**super().settings(), "candidates": tuple(rule.name for rule in self._rules())}

    def declined(self, n: int, doubts: Sequence[Note]) -> tuple[Map, Recalibration] | None:
        """The identity where the rows look like labels, or like those of other classes: no fix mends that."""
        still = IdentityMap()
        return (
            (still, Recalibration(None, None, still.name, still.said(), n, 0, None, tuple(doubts))) if doubts else None
        )

    def _rules(self) -> list[Rule]:
        given = self.candidates
        if given is None:
            given = tuple(name for name in CALIBRATORS.names() if CALIBRATORS.load(name).candidate)
        if isinstance(given, (list, tuple)):
            given = tuple(each.made() if hasattr(each, "made") else each for each in given)
        if not isinstance(given, tuple) or not all(isinstance(each, (str, Rule)) for each in given):
            raise InputError(
                "TO203",
                "candidates must be a list of names or rules.",
                describe(given),
                "For instance ['temperature'].",
            )
        rules = [CALIBRATORS.load(each)() if isinstance(each, str) else each for each in given]
        if any(isinstance(rule, AutoRule) for rule in rules):
            raise InputError("TO203", "auto cannot be its own candidate.", describe(given), "Leave it out.")
        if len({(rule.name, repr(rule)) for rule in rules}) < len(rules):
            raise InputError("TO203", "A candidate is given twice.", describe(given), "Name each once.")
        if on_logits := [rule.name for rule in rules if getattr(rule, "logits", False)]:
            raise InputError(
                "TO203",
                "Candidates are compared on probabilities, and a map of logits is none of these.",
                f"{on_logits[0]} with logits=True",
                "Leave logits out, or fit it by name and compare log losses on other rows.",
            )
        return rules

    def _suited(self, n: int, k: int) -> list[Rule]:
        """The candidates for n rows of K classes; one that was asked for by name must fit."""
        rules = self._rules()
        if self.candidates is None:
            return [rule for rule in rules if rule.suits(n, k)]
        for rule in rules:
            rule.check_classes(k)
        return rules

    def _some(self, Y: Array, cluster: Array | None, out: Array, rng: np.random.Generator) -> Array:
        """The rows on which candidates are compared: all that are not set aside, or as many as tell them apart."""
        inside = np.flatnonzero(~out)
        share = MOST / (len(inside) * Y.shape[1])
        if share >= 1:
            return inside
        return inside[held_out(Y[inside], share, None if cluster is None else cluster[inside], rng)]

    def fit(self, P: Probabilities, Y: Array, w: Array) -> Map:
        """The map that is applied in the end."""
        return self.explained(P, Y, w)[0]

    def explained(
        self, P: Probabilities, Y: Array, w: Array, cluster: Array | None = None
    ) -> tuple[Map, Recalibration]:
        """The map and the whole report."""
        live = w > 0
        P, Y, w, cluster = P[live], Y[live], w[live], None if cluster is None else cluster[live]
        rules = self._suited(len(P), P.shape[1])
        if isinstance(P, LogProbabilities):
            rules = [for_logs(rule) for rule in rules]
        floor = max((rule.floor for rule in rules if hasattr(rule, "floor")), default=None)
        if why := _too_little(Y, cluster):
            still = IdentityMap()
            return still, Recalibration(None, None, still.name, still.said(), len(P), 0, floor, (Note("TN507", why),))
        rng = as_generator(self.rng)
        out = held_out(Y, self.share, cluster, rng)
        untouched = None if cluster is None else cluster[out]
        some = self._some(Y, cluster, out, rng)
        within = None if cluster is None else cluster[some]
        choice = choose(P[some], Y[some], w[some], rules, folds=self.folds, cluster=within, rng=rng)
        tried = choice.rule if choice.rule.name != "identity" or choice.rival is None else choice.rival
        n_fit = int((~out).sum())
        Q = applied(tried, P[~out], Y[~out], w[~out], P[out])
        proof = confirm(probabilities(P[out]), Q, Y[out], w[out], n_fit=n_fit, alpha=self.alpha, cluster=untouched)
        confirmed = proof.confirmed and choice.rule.name != "identity"
        rows = taken(choice.rule, P)
        final: Map = choice.rule.explained(rows, Y, w, cluster)[0] if confirmed else IdentityMap()
        notes = choice.rule.notes(final, rows, Y, w) if confirmed else []
        notes = notes + _said(choice, proof, confirmed, self.alpha)
        if len(some) < n_fit:
            text = f"The candidates were compared on {len(some):,} of the {n_fit:,} rows to fit on; the chosen one was fitted on all."
            notes.append(Note("TN539", text))
        said = final.said()
        return final, Recalibration(choice, proof, final.name, said, n_fit, int(out.sum()), floor, tuple(notes))


def _too_little(Y: Array, cluster: Array | None) -> str:
    n = units(len(Y), cluster)
    kind = "rows" if cluster is None else "clusters"
    if n < _FEWEST:
        return f"{n} {kind} are too few to choose and confirm a fix (at least {_FEWEST}); nothing is changed."
    if (Y.sum(axis=0) >= 2).sum() < 2:
        return "Fewer than two classes came at least twice, so no fix can be confirmed; nothing is changed."
    return ""


def _said(choice: Choice, proof: Confirmation, confirmed: bool, alpha: float) -> list[Note]:
    scored = Note(
        "TN508",
        f"Log losses are after mixing in the uniform, {choice.mixing:.2g} of it in the choice and {proof.mixing:.2g} in the confirmation, on both sides alike; the map itself has no floor.",
    )
    seen = f"gain {figure(proof.gain)} ± {figure(proof.se)} nats per row, p={figure(proof.pvalue)}"
    if confirmed:
        text = f"Procedure confirmed: {choice.rule.name} was chosen and its gain confirmed on untouched rows ({seen}); the map was then fitted again on all rows."
        return [scored, Note("TN509", text)]
    tried = "" if choice.rule.name == "identity" else f" {choice.rule.name} was chosen but not confirmed ({seen})."
    text = f"No fix is justified.{tried} A gain of {figure(proof.detectable)} nats per row would have been found four times in five at level {percent(alpha)}."
    return [scored, Note("TN510", text)]
