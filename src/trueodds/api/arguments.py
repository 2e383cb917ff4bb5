"""Resolve the arguments that public functions share: data, method and settings, seed, lens, and reported settings.

Rows are collected if their probabilities fit into the memory of this process, that of the machine or its container.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from trueodds.core.docstrings import insert_shared_parameters
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.rng import reported_seed, seed_of
from trueodds.core.settings import check
from trueodds.core.signatures import describe_row_argument
from trueodds.core.suggestions import list_names
from trueodds.data.plausibility import plausibility_notes
from trueodds.data.predictions import Predictions
from trueodds.data.weights import frequency_weight_notes
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator
from trueodds.hypotests import TESTS
from trueodds.hypotests.base import HypothesisTest
from trueodds.io.models import is_array
from trueodds.io.read import read_for_call
from trueodds.io.source import Source
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical, Positive
from trueodds.lenses.lens_by_name import as_lens, default_lens
from trueodds.lenses.region import select_region
from trueodds.tallies.reservoir import Reservoir, SampledTally
from trueodds.tallies.tally import NO_ROWS_TEXT, Tally, require_rows

if TYPE_CHECKING:
    from trueodds.diagrams.recipe import Recipe

Mode = Literal["exact", "tally"] | None
WeightKind = Literal["importance", "frequency"] | None


def resolve_method(registry: Any, base_class: type, method: Any, settings: dict[str, Any]) -> Any:
    """Return the method with this name and these settings; an instance of `base_class` is returned as it is.

    Parameters
    ----------
    registry : Registry
        The methods by name, such as `ESTIMATORS`.
    base_class : type
        Class of all of these methods.
    method : object
        The argument of the caller.
    settings : dict
        Settings of a method that is given by name.

    Raises
    ------
    InputError
        TO201 for anything but a known name or an instance, TO202 for an unknown setting or settings beside an instance,
        TO203 for an invalid value.
    """
    for name in settings:
        hint = describe_row_argument(name)
        if hint is not None and not registry.is_setting_of(method, name):
            raise InputError("TO202", f"`{name}` is not a setting of this call.", "", hint)
    if isinstance(method, base_class):
        if settings:
            raise InputError(
                "TO202",
                "Settings cannot be combined with an instance.",
                ", ".join(settings),
                "Set them on the instance, or pass the method by name.",
            )
        return method
    if not isinstance(method, str):
        is_list_of_methods = isinstance(method, (list, tuple)) and all(
            isinstance(item, (str, base_class)) for item in method
        )
        if is_list_of_methods:
            fix = f"Call it once per {registry.kind}."
        elif is_array(method):
            fix = f"Pass Predictions(y_true, y_prob) as one argument, then a name such as {registry.names()[0]!r}."
        else:
            fix = list_names(registry.names())
        raise InputError("TO201", f"{registry.kind} must be a name or an instance.", describe(method), fix)
    return registry.make(method, settings)


def add_seed(estimator: Any, settings: dict[str, Any], rng: Any, generator: np.random.Generator) -> dict[str, Any]:
    """Return the settings of an estimator, with the seed of the call if it is randomized and they have none.

    `rng` is that argument of the call. If it is a generator, the seed is drawn from `generator`, which is made from it.
    """
    if "rng" in settings or not ESTIMATORS.is_setting_of(estimator, "rng"):
        return settings
    seed = seed_of(rng, generator)
    return settings | {"rng": seed}


def add_test_seed(test: Any, settings: dict[str, Any], rng: Any, generator: np.random.Generator) -> dict[str, Any]:
    """Return the settings of a test, with the seed of the call if the test or its statistic is randomized.

    A test is randomized if, for instance, it assigns rows to folds. `rng` and `generator` are as for `add_seed`.
    """
    if isinstance(test, str) and test == "consistency":
        return add_seed(settings.get("statistic", "ece"), settings, rng, generator)
    # Such a test has the name of the estimator whose value it tests.
    return add_seed(test, settings, rng, generator) if TESTS.is_setting_of(test, "rng") else settings


def resolve_lens(rows: Predictions | Tally, lens: Any, method: Estimator | HypothesisTest | Recipe | None) -> Lens:
    """Return the given lens, else the method's own, else the default: positive for two classes, confidence for more."""
    if isinstance(lens, (list, tuple)):
        fix = "Call it once per lens; only test takes several, which it tests jointly."
        raise InputError("TO204", "This function takes one lens.", describe(lens), fix)
    if lens is not None:
        return as_lens(lens)
    if method is not None and rows.kind == "classes":
        several_classes_lens = getattr(method, "lens_of_several_classes", None) if rows.k > 2 else None
        if name := several_classes_lens or method.lens:
            return as_lens(name)
    return default_lens(rows)


def confidence_only_setting(rows: Predictions | Tally, requested: Any, lens: Lens) -> dict[str, bool]:
    """Return the setting of a result on the confidence of several classes that did not request this lens."""
    is_only_confidence = requested is None and rows.kind == "classes" and rows.k > 2 and str(lens) == "confidence"
    return {"confidence_only": True} if is_only_confidence else {}


