"""Checks of the MCLLO test: accuracy of the asymptotics, effect of the settings, and fits on the tested rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trueodds.calibrators._glm.parameter_covariance import lower_tail
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number
from trueodds.core.typing import Array
from trueodds.hypotests._glm.mcllo_likelihood import (
    MclloModel,
    effective_unit_count,
    mcllo_statistics,
    tail_probability,
)
from trueodds.lenses.view import View

# Of 7,000 calibrated data sets from ten designs (n = 30 to 2000, K = 2 to 10) each form rejected 3 to 6 % at 5 % if the
# effective sample size per degree of freedom was larger; below, the likelihood ratio up to 34 % in one design.
MIN_EFFECTIVE_N_PER_DF, MAX_ERROR_PERCENT = 3, 34

# Of 500 calibrated data sets from each of 94 designs (K = 2, 3, 5; 20, 50 and 200 clusters of 5, 30 of 10, 6 of 30, one
# of 200 with forty of 5, 60 by Zipf's law, three of 300 with 300 of 3, labels of a Gaussian copula or sharing a uniform
# number, predictions equal in a cluster or not; 30, 100 and 400 single rows) Wald's form rejected 0 to 8 % at 5 %, the
# likelihood ratio too. The score, whose distribution counts all units equally, rejected 0 to 9 % with more equal units
# than this for each degree of freedom, with fewer up to 21 % (30 single rows; clusters 8 %).
MIN_UNITS_PER_DF, MAX_SCORE_ERROR_PERCENT = 10, 21


def mcllo_notes(model: MclloModel, view: View, min_prob: float, form: str) -> tuple[Note, ...]:
    """Notes on clipped rows, impossible outcomes, and unidentified parameters."""
    notes = []
    if model.n_clipped:
        text = f"⟨min_prob={min_prob:g}⟩ clipped the probabilities of {model.n_clipped:,} of {view.n_rows:,} rows."
        notes.append(Note("TN106", text))
    if model.n_impossible:
        text = (
            f"{model.n_impossible:,} observed outcomes had predicted probability 0. This alone rejects calibration; the"
            " statistic describes the clipped probabilities only."
        )
        notes.append(Note("TN235", text))
    if (model.n_identified if form == "likelihood-ratio" else model.rank) < len(model.identity):
        text = (
            "The predictions have too few distinct values to identify all shifts and slopes; only the identified"
            " parameters are tested."
        )
        notes.append(Note("TN218", text))
    elif not model.mle.converged:
        text = (
            "No finite maximum likelihood estimate exists, because the predictions separate the outcomes or some"
            " classes were not observed. The likelihood is evaluated at its limit. A small penalty gives finite"
            " estimates: ⟨to.fit(preds, 'mcllo', penalty=0.5)⟩."
        )
        notes.append(Note("TN217", text))
    if model.units is not None:
        n_units = effective_unit_count(model, form)
        assert n_units is not None
        if not model.has_enough_units or (form != "score" and model.mle.converged and model.covariance is None):
            text = (
                f"{model.units.n_units:,} independent rows or clusters with weight are too few to estimate the variance"
                f" of the scores in {model.rank} directions, so the test is undefined."
            )
            notes.append(Note("TN237", text))
        elif n_units <= model.rank:
            text = (
                f"{model.units.n_units:,} independent rows or clusters of unequal size have an effective number of"
                f" {n_units:.2g}, too few to estimate the variance in {model.rank} directions, so the test is"
                " undefined. Use ⟨null='redraw'⟩, which does not estimate it."
            )
            notes.append(Note("TN237", text))
    return tuple(notes)


def asymptotic_warnings(model: MclloModel, form: str) -> tuple[str, ...]:
    """Reasons why the asymptotic distribution is inaccurate for these rows."""
    reasons = []
    n_units = effective_unit_count(model, form)
    if n_units is not None:
        covariance, effective_units = model.estimate_covariance, n_units
        if covariance is not None and covariance.effective_units is not None:
            effective_units = covariance.effective_units
        if form == "score" and effective_units < MIN_UNITS_PER_DF * model.rank:
            reasons.append(
                f"The effective number of rows or clusters behind the variance of the scores is {effective_units:.2g};"
                f" below {MIN_UNITS_PER_DF * model.rank}, {MIN_UNITS_PER_DF} per degree of freedom, the score test"
                f" rejected up to {MAX_SCORE_ERROR_PERCENT} % of calibrated models at 5 %."
            )
    elif model.effective_n < MIN_EFFECTIVE_N_PER_DF * model.rank:
        reasons.append(
            f"The effective sample size is {model.effective_n:.2g} rows; below {MIN_EFFECTIVE_N_PER_DF * model.rank},"
            f" {MIN_EFFECTIVE_N_PER_DF} per degree of freedom, up to {MAX_ERROR_PERCENT} % of calibrated models were"
            " rejected at 5 %."
        )
    if form != "score" and not model.mle.converged:
        reasons.append("No finite maximum likelihood estimate exists, and the limit of the statistic is not χ².")
    return tuple(reasons)


def describe_degrees_of_freedom(distribution: str, df: set[float], noun: str) -> str:
    """Description of the distribution with its degrees of freedom, if they are equal for all views.

    `df` are the distinct degrees of freedom, and `noun` is the noun by which they are counted.

    >>> describe_degrees_of_freedom("the statistic is χ²", {4.0}, "degree of freedom")
    'the statistic is χ² with 4 degrees of freedom'
    """
    if len(df) > 1:
        return f"{distribution} with as many {_pluralize(noun)} as identified parameters"
    (d,) = df
    return f"{distribution} with {d:g} {noun if d == 1 else _pluralize(noun)}"


def _pluralize(phrase: str) -> str:
    """Plural of a noun with an optional complement: "dimensions", "degrees of freedom"."""
    noun, *complement = phrase.split(" ", 1)
    return " ".join([f"{noun}s", *complement])


def compare_baselines(
    model: MclloModel, model_with_baseline: Callable[[int], MclloModel], form: str
) -> tuple[dict[str, dict[str, float]], tuple[Note, ...]]:
    """Statistic, p-value and changes of the fit with each class as the baseline, and a note on their range.

    `model_with_baseline` creates the model with another baseline. The changes of a fitted probability are relative to
    the fit with the chosen baseline: the largest, and the mean over rows (weighted) and classes.
    """
    parts: dict[str, dict[str, float]] = {}
    for j in range(model.P.shape[1]):
        other_model = model if j == model.baseline else model_with_baseline(j)
        statistic = mcllo_statistics(other_model, form)[form]
        changes = np.abs(other_model.fitted_probs - model.fitted_probs)[model.w > 0]
        parts[f"baseline:{j}"] = {
            "statistic": statistic,
            "pvalue": tail_probability(other_model, other_model.rank, statistic, form),
            "largest_change": float(changes.max()),
            "mean_change": float(model.w[model.w > 0] @ changes.mean(axis=1) / model.w.sum()),
        }
    return parts, (Note("TN236", _describe_range(parts, model.baseline)),)


def compare_min_probs(
    model: MclloModel, model_with_min_prob: Callable[..., MclloModel], min_prob: float, form: str
) -> dict[str, dict[str, float]]:
    """Statistic and p-value at a tenth and at ten times `min_prob`, if it clipped any row.

    `model_with_min_prob` creates the model with another value of `min_prob`.
    """
    parts: dict[str, dict[str, float]] = {}
    for other_min_prob in (min_prob / 10, min_prob * 10):
        if model.n_clipped and other_min_prob < 1 / model.P.shape[1]:
            other_model = model_with_min_prob(min_prob=other_min_prob)
            statistic = mcllo_statistics(other_model, form)[form]
            parts[f"floor:{other_min_prob:g}"] = {
                "statistic": statistic,
                "pvalue": tail_probability(other_model, other_model.rank, statistic, form),
            }
    return parts


def _describe_range(parts_by_baseline: dict[str, dict[str, float]], chosen_baseline: int) -> str:
    """The range of p-values and the largest change over all baselines, in words."""
    pvalues = [parts_of_baseline["pvalue"] for parts_of_baseline in parts_by_baseline.values()]
    defined = [p for p in pvalues if not np.isnan(p)]
    change = max(parts_of_baseline["largest_change"] for parts_of_baseline in parts_by_baseline.values())
    text = (
        f"With each of the {len(parts_by_baseline)} classes as the baseline, p ranges from"
        f" {format_number(min(defined))} to {format_number(max(defined))}"
        if defined
        else "No baseline has a p-value"
    )
    undefined_text = (
        f", undefined for {len(pvalues) - len(defined)} of them" if defined and len(defined) < len(pvalues) else ""
    )
    return (
        f"{text}{undefined_text}; fitted probabilities differ by up to {format_number(change)} from those with baseline"
        f" {chosen_baseline}."
    )


# Scores of a converged fit (or its float32), relative to the sum of the absolute contributions of the rows.
ZERO_SCORE_TOLERANCE = 1e-7
MAX_DENOMINATOR = 1000  # largest denominator of a simple fraction
MIN_LOWER_TAIL = 1e-6  # lower tail probability of the statistic below which a note is added
_MAX_INSPECTED = 2000  # maximum number of probabilities that are tested for simple fractions


def refuse_in_sample(model: MclloModel, view: View, name: str) -> None:
    """Raise InputError for predictions that were fitted to the tested rows, whose scores are 0 by construction.

    Recalibration maps with the same baseline form a group. After the maximum likelihood map no map improves the
    likelihood, so every score is 0 up to rounding. The same holds after a logistic regression on the same rows. If the
    predictions vary smoothly, n independent rows have such scores with a probability of about 10⁻¹⁴ n. Predictions with
    few distinct values can have them by chance: simple fractions, whose residuals cancel exactly, and predictions that
    equal the observed frequency of each value. Neither is refused, nor is any score that rounding cannot explain; see
    `in_sample_notes`.
    """
    if not _has_zero_scores(model) or not _excludes_chance(model, view):
        return
    raise InputError(
        "TO206",
        f"These predictions were fitted to the same outcomes: the statistic of {name} is 0 by construction.",
        f"scores of 0 up to rounding in all {model.rank} directions, {view.n_rows:,} rows",
        "Test held-out rows, or test the predictions before the fit: ⟨to.test(preds, 'cross_fitted')⟩.",
    )


def in_sample_notes(model: MclloModel, statistic: float, df: int, n_units: float | None) -> tuple[Note, ...]:
    """Note for a statistic that is improbably small, as after a rounded, penalized or binned fit to the same rows.

    Predictions with no more distinct values than parameters are exempt, because it can happen by chance there.
    """
    if len(np.unique(model.x[model.w > 0], axis=0)) <= len(model.identity):
        return ()
    p = lower_tail(statistic, df, n_units)
    if not p < MIN_LOWER_TAIL:  # also for NaN
        return ()
    text = (
        f"The statistic {statistic:.2g} is unusually small: under calibration a smaller value has probability {p:.2g}."
        " If the predictions were fitted to these outcomes, test them on other rows."
    )
    return (Note("TN238", text),)


def _has_zero_scores(model: MclloModel) -> bool:
    """Whether every score is 0 up to rounding, with contributions of both signs and all directions identified."""
    if not 0 < model.rank == len(model.identity):
        return False
    residuals = np.abs(model.w[:, None] * (model.Y - model.P))[:, model.free_classes]
    x = np.abs(model.x)[:, model.free_classes]
    contributions = np.stack([(residuals * x).sum(axis=0), residuals.sum(axis=0)], axis=1).reshape(-1)
    return bool((np.abs(model.identity_likelihood.gradient) <= ZERO_SCORE_TOLERANCE * contributions).all())


def _excludes_chance(model: MclloModel, view: View) -> bool:
    """Whether scores of 0 cannot be due to chance, given the number and the kind of distinct predictions.

    Chance is excluded if there are more distinct predictions than parameters, they are not simple fractions, and they
    differ from the observed frequencies of their rows.
    """
    mask = view.w > 0
    n_rows, w = int(mask.sum()), view.w[mask]
    predicted, observed = view.p[mask].reshape(n_rows, -1), view.y[mask].reshape(n_rows, -1)
    distinct_predictions, index = np.unique(predicted, axis=0, return_inverse=True)
    index, rounding = index.reshape(-1), 4 * float(np.finfo(predicted.dtype).eps)
    if len(distinct_predictions) <= len(model.identity) or _are_simple_fractions(distinct_predictions, rounding):
        return False
    mass = np.bincount(index, w)
    rates = np.stack([np.bincount(index, w * column) for column in observed.T], axis=1) / mass[:, None]
    return not np.allclose(rates, distinct_predictions, rtol=0, atol=max(1e-9, rounding))


def _are_simple_fractions(predictions: Array, rounding: float) -> bool:
    """Whether all predictions (k, m), or a sample of them, are fractions with a small denominator.

    `rounding` is the relative rounding error of the probabilities.
    """
    n_inspected = min(len(predictions), max(1, _MAX_INSPECTED // predictions.shape[1]))
    inspected = np.linspace(0, len(predictions) - 1, n_inspected).astype(np.int64)
    x, denominators = predictions[inspected].astype(np.float64).reshape(-1, 1), np.arange(1, MAX_DENOMINATOR + 1)
    numerators = x * denominators
    return bool((np.abs(numerators - np.rint(numerators)) <= rounding * denominators).any(axis=1).all())
