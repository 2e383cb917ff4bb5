"""trueodds judge: the rate of a label that few rows have, from the scores of a judge for all rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from trueodds.cli import gate, gate_values, output
from trueodds.cli.function_command import FunctionCommand
from trueodds.cli.open_data import open_data
from trueodds.cli.options import FAIL_ON, FILES, FRACTION, JSON, TEXT_FILE_OPTIONS, add_options, pop_columns
from trueodds.core.errors import InputError, Note

if TYPE_CHECKING:
    from trueodds.core.typing import Array
    from trueodds.data.predictions import Predictions


@click.command(
    cls=FunctionCommand, function="api/prediction_powered_mean.py", short_help="Estimate a rate from few labels."
)  # fmt: skip
@FILES
@click.option("--score", metavar="C", required=True, help="Column of the judge's scores, from 0 to 1.")
@click.option("--label", metavar="C", help="Column of the labels, 0 and 1 or yes and no; empty where there is none.")
@click.option("--probability", metavar="C", help="Column of the probability with which a row was chosen for a label.")
@click.option("--cluster", metavar="C", help="Column of clusters of dependent rows, such as the conversation.")
@click.option("--stratum", metavar="C", help="Column of strata, each of which is represented by its own labels.")
@click.option("--sensitivity", metavar="K/N", help="Instead of labels: K of N positive rows, of others, judged as yes.")
@click.option("--specificity", metavar="K/N", help="Instead of labels: K of N negative rows, of others, judged as no.")
@click.option(
    "--compare", metavar="SCORE,LABEL", help="Columns of a second system: estimates the difference, first minus second."
)
@click.option("--half-width", metavar="X", type=FRACTION, help="Also give the labels needed for an interval of ± X.")
@add_options(TEXT_FILE_OPTIONS)
@JSON
@FAIL_ON
def judge(
    files: tuple[str, ...],
    score: str,
    label: str | None,
    probability: str | None,
    cluster: str | None,
    stratum: str | None,
    sensitivity: str | None,
    specificity: str | None,
    compare: str | None,
    half_width: float | None,
    json_path: str | None,
    fail_on: tuple[str, ...],
    **params: Any,
) -> None:
    """Estimate the rate of a label that few rows have, such as a human judgment, from the scores of a judge for all.

    The judge, such as a language model, is recalibrated on the labeled rows. The interval is valid however wrong it is,
    if it is stated truly how the labeled rows were chosen: --sampling random, or --probability.
    """
    output.check_outputs(files, json=json_path)
    gates = gate.parse_gates(fail_on, gate.JUDGE_SCOPE)
    columns = pop_columns(params | {"cluster": cluster}, needs_outcome=False)
    for name in ("separator", "decimal"):
        params.pop(name, None)
    rates = {"sensitivity": sensitivity, "specificity": specificity}
    counts: dict[str, Any] = {name: _parse_counts(name, text) for name, text in rates.items()}
    columns |= {"weight": probability} if probability else {}
    columns |= {"group": [stratum]} if stratum else {}
    import trueodds as to

    first, notes = _read(files, columns, score, label)
    sample: dict[str, Any] = {
        "probability": first.weight if probability else None,
        "cluster": first.cluster,
        "stratum": first.group[stratum] if stratum else None,
    }
    if compare is None:
        labels = None if label is None else _labels(first)
        result = to.prediction_powered_mean(labels, first.p, **sample, **counts, **params)
    else:
        _refuse_error_rates(counts)
        second, _ = _read(files, columns, *_parse_pair(compare))
        result = to.prediction_powered_difference(
            _labels(first), first.p, _labels(second), second.p, **sample, **params
        )
    result = replace(result, notes=(*notes, *result.notes))
    text, report = result.describe(), result.to_dict()
    if half_width is not None:
        needed = result.labels_needed(half_width)
        text += f"\n{needed:,} labels needed for ± {half_width:g}"
        report |= {"labels_needed": needed}
    output.print_result(text, result.notes, report, json_path)
    gate_values.evaluate_gates(gates, gate_values.GatedResult(gate.JUDGE_SCOPE, result), result.notes)


def _read(
    files: Sequence[str], columns: dict[str, Any], score: str, label: str | None
) -> tuple[Predictions, Sequence[Note]]:
    """Read the scores and labels of one system as confidence and correctness, and return notes on the file, too."""
    named = {"confidence": score} | ({"label": None} if label is None else {"correct": label})
    source = open_data(files, columns | named, needs_label=False)
    try:
        return source.collect(), source.notes
    except InputError as problem:
        if problem.code == "TO102":
            fix = "Divide grades by the largest possible one."
            raise InputError("TO102", "Every score of the judge must lie in [0, 1].", problem.got, fix) from None
        if problem.code == "TO307" and f"{score!r}" in problem.problem:
            fix = "Write 1 for a judge's yes and 0 for a no, or choose another column."
            raise InputError("TO307", problem.problem, problem.got, fix) from None
        raise


def _labels(preds: Predictions) -> Array:
    """The labels, NaN where there is none."""
    import numpy as np

    labels = np.full(preds.n, np.nan)
    if preds.partial_y is not None:
        known = np.ones(preds.n, dtype=bool) if preds.labeled is None else preds.labeled
        labels[known] = preds.partial_y[known]
    return labels


def _parse_counts(name: str, text: str | None) -> tuple[int, int] | None:
    """Return the counts of a text such as 90/100."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d{1,15})\s*/\s*(\d{1,15})\s*", text)
    if found is None:
        fix = f"Write --{name} 90/100 if 90 of 100 were judged correctly."
        raise InputError("TO601", f"--{name} takes two counts.", repr(text), fix)
    return int(found[1]), int(found[2])


def _parse_pair(text: str) -> tuple[str, str]:
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        fix = "Write --compare SCORE,LABEL, the columns of the second system."
        raise InputError("TO601", "--compare takes two columns.", repr(text), fix)
    return names[0], names[1]


def _refuse_error_rates(counts: dict[str, Any]) -> None:
    for name, pair in counts.items():
        if pair is not None:
            problem = "Two systems are compared by labels."
            raise InputError("TO603", problem, f"--compare and --{name}", f"Leave --{name} out.")
