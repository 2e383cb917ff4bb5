"""The state of a monitor, the sum of two states, and the file of one, whose size does not grow with the rows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

import trueodds
from trueodds.core import json_files
from trueodds.core.errors import InputError, describe
from trueodds.core.typing import Array
from trueodds.kernels.cohort_sums import CERTAIN_COLUMNS, TILT_GRID
from trueodds.monitoring.capital import DISCOUNTS, Alternatives, Capital
from trueodds.monitoring.cohort_tally import MIN_COMMON, MIN_COMMON_SHARE, CohortSums, CohortTally
from trueodds.monitoring.cohorts import Moment
from trueodds.monitoring.evidence import N_TOTALS, EvidenceSums
from trueodds.monitoring.judgment import Contribution, JudgedCohort, JudgedSums, Judgment, MonitorEpoch
from trueodds.monitoring.monitor_settings import MonitorSettings
from trueodds.monitoring.monitored_model import MonitoredModel
from trueodds.tallies.tally_sums import checksum, to_strict_json

SCHEMA = "trueodds.monitor_state/1"  # Saved


@dataclass(frozen=True, slots=True)
class MonitorState:
    """All that a monitor knows.

    Attributes
    ----------
    settings : MonitorSettings
        The settings.
    model : MonitoredModel or None
        The model; None before the first rows.
    as_of : numpy.datetime64 or int or None
        The latest moment at which labels were extracted.
    open : mapping of int to CohortTally
        The cohorts that are not judged, in order.
    judgment : Judgment
        The judged cohorts.
    columns : mapping of str to object
        The columns that the command `trueodds monitor` reads, as settings of `trueodds.read`, and `time`.
    """

    settings: MonitorSettings
    model: MonitoredModel | None
    as_of: Moment | None
    open: Mapping[int, CohortTally]
    judgment: Judgment
    columns: Mapping[str, Any] = field(default_factory=dict)


def state_to_json(state: MonitorState) -> dict[str, Any]:
    """Return the state as strict JSON, with its checksum."""
    judgment = state.judgment
    content = {
        "schema": SCHEMA,
        "version": trueodds.__version__,
        "settings": state.settings.to_json(),
        "model": None if state.model is None else asdict(state.model),
        "columns": dict(state.columns),
        "as_of": _moment_to_json(state.as_of),
        "open": {str(number): _tally_to_json(tally) for number, tally in state.open.items()},
        "judged": _columns(judgment.cohorts),
        "history": [_history_to_json(sums) for sums in judgment.history],
        "epochs": [
            asdict(epoch) | {"groups": [list(item) for item in epoch.groups.items()]} for epoch in judgment.epochs
        ],
        "capital": [
            {
                name: {"t": capital.t, "log_values": capital.log_values.tolist(), "memory": capital.memory.tolist()}
                for name, capital in thread.items()
            }
            for thread in judgment.capital
        ],
    }
    content = _plain(content)
    return content | {"sha256": checksum(content)}


def state_from_json(content: Any, source: str) -> MonitorState:
    """Return the state that `state_to_json` converted; raise TO905 if it was changed or truncated."""
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        schema = content.get("schema") if isinstance(content, dict) else content
        raise invalid_state(source, f"the schema {describe(schema)} instead of {SCHEMA}")
    if content.get("sha256") != checksum(content):
        raise invalid_state(source, "content that does not fit its checksum")
    try:
        return _read_state(content)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as problem:
        raise invalid_state(source, f"an invalid value ({type(problem).__name__}: {problem})") from None


def invalid_state(source: str, got: str) -> InputError:
    """Return the error for a file that is not the state of a monitor."""
    return InputError(
        "TO905",
        "The file is not the state of a monitor as it was saved.",
        f"{got} in {source}",
        "Restore a copy of it, or start again with all files.",
    )


def _read_state(content: Mapping[str, Any]) -> MonitorState:
    settings = MonitorSettings.from_json(content["settings"])
    model = None
    if (values := content["model"]) is not None:
        model = MonitoredModel(
            values["kind"], tuple(values["classes"]), values["lens"], tuple(values["views"]), tuple(values["centers"])
        )
    as_of = _moment_from_json(content["as_of"])
    file_columns = dict(content["columns"])
    if model is None:
        return MonitorState(settings, None, as_of, {}, Judgment(), file_columns)
    alternatives = model.alternatives(settings)
    opened = {int(number): _tally_from_json(tally, alternatives) for number, tally in content["open"].items()}
    columns = content["judged"]
    judged = tuple(
        JudgedCohort(number, epoch, rows, unlabeled, tuple(labels), int(fingerprint, 16), log_evidence)
        for number, epoch, rows, unlabeled, labels, fingerprint, log_evidence in zip(
            *(columns[name] for name in JudgedCohort.__slots__), strict=True
        )
    )
    epochs = tuple(map(_epoch_from_json, content["epochs"]))
    capital = tuple(
        {name: _capital_from_json(values, alternatives) for name, values in thread.items()}
        for thread in content["capital"]
    )
    history = tuple(_history_from_json(sums) for sums in content["history"])
    return MonitorState(settings, model, as_of, opened, Judgment(judged, history, epochs, capital), file_columns)


def _epoch_from_json(values: Mapping[str, Any]) -> MonitorEpoch:
    contributions = tuple(Contribution(**part) for part in values["contributions"])
    return MonitorEpoch(**{**values, "groups": dict(values["groups"]), "contributions": contributions})


def _columns(cohorts: tuple[JudgedCohort, ...]) -> dict[str, list[Any]]:
    """Return a list for each field, which is shorter than an object for each cohort."""
    columns = {name: [getattr(cohort, name) for cohort in cohorts] for name in JudgedCohort.__slots__}
    return columns | {"fingerprint": [f"{value:016x}" for value in columns["fingerprint"]]}


def _tally_to_json(tally: CohortTally) -> dict[str, Any]:
    return {
        "rows": tally.rows,
        "unlabeled": tally.unlabeled,
        "labels": tally.labels,
        "fingerprint": f"{tally.fingerprint:016x}",
        "sample": tally.sample.astype(">u8").tobytes().hex(),
        "has_ids": tally.has_ids,
        "as_of": _moment_to_json(tally.as_of),
        "sums": {name: [_sums_to_json(view) for view in views] for name, views in tally.sums.items()},
    }


def _tally_from_json(values: Mapping[str, Any], alternatives: list[Alternatives]) -> CohortTally:
    as_of = _moment_from_json(values["as_of"])
    assert as_of is not None
    sums = {
        name: tuple(_sums_from_json(*item) for item in zip(views, alternatives, strict=True))
        for name, views in values["sums"].items()
    }
    return CohortTally(
        values["rows"],
        values["unlabeled"],
        np.array(values["labels"], dtype=np.int64),
        int(values["fingerprint"], 16),
        np.frombuffer(bytes.fromhex(values["sample"]), dtype=">u8").astype(np.uint64),
        values["has_ids"],
        as_of,
        CohortSums.pack(sums),
    )


def _sums_to_json(sums: EvidenceSums) -> dict[str, Any]:
    """Return the sums of the occupied cells only."""
    occupied = np.flatnonzero(sums.cells.any(axis=1))
    content: dict[str, Any] = {
        "cells": {str(cell): sums.cells[cell] for cell in occupied},
        "slopes": sums.slopes,
        "certain": sums.certain,
    }
    if sums.tilted is not None:
        content["tilted"] = {str(cell): sums.tilted[cell] for cell in occupied}
    return content


def _sums_from_json(values: Mapping[str, Any], alternatives: Alternatives) -> EvidenceSums:
    width = N_TOTALS + alternatives.n_tilts
    tilted = values.get("tilted")
    return EvidenceSums(
        _rows_from_json(values["cells"], alternatives.n_cells, width),
        _floats(values["slopes"], (alternatives.n_slopes,)),
        _floats(values["certain"], (len(CERTAIN_COLUMNS),)),
        None if tilted is None else _rows_from_json(tilted, alternatives.n_cells, len(TILT_GRID)),
    )


def _rows_from_json(values: Mapping[str, Any], n_rows: int, width: int) -> Array:
    array = np.zeros((n_rows, width))
    for row, numbers in values.items():
        array[int(row)] = _floats(numbers, (width,))
    return array


def _history_to_json(sums: JudgedSums) -> dict[str, Any]:
    return {
        "cohorts": [sums.first, sums.last, sums.epoch, sums.n_cohorts],
        "totals": sums.totals,
        "log_ratios": sums.log_ratios,
        "cell_rows": sums.cell_rows,
    }


def _history_from_json(values: Mapping[str, Any]) -> JudgedSums:
    totals, log_ratios = (
        {name: np.array(views, dtype=np.float64) for name, views in values[key].items()}
        for key in ("totals", "log_ratios")
    )
    first, last, epoch, n_cohorts = values["cohorts"]
    cell_rows = np.array(values["cell_rows"], dtype=np.float64)
    return JudgedSums(first, last, epoch, n_cohorts, totals, log_ratios, cell_rows)


def _capital_from_json(values: Mapping[str, Any], alternatives: list[Alternatives]) -> Capital:
    views, size = len(alternatives), alternatives[0].size + len(DISCOUNTS)
    memory = (len(DISCOUNTS), views, alternatives[0].n_cells, alternatives[0].n_tilts + 1)
    return Capital(values["t"], _floats(values["log_values"], (views, size)), _floats(values["memory"], memory))


def _floats(values: Any, shape: tuple[int, ...]) -> Array:
    array = np.array(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"shape {array.shape} instead of {shape}")
    return array


def _moment_to_json(moment: Moment | None) -> int | str | None:
    return str(moment) if isinstance(moment, np.datetime64) else moment


def _moment_from_json(value: Any) -> Moment | None:
    return np.datetime64(value, "us") if isinstance(value, str) else value


def _plain(value: Any) -> Any:
    """Convert arrays and tuples to lists, and whole floats to integers, which are shorter."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def write_state(path: str, to_content: Callable[[], Mapping[str, Any]], known: str | None) -> str:
    """Write the content of a state, and return its checksum; the content is made after the file has been checked.

    `known` is the checksum of the state in the file from which it was made, None for a new file.
    """
    with _lock(path):
        if os.path.exists(path) and _saved_checksum(path) != known:
            raise InputError(
                "TO913",
                "The file was saved by another process, or is not the state from which this one was made.",
                path,
                "Load it and update it again, or save to another file.",
            )
        content = to_content()
        json_files.write_text(path, to_strict_json(content), "TO905")
        return str(content["sha256"])


