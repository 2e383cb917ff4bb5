"""Fit a calibrator to predictions in memory, in passes over a data source, or to the cells of a tally."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators._glm.fit_data import FitData, FitDataSummary
from trueodds.calibrators._glm.log_probabilities import LogProbabilities
from trueodds.calibrators._glm.row_sums import PassCounter, Step, Streamed
from trueodds.calibrators.base import CalibratorSpec, SummedSpec, TalliedSpec, lower_min_prob_for_logs
from trueodds.calibrators.fitted_calibrator import FittedCalibrator, logit_columns, prob_columns
from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import log_softmax
from trueodds.data.plausibility import plausibility_notes
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import check_logits
from trueodds.data.weights import are_counts
from trueodds.tallies.reservoir import Reservoir
from trueodds.tallies.row_counts import Counts
from trueodds.tallies.tally import Tally


def fit(spec: CalibratorSpec, preds: Predictions, *, counts: bool = False) -> FittedCalibrator:
    """The rule fitted to predictions; confidence alone is the pair (1 − c, c) of wrong and correct.

    Weights say which rows matter more, and not how many there are, unless they are `counts`: their mean is made 1, so
    that a penalty weighs as much as without them. How sure parameters are never takes weights for numbers of rows: those
    are rows, by `weight_kind="frequency"`. Where the logits are known the floor of logs is lowered to theirs.

    Raises InputError TO502 for labels that do not exclude each other.
    """
    spec = adapt_spec(spec, preds)
    P, Y, w = fit_arrays(spec, preds)
    if preds.weight is not None and not counts:
        w = w * (np.count_nonzero(w) / w.sum())
    against = plausibility_notes(preds)
    declined = spec.declined(preds.n, against)
    calibration_map, report = declined or spec.of_classes(preds.classes).explained(P, Y, w, preds.cluster)
    class_totals = np.bincount(Y, w, preds.k) if Y.ndim == 1 else w @ Y
    notes = [
        *preds.notes,
        *against,
        *unobserved_class_notes(class_totals, preds.classes),
        *spec.notes(calibration_map, P, Y, w),
    ]
    if report is not None:
        notes += report.notes
    return FittedCalibrator(
        calibration_map, preds.classes, preds.n, settings_of(spec), tuple(dict.fromkeys(notes)), report
    )


def adapt_spec(spec: CalibratorSpec, preds: Predictions) -> CalibratorSpec:
    """The rule with the floor for these predictions; refused where it is not for such."""
    check_supported(spec, preds.kind, preds.k)
    return spec if preds.logits is None else lower_min_prob_for_logs(spec)


def check_supported(spec: CalibratorSpec, kind: str, k: int) -> None:
    """Refuse labels that do not exclude each other, and classes that the rule is not for."""
    if kind == "multilabel":
        raise InputError(
            "TO502",
            "A calibrator is for classes that exclude each other; these labels are independent.",
            f"{k} labels",
            "Fit one per label: Predictions(Y[:, j], P[:, j]).",
        )
    spec.check_classes(k)


def fit_arrays(spec: CalibratorSpec, preds: Predictions) -> tuple[Any, Array, Array]:
    """Probabilities, their logarithms or logits, outcomes and weights as the rule takes them."""
    P: Any
    P, Y = raw_arrays(preds) if spec.accepts_raw_arrays else (prob_columns(preds.p), preds.Y)
    if preds.logits is not None and spec.takes_logs:
        P = LogProbabilities(log_softmax(preds.logits))
    if getattr(spec, "logits", False):
        if preds.logits is None:
            raise InputError(
                "TO509",
                "A fit to logits needs the logits.",
                "probabilities",
                "Use Predictions.from_logits, or leave logits out for a fit to log probabilities.",
            )
        P = logit_columns(check_logits(preds.logits))
    return P, Y, preds.w


def settings_of(spec: CalibratorSpec) -> dict[str, Any]:
    """What the rule was fitted with; one around another calibrator has a setting of that name too."""
    own = {"inner" if name == "calibrator" else name: value for name, value in spec.settings().items()}
    return {"calibrator": spec.name, **own}


def raw_arrays(preds: Predictions) -> tuple[Array, Array]:
    """Probabilities (n, K) of the type they came in, and labels (n,) where there are some: nothing large is copied."""
    return preds.p if preds.p.ndim == 2 else prob_columns(preds.P), preds.Y if preds.y is None else preds.y


def has_integer_weights(weight: Array | None) -> bool:
    """Whether weights are whole numbers, as scikit-learn's are where they stand for repeated rows."""
    return weight is not None and are_counts(weight)


