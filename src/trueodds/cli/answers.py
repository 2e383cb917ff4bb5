"""trueodds answers: coverage, accuracy and confidence of a language model's answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trueodds.cli import gate, gate_values, output, record_options
from trueodds.cli.messages import note_line
from trueodds.cli.open_data import refuse_repeated
from trueodds.cli.options import (
    FAIL_ON,
    FILES,
    FRACTION,
    JSON,
    SEED_SETTINGS,
    TEXT_FILE_OPTIONS,
    add_options,
    pop_columns,
)
from trueodds.core.errors import InputError, Note
from trueodds.core.progress import ProgressBar

if TYPE_CHECKING:
    from trueodds.core.results import Estimate
    from trueodds.data.predictions import Predictions
    from trueodds.io.answers import Answers
    from trueodds.lenses.risk_threshold import RiskThreshold
    from trueodds.lenses.selective_risk import SelectiveRisk


# Coverages (shares of all queries) at which the risk is printed.
REPORTED_COVERAGES = (0.5, 0.8, 0.9, 1.0)
CURVE_RESAMPLES = 2000  # bootstrap resamples of the risk-coverage curve, in the text and the figure alike
_CURVE_SUFFIXES = (".svg", ".png", ".pdf", ".csv", ".json")


def _record_options() -> list[tuple[str, dict[str, Any]]]:
    """Return the options of records, those of the confidence first."""
    others = dict(record_options.RECORD_OPTIONS)
    return [
        *((option, others.pop(option)) for option in ("--logprobs", "--samples")),
        record_options.make_option("--confidence", "F", "Field of the stated confidence, with --correct."),
        record_options.make_option(
            "--correct", "F", "Field that says whether the answer (or each sample) was correct."
        ),
        *others.items(),
        *TEXT_FILE_OPTIONS,
    ]


@click.command(short_help="Evaluate a language model's answers, and its abstentions.")
@FILES
@add_options(_record_options())
@click.option(
    "--group", metavar="F", multiple=True, help="Field of subgroups, written to the file of --out; may be repeated."
)
@click.option("--out", metavar="F", help="Write the answers as a file of predictions: .parquet, .csv, .jsonl, …")
@click.option("--curve", metavar="F", help="Risk-coverage curve: a figure (.svg .png .pdf) or its data (.csv .json).")
@click.option(
    "--max-risk",
    metavar="X",
    type=FRACTION,
    help="Find the threshold of the confidence whose error rate is at most X.",
)
@click.option(
    "--min-prob",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    help="Smallest probability of error that BAS assumes.",
)
@click.option(
    "--level",
    type=FRACTION,
    default=0.95,
    show_default=True,
    help="Confidence level.",
)
@JSON
@FAIL_ON
@click.option("--seed", "rng", **SEED_SETTINGS)
def answers(
    files: tuple[str, ...],
    out: str | None,
    curve: str | None,
    max_risk: float | None,
    min_prob: float,
    level: float,
    json_path: str | None,
    fail_on: tuple[str, ...],
    rng: int,
    **params: Any,
) -> None:
    """Evaluate a language model's answers: coverage, accuracy, and how useful the confidence is.

    FILE has the records of an evaluation, .jsonl or .json, or a table. One of --logprobs, --confidence and --samples
    names the field of the confidence. All other commands read such files with the same options.
    """
    columns = pop_columns(params)
    if not any(keyword in columns for keyword in record_options.CONFIDENCE_KEYWORDS):
        fix = "Add --logprobs F, --confidence F --correct F, or --samples F."
        raise InputError("TO601", "A field with the confidence is required.", "no such option", fix)
    if "group" in columns and out is None:
        fix = "Add --out F. Subgroups are compared by trueodds groups, which reads the same file."
        raise InputError("TO601", "--group needs --out.", f"--group {columns['group'][0]} alone", fix)
    if curve is not None and Path(curve).suffix.lower() not in _CURVE_SUFFIXES:
        raise InputError(
            "TO606",
            "The format of a curve is given by the suffix of its file.",
            repr(curve),
            f"One of {' '.join(_CURVE_SUFFIXES)}.",
        )
    gates = gate.parse_gates(fail_on, gate.ANSWERS_SCOPE)
    output.check_outputs(files, out=out, curve=curve, json=json_path)
    refuse_repeated(files)
    with ProgressBar() as progress:
        answer_set = record_options.read_answer_set(files, columns)
        progress(0.2, "resampling answers")
        risk = answer_set.selective_risk(
            at=list(dict.fromkeys((*REPORTED_COVERAGES, answer_set.coverage, *gate_values.requested_coverages(gates)))),
            resamples=CURVE_RESAMPLES,
            level=level,
            rng=rng,
        )
        threshold = None if max_risk is None else answer_set.threshold(max_risk=max_risk, level=level)
        progress(0.6, "measuring")
        measures = _measure_answers(answer_set.predictions, min_prob, level, rng)
        if curve is not None:
            _save_risk_curve(answer_set, curve, level, rng)
        cell_notes = () if out is None else _write_predictions(answer_set, out)
    results = (answer_set, *measures, *([] if threshold is None else [threshold]))
    notes = list(dict.fromkeys(note for result in results for note in result.notes))
    notes += cell_notes
    from trueodds.io.stated_confidence import DOUBTFUL_SCALE_CODES

    first_notes = [note for note in notes if note.code in DOUBTFUL_SCALE_CODES]
    report = _build_report(files, answer_set, risk, threshold, measures, notes)
    if json_path is not None:
        output.save_text(json_path, output.format_json(report))
    if json_path != "-":
        for note in first_notes:
            output.print_text(note_line(note))
        output.print_text(
            "\n".join(
                [*_format_report(answer_set, risk, threshold, measures), *(path for path in (curve, out) if path)]
            )
        )
        for note in (note for note in notes if note not in first_notes):
            output.print_text(f"  {note_line(note)}")
    gated_result = gate_values.GatedResult(gate.ANSWERS_SCOPE, report | {"measures": measures})
    gate_values.evaluate_gates(gates, gated_result, notes)


def _measure_answers(preds: Predictions, min_prob: float, level: float, seed: int) -> list[Estimate]:
    """Return RMSCE and BAS, in the order in which they are reported."""
    import trueodds as to

    settings: dict[str, Any] = {"lens": "confidence", "level": level, "rng": seed}
    return [
        to.measure(preds, "rmsce", partition="mass:100", **settings),
        to.measure(preds, "bas", min_prob=min_prob, **settings),
    ]


def _format_report(
    answer_set: Answers, risk: SelectiveRisk, threshold: RiskThreshold | None, measures: list[Estimate]
) -> list[str]:
    """Return the lines of the report as text: counts, accuracy, risk at several coverages, and the measures."""
    from trueodds.core.formatting import format_coverage, format_number

    overall = _overall_accuracy(answer_set, risk) if answer_set.abstained else None
    coverage_text = format_coverage(answer_set.n_evaluated, answer_set.n_queries)
    low, high = _error_rate_limits(answer_set, risk)
    accuracy_limits = _format_limits(risk, 1 - high, 1 - low)
    of_questions = "" if answer_set.questions is None else f" rows of {answer_set.questions:,} questions"
    rows = [
        ("queries", f"{answer_set.n_queries:,}{of_questions}"),
        ("abstained", f"{answer_set.abstained:,}"),
        *([("no confidence", f"{answer_set.without_confidence:,}")] if answer_set.without_confidence else []),
        ("coverage", coverage_text),
        ("accuracy", f"{format_number(1 - risk.random)} {accuracy_limits} · {answer_set.predictions.n:,} answers"),
        *([] if overall is None else [("overall accuracy", f"{format_number(overall)} of all queries")]),
        ("mean confidence", format_number(_mean_confidence(answer_set.predictions))),
        *_risk_rows(risk, coverage_text),
    ]
    if threshold is not None:
        rows.append(("threshold", threshold.describe()))
    tie_explanation = (
        "    The risk at a coverage takes equal confidences in random order. A threshold answers all of them or none."
    )
    splits_tie = any(_is_inside_tie(risk, coverage) for coverage in REPORTED_COVERAGES)
    _, behavioral_alignment = measures
    calibrated_score = format_number(behavioral_alignment.noise_floor or 0.0)
    score_explanation = (
        "    BAS, the Behavioral Alignment Score: mean reward if the model may abstain, with 1 for a correct answer,"
        " 0 for\n    an abstention and −t/(1 − t) for a wrong answer, averaged over all thresholds t. If these"
        f" confidences were\n    calibrated, the expected score would be {calibrated_score}."
    )
    return [
        *(f"{name:<16} {text}" for name, text in rows),
        *([tie_explanation] if splits_tie else []),
        str(risk),
        *(measure.describe() for measure in measures),
        score_explanation,
    ]


def _risk_rows(risk: SelectiveRisk, coverage_text: str) -> list[tuple[str, str]]:
    """Return a row (name, text) with the risk at each reported coverage; `coverage_text` is the share answered."""
    from trueodds.core.formatting import format_number, format_percent

    rows = []
    for i, coverage in enumerate(REPORTED_COVERAGES):  # the first coverages of `risk.at`
        risk_value = float(risk.at["risk"][i])
        if risk_value >= 0:
            limits = _format_limits(risk, float(risk.at["low"][i]), float(risk.at["high"][i]))
            text = f"{format_number(risk_value)} {limits} · {_format_operating_point(risk, coverage)}"
        else:  # NaN
            text = f"– · only {coverage_text} were answered"
        rows.append((f"risk at {format_percent(coverage)}", text))
    return rows


def _format_limits(risk: SelectiveRisk, low: float, high: float) -> str:
    """Format confidence limits at the level of the risk; "" if the risk has no interval."""
    from trueodds.core.results import Interval

    return str(Interval(low, high, risk.interval.level, "")) if risk.interval else ""


def _format_operating_point(risk: SelectiveRisk, coverage: float) -> str:
    """Format the threshold that answers at least this share, with its own coverage and risk if they differ."""
    from trueodds.core.formatting import format_number, format_percent, format_threshold

    point = risk.operating_point(coverage)
    assert point is not None
    text = f"confidence ≥ {format_threshold(point.threshold)}"
    if not _is_inside_tie(risk, coverage):
        return text
    return f"{text} answers {format_percent(round(point.coverage, 4))}, risk {format_number(point.risk)}"


def _is_inside_tie(risk: SelectiveRisk, coverage: float) -> bool:
    """Return whether every threshold that answers this share answers at least one more question, because of ties."""
    point = risk.operating_point(coverage)
    return point is not None and (point.coverage - coverage) * risk.n_queries > 1 - 1e-6


def _error_rate_limits(answer_set: Answers, risk: SelectiveRisk) -> tuple[float, float]:
    index = risk.at["coverage"].tolist().index(answer_set.coverage)
    return float(risk.at["low"][index]), float(risk.at["high"][index])


def _build_report(
    files: tuple[str, ...],
    answer_set: Answers,
    risk: SelectiveRisk,
    threshold: RiskThreshold | None,
    measures: list[Estimate],
    notes: list[Any],
) -> dict[str, Any]:
    """Return the report as a JSON object of the schema trueodds.answers/1."""
    from trueodds.core.json_files import strict_json

    curve = {name: column.tolist() for name, column in risk.at.items() if name != "threshold"}
    points = [risk.operating_point(coverage) for coverage in curve["coverage"]]
    low, high = _error_rate_limits(answer_set, risk)
    return {
        "schema": "trueodds.answers/1",
        "file": list(files),
        "n_queries": answer_set.n_queries,
        "questions": answer_set.questions,
        "abstained": answer_set.abstained,
        "without_confidence": answer_set.without_confidence,
        "coverage": answer_set.coverage,
        "n": answer_set.predictions.n,
        "accuracy": {"value": 1 - risk.random, "low": 1 - high, "high": 1 - low},
        "overall_accuracy": _overall_accuracy(answer_set, risk),
        "mean_confidence": _mean_confidence(answer_set.predictions),
        "selective_risk": {
            "aurc": risk.aurc,
            "interval": risk.interval.to_dict() if risk.interval else None,
            "random": risk.random,
            "ideal": risk.ideal,
            "at": [
                strict_json(
                    {**dict(zip(curve, row, strict=True)), "operating_point": point._asdict() if point else None}
                )
                for point, *row in zip(points, *curve.values(), strict=True)
            ],
        },
        "threshold": None if threshold is None else threshold.to_dict(),
        "measures": [measure.to_dict() for measure in measures],
        "notes": [note.to_dict() for note in notes],
    }


def _overall_accuracy(answer_set: Answers, risk: SelectiveRisk) -> float | None:
    """Return the correct answers as a share of all questions.

    None if there are answers without a confidence, because these may be correct and are not among the predictions.
    """
    return None if answer_set.without_confidence else (1 - risk.random) * answer_set.coverage


def _mean_confidence(preds: Predictions) -> float:
    from trueodds.lenses.lens_by_name import as_lens

    (view,) = as_lens("confidence").views(preds)
    return float(view.p.mean())


def _save_risk_curve(answer_set: Answers, path: str, level: float, seed: int) -> None:
    from trueodds.diagrams.selective_risk import RiskCoverage
    from trueodds.io.files import write_columns
    from trueodds.lenses.lens_by_name import as_lens

    recipe = RiskCoverage(n_queries=answer_set.n_queries, level=level, resamples=CURVE_RESAMPLES)
    diagram = recipe.draw_models({"": answer_set.predictions}, as_lens("confidence"), seed)
    suffix = Path(path).suffix.lower()
    if suffix == ".json":
        output.save_text(path, output.format_json(diagram.to_dict()))
    elif suffix == ".csv":
        write_columns(path, {name: column.tolist() for name, column in diagram.table.items()})
    else:
        diagram.save(path)


def _write_predictions(answer_set: Answers, path: str) -> tuple[Note, ...]:
    """Write probabilities and label, or confidence and correctness, and the question and subgroups if there are any.

    Notes on the cells are returned.
    """
    import numpy as np

    from trueodds.io.files import write_columns

    preds = answer_set.predictions
    assert preds.y is not None
    if preds.kind == "classes":
        label = np.array(preds.classes)[preds.y]  # names of classes, as in the names of the columns
        columns = {"label": label, **{f"p_{name}": preds.P[:, j] for j, name in enumerate(preds.classes)}}
    else:
        columns = {"confidence": preds.p, "correct": preds.y}
    if answer_set.ids is not None:
        columns["question"] = answer_set.ids
    for name, labels in preds.group.items():
        columns[f"group_{name}" if name in columns else name] = labels
    return write_columns(path, {name: column.tolist() for name, column in columns.items()})