def restrict_to_region(rows: Predictions | Tally, region: Any) -> Any:
    """Return the rows whose predictions lie in a region of the simplex; all rows if it is None.

    Parameters
    ----------
    rows : Predictions or Tally
        A tally has no rows, so that a region raises InputError TO403.
    region : str, mapping or callable, optional
        Restrict the analysis to rows whose predictions lie in a region: ``"confidence > 0.9 and class:cat >= 0.1"``. A
        mapping, ``{"class:cat": (0.2, 0.8)}``, or a function of the probabilities (n, K) that returns a boolean mask is
        accepted too.
    """
    if region is None:
        return rows
    problem, got = "A region of the simplex needs the rows.", f"⟨region={describe(region)}⟩ of a tally"
    return select_region(require_rows(rows, problem, got=got, fix="Use ⟨mode='exact'⟩."), region)


def reported_call_settings(
    rng: Any, rows: Predictions | Tally, weight_kind: str | None, region: Any = None, lens: Lens | None = None
) -> dict[str, Any]:
    """Return what a result reports as settings of its call: seed, region, kind of weights, and the event of the lens.

    The event is the second of two classes that are not only numbered 0 and 1.
    """
    settings: dict[str, Any] = {"seed": reported_seed(rng)}
    if isinstance(region, str):
        settings["region"] = region
    elif region is not None:
        settings["region"] = getattr(region, "__name__", None) or describe(region)
    if weight_kind == "frequency" or (isinstance(rows, Predictions) and rows.weight is not None):
        settings["weight_kind"] = weight_kind or "importance"
    has_event = isinstance(lens, (Positive, Canonical)) and rows.kind == "classes" and rows.k == 2
    if has_event and [str(name) for name in rows.classes] != ["0", "1"]:
        settings["event"] = str(rows.classes[1])
    return settings


def data_notes(*rows: Predictions | Tally, source: Any = None) -> list[Note]:
    """Return the notes of validation and of the plausibility checks of one or several data sets.

    Tallies have none of their own, but `source`, from which a tally was made, may have notes on how it is read.
    """
    notes: list[Note] = []
    for data in rows:
        if not isinstance(data, Tally):
            notes += [*data.notes, *plausibility_notes(data)]
        elif isinstance(source, Source):
            notes = [*source.notes, *notes]
    return notes


def resolve_all(
    data: Any,
    mode: str | None,
    weight_kind: str | None,
    tally_source: Callable[[Source], Tally] = lambda source: source.reduce(Tally.from_predictions),
    progress: Any = None,
) -> tuple[Predictions | Tally, Predictions | Tally]:
    """Return the data as they are, and without rows of weight 0, of which the groups may have to be listed.

    The latter are Predictions if the rows fit into memory, else a Tally.

    Parameters
    ----------
    data : Predictions, (y_true, y_prob), Source or Tally
        The argument of the caller; whatever `read` accepts is read first.
    mode : {"exact", "tally"}, optional
        Keep the rows in memory (``"exact"``) or count them in the cells of a fine grid (``"tally"``). By default rows
        are kept if they have at most 20 million probabilities. With frequency weights, a row of weight c is c rows.
    weight_kind : {"importance", "frequency"}, optional
        Whether a row of weight 2 is one row that counts double (``"importance"``, the default) or two observed rows
        (``"frequency"``). If it is not given and the weights are whole numbers, note TN286 describes the difference.
    tally_source : callable, optional
        Function that tallies a source.
    progress : callable, optional
        Called with the number of rows that have been read and their total number, if it is known.

    Raises
    ------
    InputError
        TO203 for an invalid `mode` or `weight_kind`, TO403 for a tally if single rows are needed.
    """
    check("mode", mode, Mode, None)
    check("weight_kind", weight_kind, WeightKind, None)
    if isinstance(data, Tally):
        if mode == "exact":
            require_rows(data, NO_ROWS_TEXT)
        if weight_kind == "frequency":
            fix = "Pass ⟨weight_kind='frequency'⟩ to `tally`, and omit it here."
            require_rows(data, "A tally has counted the rows already.", got="⟨weight_kind='frequency'⟩", fix=fix)
        return data, data
    if weight_kind == "frequency":
        return _resolve_counted_rows(data, mode, progress)
    in_memory = isinstance(data, Predictions) and mode != "tally"
    rows = data if in_memory else _collect_or_tally(data, mode, tally_source, progress)
    if not isinstance(rows, Predictions) or rows.weight is None:
        return rows, rows
    # Rows of weight 0 change no result, and are not counted.
    used_rows = rows if rows.weight.all() else rows[rows.weight > 0]
    if weight_kind is None:
        new_notes = (note for note in frequency_weight_notes(used_rows.w) if note not in used_rows.notes)
        used_rows = used_rows.with_notes(*new_notes)
    return rows, used_rows