def unobserved_class_notes(class_totals: Array, classes: tuple[Any, ...]) -> list[Note]:
    """The classes of which no outcome came, from the weight of those of each class (K,)."""
    missing = np.flatnonzero(class_totals == 0)
    if len(missing) == 0:
        return []
    listed = ", ".join(str(classes[c]) for c in missing[:5]) + (f" and {len(missing) - 5:,} more" * (len(missing) > 5))
    return [Note("TN501", f"No calibration row has class {listed}: what the map says about it is not backed by data.")]


Reduce = Callable[[Step], Any]  # runs a function on every batch of rows and adds the answers up


def fit_any_source(spec: CalibratorSpec, rows: Any, *, repeated: bool = False) -> FittedCalibrator:
    """The rule fitted to rows in memory, to a tally, or in passes over what has the verb `reduce`."""
    if isinstance(rows, Predictions):
        return fit(spec, rows)
    return (
        fit_from_tally(spec, rows) if isinstance(rows, Tally) else fit_from_source(spec, rows.reduce, repeated=repeated)
    )


def fit_from_source(spec: CalibratorSpec, reduce: Reduce, *, repeated: bool = False) -> FittedCalibrator:
    """The rule fitted in passes over a source; the parameters are those of a fit in memory.

    `reduce(step)` runs a step on the Predictions of every batch and adds up what comes of them; steps can be pickled.
    With `repeated` weights are numbers of rows. A rule that sums do not fit is fitted to a random sample.
    """
    if isinstance(spec, TalliedSpec):
        return fit_from_tally(spec, reduce(partial(_tallied, repeated=repeated)))
    if not isinstance(spec, SummedSpec):
        return fit_from_sample(spec, reduce, repeated=repeated)
    reducer = PassCounter(reduce)
    census: Census = reducer(partial(Census.of, spec=spec, repeated=repeated))
    spec, settings = census.lowered.of_classes(census.classes), settings_of(census.lowered)
    assert isinstance(spec, SummedSpec)
    # Weights say which rows matter, and not how many there are: their mean is made 1, as in memory.
    scale = census.facts.n / census.facts.mass if census.weighted else 1.0
    data = Streamed(
        reducer, census.facts.scaled(scale), (partial(_batch_fit_data, spec=spec, scale=scale, repeated=repeated),)
    )
    calibration_map = spec.fit_data(data)
    notes = [
        *census.notes(),
        *unobserved_class_notes(data.facts.class_totals, census.classes),
        *spec.fit_notes(calibration_map, data),
        _n_passes_note(reducer.n_passes, data.facts.errors),
    ]
    return FittedCalibrator(calibration_map, census.classes, data.facts.n, settings, tuple(notes))


def fit_from_sample(spec: CalibratorSpec, reduce: Callable[..., Any], *, repeated: bool = False) -> FittedCalibrator:
    """The rule fitted to a random sample of 2·10⁶ probabilities, which `reduce(step, keyed=True)` draws in one pass."""
    rng = getattr(spec, "rng", 0)
    sample: Reservoir = reduce(
        partial(Reservoir.of, seed=int(rng) if isinstance(rng, (int, np.integer)) else 0), keyed=True
    )
    calibrator = fit(spec, sample.rows.repeated() if repeated else sample.rows)
    return calibrator if sample.note is None else replace(calibrator, notes=(*calibrator.notes, sample.note))


def fit_from_tally(spec: CalibratorSpec, tally: Tally) -> FittedCalibrator:
    """The rule fitted to the cells of a tally, each as one score with its outcomes.

    Raises InputError TO502 for labels that do not exclude each other, TO403 for a rule that needs more than cells.
    """
    if not isinstance(spec, TalliedSpec):
        raise _not_by_cells(spec)
    check_supported(spec, tally.kind, tally.k)
    lens = "confidence" if tally.kind == "confidence" else "positive" if tally.k == 2 else "classwise"
    views = tally.views(lens)
    calibration_map = spec.of_views(views)
    class_totals = np.array([float(view.w @ view.y) for view in views])
    if len(views) == 1:
        class_totals = np.append(tally.weight - class_totals, class_totals)
    text = f"Fitted from cells, not rows: a {tally.resolution}. Scores within a cell count as one."
    notes = [
        *tally.notes(),
        *unobserved_class_notes(class_totals, tally.classes),
        *spec.fit_notes_of_views(calibration_map, views),
        Note("TN561", text),
    ]
    return FittedCalibrator(calibration_map, tally.classes, tally.n, settings_of(spec), tuple(notes))


