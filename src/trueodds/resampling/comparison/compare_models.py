"""Compare the errors of two models or rank several, with bootstrap intervals or the swap permutation test.

That test exchanges the predictions of the two models in random rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated, Any

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number
from trueodds.core.pvalues import pvalue
from trueodds.core.results import Interval
from trueodds.core.settings import OneOf, Settings
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator, Mean
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View, log_odds
from trueodds.resampling.comparison.compared_model import ComparedModel, compared_tally
from trueodds.resampling.comparison.comparison_results import Comparison, Ranking
from trueodds.resampling.comparison.differences import ErrorDifference, SimultaneousDifferences, error_difference
from trueodds.resampling.comparison.paired_rows import align_rows, count_common_ids, same_rows
from trueodds.resampling.draws import DrawnRows, Draws, evaluate
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.intervals.method import CONSTANT_OUTCOMES_TEXT, IntervalSpec, notes_on_resamples
from trueodds.tallies.tally import Tally, models_with_rows

Model = Predictions | Tally
NULL_CHOICES = ("auto", "swap")
DEFAULT_SWAPS = 999  # random exchanges of the permutation test
INVERSION_TEXT = "p is 1 − the largest level at which the interval excludes 0"
MIN_EXPLAINED_SHARE = 0.1  # share of the difference that noise floors explain from which a note is given


@dataclass(frozen=True)
class ModelComparison(Settings):
    """Settings of a comparison, which are the same for every model."""

    estimator: Estimator  # the error that is compared
    lens: Lens
    aggregate: str  # how the values of several views are combined
    interval_spec: IntervalSpec
    null: Annotated[str, OneOf(NULL_CHOICES)] = "auto"  # "swap" for the p-value of the swap permutation test
    paired: bool | None = None  # whether the models have the same rows; None to find out
    swaps: int = DEFAULT_SWAPS  # number of draws of the swap permutation test

    def compare_pair(self, a: Model, b: Model, names: tuple[str, str], seed: int) -> Comparison:
        """Compare two models: the error of the first minus that of the second."""
        (model_a, model_b), notes = self._compared_models({names[0]: a, names[1]: b}, seed)
        return self._build_comparison(error_difference(model_a, model_b, self.estimator), seed, notes)

    def rank_models(self, models: Mapping[str, Model], seed: int) -> Ranking:
        compared_models, notes = self._compared_models(models, seed)
        pairs = [error_difference(a, b, self.estimator) for a, b in combinations(compared_models, 2)]
        joint = SimultaneousDifferences([contrast for pair in pairs for contrast in pair.contrasts], len(pairs))
        level = joint.level(self.interval_spec.level)
        comparisons = [self._build_comparison(pair, seed, [], level, joint) for pair in pairs]
        losses = {model.name: float(self.estimator.as_loss(np.float64(model.value))) for model in compared_models}
        order = sorted(losses, key=lambda name: (np.isnan(losses[name]), losses[name]))  # undefined errors last
        notes += [note for comparison in comparisons for note in comparison.notes]
        settings = {
            key: value for key, value in comparisons[0].settings.items() if key not in ("correlation", "standard_error")
        }
        settings["simultaneous"] = "bonferroni" if joint.max_t_draws is None else "max-t"
        settings["rows"] = "paired" if all(comparison.paired for comparison in comparisons) else "unpaired"
        if any(comparison.paired for comparison in comparisons) and settings["rows"] == "unpaired":
            settings["rows"] = "paired where the rows are the same"
        return Ranking(
            estimator=self.estimator.name,
            lens=str(self.lens),
            order=tuple(order),
            models={model.name: model.estimate for model in compared_models},
            pairs=tuple(comparisons),
            n=max(model.n_rows for model in compared_models),
            level=self.interval_spec.level,
            null=self._null_description(pairs),
            settings=settings,
            notes=tuple(dict.fromkeys(notes)),
        )

    def compare_all_pairs(self, models: Mapping[str, Model], seed: int) -> tuple[list[ErrorDifference], list[Note]]:
        """Differences of all pairs of models, with p-values not adjusted for their number, and notes on the pairing."""
        compared_models, notes = self._compared_models(models, seed)
        return [error_difference(a, b, self.estimator) for a, b in combinations(compared_models, 2)], notes

    def _compared_models(self, models: Mapping[str, Model], seed: int) -> tuple[list[ComparedModel], list[Note]]:
        """The models to compare, and notes on pairing; models of the same rows share the key of their resamples."""
        rows = models_with_rows(models)
        return self._models_from_rows(rows, seed) if rows else self._models_from_tallies(models, seed)

    def _models_from_tallies(self, models: Mapping[str, Any], seed: int) -> tuple[list[ComparedModel], list[Note]]:
        if self.null == "swap" or self.paired:
            setting = "null='swap'" if self.null == "swap" else "⟨paired=True⟩"
            fix = f"{OMIT_PAIRING_TEXT} {COMPARE_ROWS_TEXT}"
            raise InputError("TO403", "A paired comparison requires the rows.", setting, fix)
        compared_models = [
            compared_tally(name, tally, self.estimator, self.lens, self.aggregate, self.interval_spec, [seed, number])
            for number, (name, tally) in enumerate(models.items())
        ]
        notes = [] if self.paired is False else [Note("TN227", f"{INDEPENDENT_TALLIES_TEXT} {COMPARE_ROWS_TEXT}")]
        return compared_models, notes

    def _models_from_rows(self, models: Mapping[str, Predictions], seed: int) -> tuple[list[ComparedModel], list[Note]]:
        """The models to compare from rows, and notes on which of them are paired."""
        models, notes = align_rows(models, self.paired)
        compared_models: list[ComparedModel] = []
        pairing = _Pairing()
        for number, (name, preds) in enumerate(models.items()):
            key = [seed] if number == 0 else [seed, number]
            for earlier in compared_models:
                is_paired, reason = same_rows(earlier.preds, preds, self.paired)
                pairing.record_pair(earlier.name, name, is_paired=is_paired, reason=reason, paired=self.paired)
                pairing.has_equal_sizes |= earlier.preds.n == preds.n
                pairing.has_common_ids |= not is_paired and count_common_ids(earlier.preds, preds) > 0
                if is_paired:
                    key = list(earlier.key)
                    break
            estimand = Estimand.from_predictions(self.estimator, self.lens, preds, self.aggregate)
            compared_models.append(ComparedModel(name, preds, estimand, self.interval_spec, key))
        return compared_models, [*notes, *pairing.notes()]

    def _build_comparison(
        self,
        pair: ErrorDifference,
        seed: int,
        notes: Sequence[Note],
        level: float | None = None,
        joint: SimultaneousDifferences | None = None,
    ) -> Comparison:
        """Assemble the result of one pair; within a ranking, with its simultaneous level and adjusted p-value."""
        a, b, has_no_interval = pair.a, pair.b, self.interval_spec.interval is None
        level = self.interval_spec.level if level is None else level
        interval = None if has_no_interval else pair.interval(level)
        p, min_pvalue = (None, None) if has_no_interval else (pair.pvalue, pair.min_pvalue)
        notes = [*notes, *_estimate_notes(a, b)]
        if not has_no_interval and interval is None:
            notes.append(Note("TN201", f"No interval: {pair.reason_without_interval or CONSTANT_OUTCOMES_TEXT}."))
        if min_pvalue is not None:
            notes += notes_on_resamples(self.interval_spec)
        if interval is not None and not interval.low <= 0 <= interval.high and pair.is_doubtful:
            notes.append(pair.doubt_note)
        if not has_no_interval and (note := _noise_floor_note(pair, interval, self.estimator)):
            notes.append(note)
        if self.null == "swap":
            p, min_pvalue = self._swap_pvalue(pair, seed)
            notes.append(Note("TN229", SWAP_TEST_TEXT))
        if joint is not None and p is not None:
            p = joint.adjusted_pvalue(p, swapped=self.null == "swap")
        return Comparison(
            estimator=self.estimator.name,
            lens=str(self.lens),
            difference=pair.value,
            n=_count_compared_rows(pair),
            paired=pair.paired,
            models={a.name: a.estimate, b.name: b.estimate},
            null=self._null_description([pair]),
            interval=interval,
            pvalue=p,
            min_pvalue=min_pvalue,
            settings=self._settings_used(pair, interval is not None),
            notes=tuple(dict.fromkeys(notes)),
        )

    def _swap_pvalue(self, pair: ErrorDifference, seed: int) -> tuple[float | None, float]:
        """p-value of the swap permutation test, and its smallest possible value."""
        if not pair.paired:
            raise InputError(
                "TO205",
                "The swap permutation exchanges predictions row by row, and these models have different rows.",
                f"{pair.a.name} and {pair.b.name}, unpaired",
                "Omit null, or pass ⟨paired=True⟩ if the rows are the same.",
            )
        rng = np.random.default_rng([seed, 1])
        drawn = swap_differences(pair.a, pair.b, self.swaps, rng)
        p = None if np.isnan(pair.value) else pvalue(abs(pair.value), np.abs(drawn))
        return p, 1 / (1 + self.swaps)

    def _null_description(self, pairs: Sequence[ErrorDifference]) -> str:
        if self.null == "swap":
            return SWAP_NULL.format(unit="row" if pairs[0].a.preds.cluster is None else "cluster")
        if self.estimator.has_target:
            target = format_number(self.estimator.best_value)
            return f"the true values of both models are equally far from {target}; {INVERSION_TEXT}"
        quantity = "expected scores" if all(pair.uses_standard_error for pair in pairs) else "true errors"
        return f"the {quantity} of both models are equal; {INVERSION_TEXT}"

    def _settings_used(self, pair: ErrorDifference, has_interval: bool) -> dict[str, Any]:
        """Settings of the estimator that are equal for both models, and settings of the interval."""
        settings_a, settings_b = pair.a.estimate.settings, pair.b.estimate.settings
        settings = {key: value for key, value in settings_a.items() if key in settings_b and settings_b[key] == value}
        for key in ("interval", "level", "resamples", "resample", "redraws"):
            settings.pop(key, None)
        if has_interval:
            assert pair.method is not None
            settings |= {
                "interval": pair.method,
                "level": self.interval_spec.level,
            }
            if pair.method == "wald":
                settings |= {"correlation": pair.correlation_of_influence} if pair.paired else {}
            else:
                settings["resamples"] = self.interval_spec.resamples
            if pair.method in ("mover", "folded-normal"):
                settings["correlation"] = pair.correlation
            if pair.uses_standard_error:
                settings["standard_error"] = pair.standard_error[0]
        if self.estimator.has_target:
            settings["distance_from"] = self.estimator.best_value
        else:
            settings |= self.estimator.best_value_setting
        settings["null"] = self.null
        if self.null == "swap":
            settings["swaps"] = self.swaps
        return settings


class _Pairing:
    """Collects notes on which models have the same rows."""

    def __init__(self) -> None:
        self.pairing_reasons: dict[str, None] = {}  # why pairs of models count as paired; an ordered set
        self.mismatches: dict[str, None] = {}  # unpaired models, each with the reason; an ordered set
        self.has_equal_sizes = False  # whether any two models may have the same rows in another order
        self.has_common_ids = False  # whether any two unpaired models have rows with the same id

    def record_pair(self, first: str, second: str, *, is_paired: bool, reason: str, paired: bool | None) -> None:
        """Record whether two models are paired, and why, unless the user set `paired`."""
        if paired is None:
            if is_paired:
                self.pairing_reasons[reason] = None
            else:
                self.mismatches[f"{first} and {second}: {reason}"] = None

    def notes(self) -> list[Note]:
        """Notes on the pairing, and how to change it."""
        note_list = []
        if self.pairing_reasons:
            reasons = " and ".join(self.pairing_reasons)
            text = f"Paired comparison, because {reasons}. If these are different rows, pass ⟨paired=False⟩."
            note_list.append(Note("TN226", text))
        if self.mismatches:
            text = f"Compared as independent samples ({'; '.join(self.mismatches)})."
            if self.has_common_ids:
                text += (
                    " Rows with the same id are dependent, so unpaired intervals are invalid for them: pass"
                    " ⟨paired=True⟩ to compare the common rows."
                )
            elif self.has_equal_sizes:
                text += (
                    " If these are the same rows, pass ⟨paired=True⟩ and either ids of the rows (⟨question=⟩,"
                    " ⟨row_id=⟩) or the same order, because unpaired intervals are invalid for paired rows."
                )
            note_list.append(Note("TN227", text))
        return note_list


INDEPENDENT_TALLIES_TEXT = "Compared as independent samples: a tally does not store rows, so they cannot be paired."
OMIT_PAIRING_TEXT = "Omit it to compare independent samples."
COMPARE_ROWS_TEXT = "If both tallies contain the same rows, compare the predictions instead."
SWAP_TEST_TEXT = (
    "The swap permutation rejects for any difference between the models. It can reject two calibrated models if one is "
    "sharper and the error depends on sharpness. The interval refers to the difference of the errors."
)


def _estimate_notes(a: ComparedModel, b: ComparedModel) -> list[Note]:
    """Notes of both estimates, without those on their intervals; each begins with the name of its model."""
    names_by_note: dict[Note, list[str]] = {}
    for model in (a, b):
        for note in model.estimate.notes:
            if note.code not in ("TN201", "TN211"):
                names_by_note.setdefault(note, []).append(model.name)
    return [Note(note.code, f"{' and '.join(names)}: " + note.text) for note, names in names_by_note.items()]


def _count_compared_rows(pair: ErrorDifference) -> int:
    return pair.a.n_rows if pair.paired else pair.a.n_rows + pair.b.n_rows


def _noise_floor_note(pair: ErrorDifference, interval: Interval | None, estimator: Estimator) -> Note | None:
    """A note if two calibrated models with these predictions would differ because of their noise floors."""
    noise_floor_a, noise_floor_b = pair.a.estimate.noise_floor, pair.b.estimate.noise_floor
    is_error = estimator.vanishes_if_calibrated and not isinstance(estimator, Mean)
    if not is_error or noise_floor_a is None or noise_floor_b is None or not np.isfinite(pair.value):
        return None
    if estimator.has_target:
        noise_floor_a, noise_floor_b = (
            float(estimator.as_loss(np.float64(value))) for value in (noise_floor_a, noise_floor_b)
        )
    gap = noise_floor_a - noise_floor_b
    if abs(gap) <= max(MIN_EXPLAINED_SHARE * abs(pair.value), 2 * _simulation_error(pair)):
        return None
    advice = "do not compare the plain estimates" if interval is None else "use the interval"
    return Note("TN228", f"Expected difference of two calibrated models: {gap:.2g}; {advice}.")


def _simulation_error(pair: ErrorDifference) -> float:
    """Standard error of the difference of two simulated noise floors, as if their draws were independent."""
    variance = 0.0
    for model in (pair.a, pair.b):
        draws_by_view = model.null_draws[0]
        if draws_by_view is not None:
            draws = model.estimand.combine_views(draws_by_view)
            variance += float(draws.var(ddof=1)) / len(draws)
    return float(np.sqrt(variance))


def add_call_settings(
    comparison: Comparison | Ranking, settings: Mapping[str, Any], notes: Sequence[Note]
) -> Comparison | Ranking:
    return replace(comparison, settings=dict(comparison.settings) | dict(settings), notes=(*notes, *comparison.notes))


SWAP_NULL = (
    "the predictions of both models are exchangeable within every {unit} (a stronger hypothesis than equal calibration)"
)


def swap_differences(a: ComparedModel, b: ComparedModel, draws: int, rng: np.random.Generator) -> Array:
    """Return the differences (draws,) of the errors of two models that exchange the predictions of random rows.

    Each row (or cluster) is exchanged with probability 1/2. The errors are distances if the estimator has a target.
    """
    if [view.p.shape for view in a.estimand.views] != [view.p.shape for view in b.estimand.views]:
        raise InputError(
            "TO205",
            "The swap permutation requires that both models predict the same classes.",
            f"{a.preds.k} and {b.preds.k} classes",
            "Omit null.",
        )
    estimands, estimator = [a.estimand, b.estimand], a.estimand.estimator
    values = evaluate(estimands, Swap(a.preds, draws, rng))
    errors = [
        estimand.combine_views(draws_of_model) for estimand, draws_of_model in zip(estimands, values, strict=True)
    ]
    error_a, error_b = estimator.as_loss(np.array(errors)) if estimator.has_target else errors
    return np.asarray(error_a - error_b)


class Swap(Draws):
    """The rows of two models that exchange the predictions of random rows, or of whole clusters."""

    keeps_cells = False

    def __init__(self, preds: Predictions, n_draws: int, rng: np.random.Generator) -> None:
        self.unit = np.arange(preds.n) if preds.cluster is None else preds.cluster
        self.n_draws, self.rng = n_draws, rng

    def map_rows(self, estimands: Sequence[Estimand]) -> Iterator[list[list[DrawnRows]]]:
        """Yield the rows of both models, which are the `estimands`, in one draw at a time."""
        (first, second), n_units = estimands, int(self.unit.max()) + 1
        for _ in range(self.n_draws):
            is_exchanged = (self.rng.random(n_units) < 0.5)[self.unit]
            yield [
                [
                    [_exchange_rows(own_view, other_view, is_exchanged)]
                    for own_view, other_view in zip(own.views, other.views, strict=True)
                ]
                for own, other in ((first, second), (second, first))
            ]


def _exchange_rows(own: View, other: View, is_exchanged: Array) -> View:
    """Return the view with the rows of the mask (n,) from the other view."""
    mask = is_exchanged[:, None] if own.joint else is_exchanged
    p, y = np.where(mask, other.p, own.p), np.where(mask, other.y, own.y)
    partition_values = np.where(mask, other.partition_values, own.partition_values)
    uses_predictions = own.partition_values is own.p and other.partition_values is other.p
    w = np.where(is_exchanged, other.w, own.w)
    exact_rows = ExchangedRows(own, other, is_exchanged)
    return View(
        p,
        y,
        w,
        partition_values=None if uses_predictions else partition_values,
        name=own.name,
        classes=own.classes,
        votes=own.votes,
        exact=exact_rows,
    )


class ExchangedRows:
    """Exact complements and log-probabilities of the rows of `own`, with those of the mask (n,) from `other`.

    A `View` that is constructed from p alone would compute 1 − p and log p, and lose the precision of tiny
    probabilities.
    """

    def __init__(self, own: View, other: View, is_exchanged: Array) -> None:
        self.own, self.other, self.is_exchanged = own, other, is_exchanged
        self.has_logs = own.has_logs or other.has_logs

    def complement(self, p: Array) -> Array:
        return np.where(self.is_exchanged, self.other.q, self.own.q)

    def log_odds(self) -> Array | None:
        """Log odds of each row, if both views have them: those of one model and ranks of the other do not compare."""
        own, other = log_odds(self.own), log_odds(self.other)
        return None if own is None or other is None else np.where(self.is_exchanged, other, own)

    def logs(self, outcomes: int) -> Array:
        return np.where(self.is_exchanged[:, None], self.other.log_P, self.own.log_P)