def _resolve_counted_rows(data: Any, mode: str | None, progress: Any) -> tuple[Any, Any]:
    """Resolve data whose weights are frequencies: repeat the rows if they fit into memory, else count them."""
    source = read_for_call(data)
    if mode == "exact":
        return (preds := source.collect(progress=progress)), preds.expand_frequencies()
    limit = max_probabilities_in_memory()
    kept = None if mode == "tally" else source.collect_within(limit, progress=progress)
    if kept is not None and kept.w.sum() * kept.k <= limit:
        return kept, kept.expand_frequencies()
    step = partial(Tally.from_predictions, weight_kind="frequency")
    counted = source.reduce(step, progress=progress) if kept is None else step(kept)
    return counted, counted


@insert_shared_parameters
def resolve_data(data: Any, mode: str | None, weight_kind: str | None, region: Any = None) -> Any:
    """Return Predictions if the rows fit into memory, else a Tally; without rows of weight 0 and outside of the region.

    Parameters
    ----------
    data, mode, weight_kind : as in `resolve_all`
    region : as in `restrict_to_region`
    """
    rows = resolve_all(data, mode, weight_kind)[1]
    return rows if region is None else restrict_to_region(rows, region)


def resolve_and_sample(
    data: Any, mode: str | None, weight_kind: str | None, seed: int, progress: Any
) -> tuple[Predictions | Tally, Predictions | Tally, Reservoir | None]:
    """Resolve data as `resolve_all` does; if they are tallied, also return a random sample of the rows.

    The sample is drawn in the same pass over the rows. It is None for rows in memory and for a tally that is passed.
    `progress` is called with the number of rows that have been read and their total number, if it is known.
    """
    sample: list[Reservoir] = []

    def tally_and_sample(source: Source) -> Tally:
        """Tally the source and keep a random sample in the same pass."""
        result: SampledTally = source.reduce(
            partial(SampledTally.from_predictions, seed=seed), progress=progress, keyed=True
        )
        sample.append(result.sample)
        return result.tally

    all_rows, rows = resolve_all(data, mode, weight_kind, tally_and_sample, progress)
    return all_rows, rows, sample[0] if sample else None


def _collect_or_tally(
    data: Any, mode: str | None, tally_source: Callable[[Source], Tally], progress: Any
) -> Predictions | Tally:
    """Return the rows if they fit into memory or `mode` requires it, else tally the source."""
    source = read_for_call(data)
    if mode == "exact":
        return source.collect(progress=progress)
    if mode is None:
        preds = source.collect_within(max_probabilities_in_memory(), progress=progress)
        if preds is not None:
            return preds
    return tally_source(source)


def resolve_for_fit(data: Any, mode: str | None, weight_kind: str | None, limit: int) -> Predictions | Source | Tally:
    """Return Predictions if the rows have at most `limit` probabilities, else a source of them.

    A calibrator is fitted to a source in several passes. A tally is returned as it is. The other parameters are those
    of `resolve_data`.
    """
    check("mode", mode, Mode, None)
    check("weight_kind", weight_kind, WeightKind, None)
    in_memory = isinstance(data, Tally) or (isinstance(data, Predictions) and mode is None)
    if in_memory or mode == "exact":
        # A calibrator is not fitted to counted rows.
        return resolve_data(data, "exact" if weight_kind == "frequency" else mode, weight_kind)
    source = read_for_call(data)
    preds = None if mode == "tally" else source.collect_within(limit)
    return source if preds is None else resolve_data(preds, "exact", weight_kind)


MAX_PROBABILITIES = 20_000_000  # largest number of probabilities that are kept in memory by default
BYTES_PER_PROBABILITY = 160  # peak memory of an audit of rows in memory, per probability
BASE_BYTES = 450_000_000  # memory of the program and its libraries


@cache
def max_probabilities_in_memory() -> int:
    """Return the number of probabilities up to which rows are kept in memory by default.

    The limit is that of the memory that exists, not of the memory that is free at the moment, so that a call on one
    machine, or in one container, always makes the same choice.
    """
    available = min(_memory_sizes(), default=None)
    if available is None:
        return MAX_PROBABILITIES
    return max(0, min(MAX_PROBABILITIES, (available - BASE_BYTES) // BYTES_PER_PROBABILITY))


def _memory_sizes() -> Iterator[int]:
    """Yield the bytes of memory of the machine, and the limits that Linux containers set for this process."""
    with suppress(AttributeError, ValueError, OSError):  # not on every system
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in _limit_files(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")):
        with suppress(ValueError, OSError):  # no such file, or "max"
            yield int(file.read_text(encoding="ascii"))


def _limit_files(membership: Path, root: Path) -> Iterator[Path]:
    """Yield the files with the memory limits of the control groups (cgroups) of a process and of their parents.

    `membership` lists the groups, one per line as ``number:controllers:path``, and `root` is the folder of all groups.
    A line without controllers is of version 2 of control groups, whose files have other names than those of version 1.
    Not all of the files need exist.
    """
    lines: list[str] = []
    with suppress(OSError, UnicodeError):
        lines = membership.read_text(encoding="utf-8").splitlines()
    for line in lines:
        _, controllers, path = line.split(":", 2)
        is_version_2 = not controllers
        if is_version_2:
            folder, name = root, "memory.max"
        elif "memory" in controllers.split(","):
            folder, name = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        group = folder / path.lstrip("/")
        yield from (parent / name for parent in (group, *group.parents) if parent.is_relative_to(folder))