def methods_fitted_from_sums() -> tuple[str, ...]:
    """The names of the methods that need no rows in memory."""
    return tuple(name for name in CALIBRATORS.names() if issubclass(CALIBRATORS.load(name), (SummedSpec, TalliedSpec)))


@dataclass(frozen=True, slots=True, eq=False)
class Census:
    """What the first pass tells of all rows."""

    classes: tuple[Any, ...]
    weighted: bool
    lowered: CalibratorSpec  # the rule with the floor for these rows
    facts: FitDataSummary
    counts: Counts = field(default_factory=Counts)
    others: Mapping[str, Note] = field(default_factory=dict)  # that batches bring, by code

    @classmethod
    def of(cls, batch: Predictions, spec: SummedSpec, repeated: bool) -> Census:
        """Of one batch."""
        lowered = adapt_spec(spec, batch)
        assert isinstance(lowered, SummedSpec)
        facts = FitDataSummary.of(_batch_fit_data(batch, lowered, 1.0, repeated))
        notes_by_code = {note.code: note for note in batch.notes}
        counts = _count_inexact_probabilities(batch) if notes_by_code.keys() & _COUNTED else Counts()
        others = {code: note for code, note in notes_by_code.items() if code not in _COUNTED}
        return cls(batch.classes, batch.weight is not None and not repeated, lowered, facts, counts, others)

    def __add__(self, other: Census) -> Census:
        if self.classes != other.classes:
            got = f"{_short(self.classes)} and {_short(other.classes)}"
            raise InputError("TO531", "All batches must have the same classes.", got, "Name them: classes=[…].")
        return Census(
            self.classes,
            self.weighted or other.weighted,
            self.lowered,
            self.facts + other.facts,
            self.counts + other.counts,
            {**other.others, **self.others},
        )

    def notes(self) -> list[Note]:
        """Those that Predictions of all rows would carry."""
        others = [Note(code, f"In a batch of the rows: {note.text}") for code, note in sorted(self.others.items())]
        return [*self.counts.notes(), *others]


_COUNTED = {"TN101", "TN102"}  # notes on how many rows do not quite sum to 1, or exceed it


def _batch_fit_data(batch: Predictions, spec: SummedSpec, scale: float, repeated: bool) -> FitData:
    """The rows of a batch as the rule takes them."""
    batch = batch.repeated() if repeated else batch
    P, Y, w = fit_arrays(spec, batch)
    return spec.as_fit_data(P, Y, w if scale == 1 else w * scale, batch.cluster)


def _count_inexact_probabilities(batch: Predictions) -> Counts:
    p, dtype = batch.p, np.dtype(batch.dtype)
    eps = float(np.finfo(dtype if dtype.kind == "f" else np.float64).eps)
    sum_errors = np.abs(p.sum(axis=1, dtype=np.float64) - 1) if p.ndim == 2 else np.zeros(1)
    return Counts(
        above=int((p > 1).sum()),
        inexact_sums=int((sum_errors > batch.k * eps).sum()),
        excess=max(float(p.max()) - 1, 0.0),
        worst_sum=float(sum_errors.max()),
    )


def _tallied(batch: Predictions, repeated: bool) -> Tally:
    return Tally.of(batch.repeated() if repeated else batch, bins=1)


def _n_passes_note(n_passes: int, errors: str) -> Note:
    text = f"Fitted from sums, in {n_passes:,} passes over the data, of which nothing was kept: the parameters are those of a fit in memory"
    if errors in ("votes", "clusters"):
        text += "; how sure they are is not told, since rows with votes or in clusters are left out one by one for that"
    return Note("TN560", text + ".")


def _not_by_cells(spec: CalibratorSpec) -> InputError:
    names = ", ".join(name for name in methods_fitted_from_sums() if issubclass(CALIBRATORS.load(name), TalliedSpec))
    fix = "Give the file of predictions" + (", which is read in passes." if isinstance(spec, SummedSpec) else ".")
    return InputError("TO403", f"{spec.name} needs more than a tally keeps, which fits {names}.", "a tally", fix)


def _short(classes: Sequence[Any]) -> str:
    text = ", ".join(map(str, classes))
    return text if len(text) <= 60 else text[:57] + "…"
