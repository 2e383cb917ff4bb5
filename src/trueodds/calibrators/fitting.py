"""Fit a calibrator to predictions in memory, in passes over a data source, or to the cells of a tally."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators._curves.one_vs_rest import zero_probability_notes
from trueodds.calibrators._glm.fit_data import (
    FitData,
    FitDataSummary,
    PassCounter,
    RowFunction,
    Streamed,
    rows_with_weight,
)
from trueodds.calibrators._glm.log_probabilities import LogProbabilities, Probabilities, to_probabilities
from trueodds.calibrators._groups.rows_with_columns import split_columns
from trueodds.calibrators.base import (
    CalibrationMap,
    CalibratorSpec,
    SummedSpec,
    TalliedSpec,
    lower_min_prob_for_logs,
    to_accepted_input,
)
from trueodds.calibrators.calibrator_predictions import independent_labels_error, logit_columns
from trueodds.calibrators.fitted_calibrator import FittedCalibrator
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note, shorten
from trueodds.core.typing import Array
from trueodds.data.class_names import labels_are_positions
from trueodds.data.copied_rows import number_cases
from trueodds.data.plausibility import plausibility_notes, positions_hint
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import check_logits, prob_columns
from trueodds.tallies.batch_fingerprints import BatchFingerprints
from trueodds.tallies.reservoir import Reservoir
from trueodds.tallies.tally import Tally
from trueodds.tallies.tally_sums import SpecialRowCounts

ReduceFunction = Callable[[RowFunction], Any]  # applies a function to every batch of rows and adds the results
_COUNTED_NOTE_CODES = {"TN101", "TN102"}  # notes that count rows with inexact sums or probabilities above 1


def fit(
    spec: CalibratorSpec,
    preds: Predictions,
    *,
    scale_weights: bool = True,
    keep_held_out: bool = False,
    trained_on_rows: bool | None = None,
) -> FittedCalibrator:
    """Fit a calibrator to predictions in memory.

    Confidence alone is treated as the pair (1 − c, c) of wrong and correct.

    Parameters
    ----------
    spec : CalibratorSpec
        The calibrator.
    preds : Predictions
        Predicted probabilities and outcomes.
    scale_weights : bool, default=True
        Whether the weights are scaled to mean 1, so that a penalty has the same strength as without them. Do not scale
        numbers of rows. Standard errors treat them as importance weights even so; where they should not, repeat the
        rows by `Predictions.expand_frequencies`.
    keep_held_out : bool, default=False
        Whether the report of a procedure that chooses keeps the cross-fitted probabilities of the rows.
    trained_on_rows : bool, optional
        Whether the model was trained on these rows, on which `auto` confirms nothing. By default, whether the
        predictions look like it (note TN163).

    Returns
    -------
    FittedCalibrator
        The fitted calibrator, with notes.

    Raises
    ------
    InputError
        TO502 for labels that do not exclude each other; TO509 for a calibrator of logits if there are none; TO511 for
        more than two classes with a calibrator for two.

    Notes
    -----
    Where the logits are known, the default smallest probability inside logarithms is lowered to 1e-300.

    Examples
    --------
    >>> from trueodds.calibrators.temperature import TemperatureSpec
    >>> print(fit(TemperatureSpec(), Predictions([1, 1, 1, 0], [0.9, 0.9, 0.9, 0.9])))
    temperature · T = 2.00 · n=4 · 2 classes
    """
    spec = adapt_spec(spec, preds)
    P, Y, w = fit_arrays(spec, preds)
    P = spec.with_columns(P, preds)
    if preds.weight is not None and scale_weights:
        w = w * (np.count_nonzero(w) / w.sum())
    doubts = plausibility_notes(preds)
    refusal = spec.refuse_implausible_predictions(preds.n, [*preds.notes, *doubts])
    has_copies = any(note.code == "TN144" for note in doubts)
    cluster = number_cases(preds) if has_copies else preds.cluster  # no fold evaluates what another one was fitted to
    if trained_on_rows is None:
        trained_on_rows = any(note.code == "TN163" for note in doubts)
    calibration_map, report = refusal or spec.with_class_numbers(preds.classes).fit_with_report(
        P, Y, w, cluster, trained_on_rows=trained_on_rows
    )
    class_totals = np.bincount(Y, w, preds.k) if Y.ndim == 1 else weighted_sum(w, Y)
    P, Y, w = rows_with_weight(P, Y, w)  # notes count the others as little as the fit does
    notes = [
        *preds.notes,
        *_without_unobserved_classes(doubts),
        *unobserved_class_notes(class_totals, preds.classes),
        *spec.notes(calibration_map, P, Y, w),
    ]
    if refusal is None and not any(note.code == "TN505" for note in notes):
        notes += _exact_zero_notes(calibration_map, P, Y)
    if report is not None:
        notes += report.notes
        report = report if keep_held_out else report.without_held_out()
    return FittedCalibrator(
        calibration_map,
        preds.classes,
        preds.n,
        settings_by_name(spec),
        tuple(dict.fromkeys(notes)),
        report,
        BatchFingerprints.from_predictions(preds).single_name,
    )


def _exact_zero_notes(calibration_map: CalibrationMap, P: Probabilities, Y: Array) -> list[Note]:
    """Note TN505 if the map keeps predicted probabilities of exactly 0, as a power of p does."""
    if calibration_map.logits:
        return []
    has_zero = to_probabilities(split_columns(P)[0]).min(axis=1) == 0
    Q = calibration_map.apply(to_accepted_input(calibration_map, P[has_zero]))
    return zero_probability_notes(Q, Y[has_zero], len(P))


def adapt_spec(spec: CalibratorSpec, preds: Predictions) -> CalibratorSpec:
    """The calibrator for these predictions, with a lower default `min_prob` if logits are known.

    Raises TO502 for independent labels, TO511 for a number of classes that the calibrator does not support.
    """
    check_supported(spec, preds.kind, preds.k)
    return spec if preds.logits is None else lower_min_prob_for_logs(spec)


def check_supported(spec: CalibratorSpec, kind: str, k: int) -> None:
    """Raise TO502 for independent labels, TO511 for a number of classes that the calibrator does not support."""
    if kind == "multilabel":
        raise independent_labels_error(k)
    spec.check_classes(k)


def fit_arrays(spec: CalibratorSpec, preds: Predictions) -> tuple[Any, Array, Array]:
    """The arguments of the calibrator's `fit`: P, Y and w.

    P (n, K) are probabilities, log-probabilities or logits, depending on the calibrator. Y are outcome shares (n, K),
    or labels (n,) where the calibrator accepts them, and w (n,) weights.
    """
    P: Any
    if spec.accepts_raw_arrays:  # probabilities in their own dtype, so that large arrays are not copied
        P, Y = preds.p if preds.p.ndim == 2 else prob_columns(preds.P), preds.Y if preds.y is None else preds.y
    else:
        P, Y = prob_columns(preds.p), preds.Y
    if preds.logits is not None and spec.takes_logs:
        P = LogProbabilities.from_logits(preds.logits)
    if spec.logits:
        if preds.logits is None:
            raise InputError(
                "TO509",
                "A fit on logits needs the logits.",
                "probabilities",
                "Use ⟨Predictions.from_logits⟩, or leave logits out to fit on log-probabilities.",
            )
        P = logit_columns(check_logits(preds.logits))
    return P, Y, preds.w


def settings_by_name(spec: CalibratorSpec) -> dict[str, Any]:
    """The settings that a calibrator was fitted with, by name; an inner calibrator is stored as `inner`."""
    settings = {"inner" if name == "calibrator" else name: value for name, value in spec.settings().items()}
    return {"calibrator": spec.name, **settings}


def unobserved_class_notes(class_totals: Array, classes: tuple[Any, ...]) -> list[Note]:
    """Note TN501 on classes that were never observed, from the total weight of each class (K,)."""
    missing = np.flatnonzero(class_totals == 0)
    if len(missing) == 0:
        return []
    class_list = ", ".join(str(classes[c]) for c in missing[:5])
    if len(missing) > 5:
        class_list += f" and {len(missing) - 5:,} more"
    text = f"No calibration row has class {class_list}: the map for it is not backed by data."
    if missing[0] == 0 and len(classes) > 2 and labels_are_positions(classes):
        text += f" {positions_hint(len(classes))}"
    return [Note("TN501", text)]


def _without_unobserved_classes(notes: Iterable[Note]) -> list[Note]:
    """Return the notes on data without that on classes never observed, for which a fit has its own note, TN501."""
    return [note for note in notes if note.code != "TN185"]


def fit_any_source(spec: CalibratorSpec, rows: Any, weight_kind: str | None) -> FittedCalibrator:
    """Fit a calibrator to rows in memory, to a tally, or in passes over a source with a method `reduce`.

    `weight_kind` is that of the weights of a source. Rows in memory with frequency weights are already expanded.
    """
    if isinstance(rows, Predictions):
        return fit(spec, rows)
    if isinstance(rows, Tally):
        return fit_from_tally(spec, rows)
    return fit_from_source(spec, rows.reduce, weight_kind)


def fit_from_source(spec: CalibratorSpec, reduce: ReduceFunction, weight_kind: str | None = None) -> FittedCalibrator:
    """Fit a calibrator in passes over a source; the fitted parameters are those of a fit in memory.

    `reduce(step)` applies a step to the Predictions of every batch and adds the results; steps can be pickled. A
    calibrator that cannot be fitted from sums is fitted to a random sample.
    """
    if isinstance(spec, TalliedSpec):
        return fit_from_tally(spec, reduce(partial(_tally_batch, weight_kind=weight_kind)))
    if not isinstance(spec, SummedSpec):
        return fit_from_sample(spec, reduce, weight_kind)
    reducer = PassCounter(reduce)
    first_pass: FirstPassSummary = reducer(partial(FirstPassSummary.from_batch, spec=spec, weight_kind=weight_kind))
    settings = settings_by_name(first_pass.spec_for_rows)
    spec = first_pass.spec_for_rows.with_class_numbers(first_pass.classes)
    assert isinstance(spec, SummedSpec)
    # Importance weights are scaled to mean 1, as in memory.
    scale = first_pass.summary.n / first_pass.summary.total_weight if first_pass.has_importance_weights else 1.0
    data = Streamed(
        reducer,
        first_pass.summary.scale_weights(scale),
        (partial(_batch_fit_data, spec=spec, scale=scale, weight_kind=weight_kind),),
    )
    calibration_map = spec.fit_from_sums(data)
    notes = [
        *first_pass.notes(),
        *unobserved_class_notes(data.summary.class_totals, first_pass.classes),
        *spec.notes_from_sums(calibration_map, data),
        _n_passes_note(reducer.n_passes, data.summary.std_error_method),
    ]
    return FittedCalibrator(calibration_map, first_pass.classes, data.summary.n, settings, tuple(notes))


def fit_from_sample(spec: CalibratorSpec, reduce: Callable[..., Any], weight_kind: str | None) -> FittedCalibrator:
    """Fit a calibrator to a random sample of at most 2·10⁶ probabilities, which is drawn in one pass of `reduce`.

    It is called with `keyed=True`, so that the step also gets the ids of the rows: the sample then does not depend on
    how the rows are divided into batches.
    """
    rng = getattr(spec, "rng", 0)
    sample: Reservoir = reduce(
        partial(Reservoir.from_predictions, seed=int(rng) if isinstance(rng, (int, np.integer)) else 0), keyed=True
    )
    calibrator = fit(spec, _expand_rows(sample.rows, weight_kind))
    return calibrator if sample.note is None else replace(calibrator, notes=(*calibrator.notes, sample.note))


def fit_from_tally(spec: CalibratorSpec, tally: Tally) -> FittedCalibrator:
    """Fit a calibrator to the cells of a tally, each as one score with its outcomes.

    Raises InputError TO502 for labels that do not exclude each other, TO403 for a calibrator that needs single rows.
    """
    if not isinstance(spec, TalliedSpec):
        raise _no_tally_fit_error(spec)
    check_supported(spec, tally.kind, tally.k)
    if tally.kind == "confidence":
        views = tally.views("confidence")
    else:
        views = tally.views("positive" if tally.k == 2 else "classwise")
    calibration_map = spec.fit_from_views(views)
    class_totals = np.array([float(weighted_sum(view.w, view.y)) for view in views])
    if len(views) == 1:
        class_totals = np.append(tally.weight - class_totals, class_totals)
    text = f"Fitted from cells, not rows: a {tally.resolution}. Scores within a cell are treated as equal."
    notes = [
        *_without_unobserved_classes(tally.notes()),
        *unobserved_class_notes(class_totals, tally.classes),
        *spec.notes_from_views(calibration_map, views),
        Note("TN561", text),
    ]
    return FittedCalibrator(calibration_map, tally.classes, tally.n, settings_by_name(spec), tuple(notes))


def methods_fitted_from_sums() -> tuple[str, ...]:
    """Names of the calibrators that are fitted from sums or cells, and so need no rows in memory."""
    return tuple(name for name in CALIBRATORS.names() if issubclass(CALIBRATORS.load(name), (SummedSpec, TalliedSpec)))


@dataclass(frozen=True, slots=True, eq=False)
class FirstPassSummary:
    """Facts about all rows that the first pass collects; summaries of batches add up."""

    classes: tuple[Any, ...]  # names of the K classes
    has_importance_weights: bool
    spec_for_rows: CalibratorSpec  # the calibrator, with a lower default `min_prob` if logits are known
    summary: FitDataSummary
    special_row_counts: SpecialRowCounts = field(default_factory=SpecialRowCounts)
    other_notes: Mapping[str, Note] = field(default_factory=dict)  # of the batches, by code

    @classmethod
    def from_batch(cls, batch: Predictions, spec: SummedSpec, weight_kind: str | None) -> FirstPassSummary:
        spec_for_rows = adapt_spec(spec, batch)
        assert isinstance(spec_for_rows, SummedSpec)
        summary = FitDataSummary.from_fit_data(_batch_fit_data(batch, spec_for_rows, 1.0, weight_kind))
        notes_by_code = {note.code: note for note in batch.notes}
        is_counted = notes_by_code.keys() & _COUNTED_NOTE_CODES
        return cls(
            classes=batch.classes,
            has_importance_weights=batch.weight is not None and weight_kind != "frequency",
            spec_for_rows=spec_for_rows,
            summary=summary,
            special_row_counts=_count_inexact_rows(batch) if is_counted else SpecialRowCounts(),
            other_notes={code: note for code, note in notes_by_code.items() if code not in _COUNTED_NOTE_CODES},
        )

    def __add__(self, other: FirstPassSummary) -> FirstPassSummary:
        if self.classes != other.classes:
            got = " and ".join(shorten(", ".join(map(str, one.classes)), 60) for one in (self, other))
            raise InputError("TO531", "All batches must have the same classes.", got, "Name them: ⟨classes=[…]⟩.")
        return FirstPassSummary(
            self.classes,
            self.has_importance_weights or other.has_importance_weights,
            self.spec_for_rows,
            self.summary + other.summary,
            self.special_row_counts + other.special_row_counts,
            {**other.other_notes, **self.other_notes},
        )

    def notes(self) -> list[Note]:
        """The notes that Predictions of all rows would have."""
        other_notes = [
            Note(code, "In a batch of the rows: " + note.text) for code, note in sorted(self.other_notes.items())
        ]
        return [*self.special_row_counts.notes(), *other_notes]


def _expand_rows(rows: Predictions, weight_kind: str | None) -> Predictions:
    """The rows, each repeated as often as its weight says if weights are frequencies."""
    return rows.expand_frequencies() if weight_kind == "frequency" else rows


def _batch_fit_data(batch: Predictions, spec: SummedSpec, scale: float, weight_kind: str | None) -> FitData:
    """The rows of a batch as the `FitData` that the calibrator is fitted to, with weights multiplied by `scale`."""
    batch = _expand_rows(batch, weight_kind)
    P, Y, w = fit_arrays(spec, batch)
    return spec.as_fit_data(P, Y, w if scale == 1 else w * scale, batch.cluster)


def _count_inexact_rows(batch: Predictions) -> SpecialRowCounts:
    """Count the rows of a batch with inexact sums or probabilities above 1."""
    p, dtype = batch.p, np.dtype(batch.dtype)
    eps = float(np.finfo(dtype if dtype.kind == "f" else np.float64).eps)
    sum_errors = np.abs(p.sum(axis=1, dtype=np.float64) - 1) if p.ndim == 2 else np.zeros(1)
    return SpecialRowCounts(
        above=int((p > 1).sum()),
        inexact_sums=int((sum_errors > batch.k * eps).sum()),
        excess=max(float(p.max()) - 1, 0.0),
        worst_sum=float(sum_errors.max()),
    )


def _tally_batch(batch: Predictions, weight_kind: str | None) -> Tally:
    return Tally.from_predictions(batch, bins=1, weight_kind=weight_kind)


def _n_passes_note(n_passes: int, std_error_method: str) -> Note:
    """Note TN560 on the passes of a streamed fit, and on missing standard errors."""
    text = (
        f"Fitted from sums in {n_passes:,} passes over the data, without keeping rows: the parameters are those of a"
        " fit in memory"
    )
    if std_error_method in ("votes", "clusters"):
        text += (
            "; there are no standard errors, because with votes or clusters they need the jackknife over rows in memory"
        )
    return Note("TN560", text + ".")


def _no_tally_fit_error(spec: CalibratorSpec) -> InputError:
    """Error TO403 for a calibrator that cannot be fitted from a tally."""
    names = ", ".join(name for name in methods_fitted_from_sums() if issubclass(CALIBRATORS.load(name), TalliedSpec))
    fix = "Pass the file of predictions" + (", which is read in passes." if isinstance(spec, SummedSpec) else ".")
    return InputError("TO403", f"{spec.name} cannot be fitted from a tally; only {names} can.", "a tally", fix)