def _saved_checksum(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError):
        return None
    return checksum(content) if isinstance(content, dict) else None


@contextmanager
def _lock(path: str) -> Iterator[None]:
    """Lock the folder of a file, where the system can, so that of two writers the second finds the state of the first.

    The folder also exists before the file does.
    """
    descriptor = None
    with suppress(ImportError, OSError):
        import fcntl

        descriptor = os.open(os.path.dirname(path) or os.curdir, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def add_states(a: MonitorState, b: MonitorState) -> MonitorState:
    """Return the state of the rows of both; raise TO904 or TO908 if they cannot be added."""
    _check_mergeable(a, b)
    is_judged = [bool(state.judgment.cohorts or state.judgment.epoch.number) for state in (a, b)]
    if all(is_judged):
        raise InputError(
            "TO908",
            "Two monitors that have judged cohorts, or were reset, cannot be added.",
            f"{len(a.judgment.cohorts):,} and {len(b.judgment.cohorts):,} judged cohorts",
            "Add them before the first report, or add a monitor of later cohorts without a report.",
        )
    judgment = (a if is_judged[0] else b).judgment
    _refuse_common_rows(a, b)
    opened = {**b.open, **a.open}
    for number in a.open.keys() & b.open.keys():
        opened[number] = a.open[number] + b.open[number]
    if judgment.last is not None and opened and (first := min(opened)) <= judgment.last:
        period = a.settings.period
        raise InputError(
            "TO908",
            "A monitor with judged cohorts can take later cohorts only.",
            f"cohort {period.label(first)}, after {period.label(judgment.last)} was judged",
            "Add all parts of a cohort before the report that judges it.",
        )
    moments = [moment for moment in (a.as_of, b.as_of) if moment is not None]
    model, opened = a.model or b.model, dict(sorted(opened.items()))
    return MonitorState(a.settings, model, max(moments, default=None), opened, judgment, {**b.columns, **a.columns})


def _check_mergeable(a: MonitorState, b: MonitorState) -> None:
    """Raise TO904 if two monitors differ in their settings or in their model."""
    for name in (setting.name for setting in fields(MonitorSettings)):
        values = getattr(a.settings, name), getattr(b.settings, name)
        if values[0] != values[1]:
            texts = [state.settings.describe_setting(name) for state in (a, b)]
            got = f"{name} {texts[0]} and {texts[1]}"
            raise InputError("TO904", "Monitors with different settings cannot be added.", got, "Use the same ones.")
    if a.model is None or b.model is None or a.model == b.model:
        return
    if replace(a.model, centers=b.model.centers) == b.model:
        got = f"{describe(list(a.model.centers))} and {describe(list(b.model.centers))}"
        raise InputError(
            "TO904",
            "The slopes of the two monitors turn about different centers, in log odds.",
            got,
            "Set ⟨center⟩ to the mean probability when creating them, for instance ⟨center=0.1⟩.",
        )
    raise InputError(
        "TO904", "Monitors of different models cannot be added.", f"{a.model.classes} and {b.model.classes}",
        "Add the monitors of one model.",
    )  # fmt: skip


def _refuse_common_rows(a: MonitorState, b: MonitorState) -> None:
    """Raise TO908 if open cohorts of two monitors have rows in common, whether or not their labels are the same.

    Ids show a common row with certainty. Rows without ids are compared by their times and predictions, which different
    rows may share, so that the parts must be the same for the most.
    """
    n_common = n_comparable = 0
    label = ""
    for number in sorted(a.open.keys() & b.open.keys()):
        one, other = a.open[number], b.open[number]
        label = a.settings.period.label(number)
        if one.has_ids != other.has_ids:
            raise InputError(
                "TO908",
                "One of the two monitors was given ids, so it is not known whether they have the same rows.",
                f"ids in one of two parts of cohort {label}",
                "Give ids to both or to none.",
            )
        common, comparable, is_equal = one.common_hashes(other)
        n_common, n_comparable = n_common + common, n_comparable + comparable
        if is_equal or (one.has_ids and common):
            break
    else:
        if n_common < MIN_COMMON or n_common < MIN_COMMON_SHARE * n_comparable:
            return
    raise InputError(
        "TO908",
        "Both monitors have the same rows, which would count twice; their labels may differ.",
        f"{n_common:,} of {n_comparable:,} sampled rows, in cohorts up to {label}",
        "Give all files to one call of ⟨update⟩, or add monitors of disjoint parts. If the rows are different but have"
        " the same times and predictions, pass ⟨ids=⟩.",
    )
