"""trueodds fit and trueodds apply: fit a calibrator on a file, and recalibrate the predictions of another one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from trueodds.cli import output, record_options
from trueodds.cli.function_command import FunctionCommand, pop_settings
from trueodds.cli.messages import note_line
from trueodds.cli.open_data import is_calibrator, is_tally, open_data
from trueodds.cli.options import COLUMN_OPTIONS, TEXT_FILE_OPTIONS, add_options, data_options, pop_columns
from trueodds.core.errors import MAX_LISTED_ITEMS, MAX_VALUE_LENGTH, InputError, install_command, shorten
from trueodds.core.progress import ProgressBar, report_in_rows

if TYPE_CHECKING:
    from trueodds.io.columns import ColumnRoles

CORRECTNESS_CLASSES = ("wrong", "correct")  # of a calibrator of the confidence in an answer


@click.command(
    cls=FunctionCommand, function="api/fit.py", family="calibrators", without=("lens", "level", "mode"),
    short_help="Fit a calibrator and save it for trueodds apply.",
)  # fmt: skip
@data_options(has_groups=True)
@click.option(
    "--out",
    required=True,
    metavar="F",
    help="File to save it to: JSON for trueodds apply, or an ONNX graph if it ends with .onnx.",
)
def fit(files: tuple[str, ...], method: str, out: str, **params: Any) -> None:
    """Fit a calibrator and save it for trueodds apply.

    Evaluate it on other rows: a calibrator always looks good on the rows it was fitted on.
    """
    method_settings, columns = pop_settings(params), pop_columns(params)
    output.check_outputs(files, out=out)
    import trueodds as to
    from trueodds.calibrators import CALIBRATORS

    CALIBRATORS.check(method, method_settings)
    is_onnx = out.lower().endswith(".onnx")
    if is_onnx and find_spec("onnx") is None:
        raise InputError("TO524", "Writing ONNX needs onnx.", f"--out {out}", install_command("onnx"))
    calibrator = to.fit(open_data(files, columns), method, **params, **method_settings)
    if is_onnx:
        calibrator.to_onnx(out)
    else:
        calibrator.save(out)
    lines = calibrator.summary().split("\n")
    lines[len(lines) - len(calibrator.notes) :] = map(note_line, calibrator.notes)  # the summary ends with the notes
    output.print_text("\n".join([*lines, out]))


@click.command(short_help="Apply a saved calibrator to a file.")
@click.argument("calibrator")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@add_options((option, settings) for option, settings in COLUMN_OPTIONS if option in ("--probs", "--logits"))
@click.option("--confidence", metavar="C", help="Column of the confidence in the chosen answer; replaces --probs.")
@click.option("--percent", is_flag=True, help="Confidences are percentages (70 means 70 %), also in the output.")
@click.option(
    "--logprobs", metavar="F", help="Field of the log-probabilities of the options, in records of answers; adds p_…"
)
@click.option("--abstained", metavar="F", help="Field (or a,b) of records without an answer, as for trueodds answers.")
@click.option(
    "--sum-tolerance", type=float, metavar="X", help="Largest deviation of the sum of a row from 1 (rounded tables)."
)
@add_options(TEXT_FILE_OPTIONS)
@click.option("--out", required=True, metavar="F", help="The same rows with the new probabilities.")
def apply(calibrator: str, files: tuple[str, ...], out: str, **params: Any) -> None:
    """Apply a saved calibrator: write the file again, with recalibrated probabilities.

    No label is needed, and all other columns are unchanged. The columns of groups that a calibrator needs are found by
    their names. FILE may have the records of answers of a language model:
    --confidence may be a field inside another one or a text such as 85%, and --logprobs adds the probabilities of the
    options as p_….
    """
    percent = params.pop("percent")
    columns = pop_columns(params, needs_outcome=False)
    tolerance = columns.get("sum_tolerance")
    if percent and "confidence" not in columns:
        raise InputError("TO601", "--percent needs --confidence.", "--percent alone", "Add --confidence C.")
    output.check_outputs((calibrator, *files), out=out)
    _check_paths(calibrator, files)
    from trueodds.calibrators import fitted_calibrator

    loaded_calibrator = fitted_calibrator.load(calibrator)
    if not record_options.has_records_to_recalibrate(files, columns):
        try:
            _apply_to_table(loaded_calibrator, files, out, columns, tolerance, percent=percent)
            return
        except InputError as problem:
            if problem.code != "TO307" or "confidence" not in columns:
                raise  # otherwise the confidences are texts such as 85%, which are read as those of records
    _apply_to_records(loaded_calibrator, files, out, columns, percent=percent)


def _check_paths(calibrator: str, files: Sequence[str]) -> None:
    """Raise TO503 if the calibrator is a tally or an ONNX graph, or is named among the files."""
    if is_tally(calibrator):
        raise InputError(
            "TO503", "The file is a tally, not a calibrator.", calibrator, "Pass a file that trueodds fit wrote."
        )
    if swapped := next((file for file in files if is_calibrator(file)), None):
        fix = f"The calibrator comes first: trueodds apply {swapped} FILE --out F."
        raise InputError("TO503", "The arguments look swapped: a calibrator is given as a file.", swapped, fix)
    if calibrator.lower().endswith(".onnx"):
        fix = "Save the calibrator as JSON, trueodds fit FILE --out cal.json; ONNX graphs are for other runtimes."
        raise InputError("TO503", "An ONNX graph is not read back.", calibrator, fix)


def _apply_to_table(
    calibrator: Any, files: Sequence[str], out: str, columns: dict[str, Any], tolerance: float | None, *, percent: bool
) -> None:
    """Write a table again with recalibrated columns, and print what was done.

    `tolerance` is that of the sum of a row, and `percent` says that a confidence of 70 means 70 %.
    """
    from trueodds.calibrators.fitted_calibrator import notes_on_groups
    from trueodds.data.class_names import class_numbers, names_of_labels
    from trueodds.io import read
    from trueodds.io.recalibrated_files import output_column_names, rewrite
    from trueodds.io.stated_confidence import PercentScale
    from trueodds.io.table_source import TableSource

    group = list(calibrator.calibration_map.required_columns) or None
    source = read(list(files), label=None, group=group, **columns)
    assert isinstance(source, TableSource)  # as files are read in this process
    roles = source.roles
    if roles.kind == "confidence":
        _check_is_for_confidence(calibrator, columns)
    calibration_map = calibrator.calibration_map
    on_logits = roles.logits and (calibration_map.logits or calibration_map.takes_logs)
    classes, column_suffixes = [str(name) for name in calibrator.classes], list(roles.suffixes or ())
    numbers, column_numbers = class_numbers(classes), class_numbers(column_suffixes)
    if numbers and column_numbers and set(numbers) == set(column_numbers):  # such as 1, 2 and class01, class02
        classes, column_suffixes = list(map(str, numbers)), list(map(str, column_numbers))
    elif any(isinstance(column, list) for column in columns.values()):
        column_suffixes = []  # listed columns are in the order of the classes; those of a pattern are matched by name
    elif column_suffixes:
        column_suffixes = list(names_of_labels(column_suffixes, classes))
    class_columns = _match_classes(classes, column_suffixes)

    n_unknown = 0

    def recalibrate(P: Any, group: Any = None) -> Any:
        """Return the recalibrated probabilities (n, K), in the order of the columns of the file."""
        nonlocal n_unknown
        n_unknown += 0 if group is None else calibration_map.count_unknown(group)
        settings = {"logits": on_logits, "sum_tolerance": tolerance, "group": group}
        if class_columns is None:
            return calibrator.predict_proba(P, **settings)
        Q = P.copy()
        Q[:, class_columns] = calibrator.predict_proba(P[:, class_columns], **settings)
        return Q

    scale = PercentScale() if percent else None
    with ProgressBar() as progress, _restate_class_errors(roles):
        rows_written, cell_notes = rewrite(
            source, recalibrate, out, logits=on_logits, percent=scale, progress=report_in_rows(progress)
        )
    scale_notes = [] if scale is None else scale.notes()
    _print_applied(
        calibrator,
        rows_written,
        out,
        [*source.notes, *scale_notes, *cell_notes, *notes_on_groups(n_unknown, rows_written)],
    )
    if roles.logits:
        renamed = [f"{old} → {new}" for old, new in zip(roles.probs, output_column_names(roles), strict=True)]
        listed = ", ".join(renamed if len(renamed) <= MAX_LISTED_ITEMS else [*renamed[:2], "…", renamed[-1]])
        output.print_text(f"  Columns of logits were replaced by recalibrated probabilities: {listed}.")
    if column_suffixes and class_columns is None and column_suffixes != classes:
        pairs = ", ".join(f"{column} is class {name}" for column, name in zip(column_suffixes, classes, strict=True))
        output.print_text(f"  Classes were matched by position because one side has numbers instead of names: {pairs}.")


@contextmanager
def _restate_class_errors(roles: ColumnRoles) -> Iterator[None]:
    """Describe the columns of the file, and not the array, in the error of another number of classes (TO501)."""
    try:
        yield
    except InputError as problem:
        if problem.code != "TO501":
            raise
        n_classes, columns = problem.got.partition(" ")[0], shorten(", ".join(roles.probs), MAX_VALUE_LENGTH)
        got = f"{n_classes} in the file, from the column{'s' * (len(roles.probs) > 1)} {columns}"
        fix = "Name one column per class, in the order of the calibrator's classes: --probs a,b,c."
        raise InputError("TO501", problem.problem, got, fix) from None


def _apply_to_records(
    calibrator: Any, files: Sequence[str], out: str, columns: dict[str, Any], *, percent: bool
) -> None:
    """Write records of answers again, with recalibrated confidences or probabilities of the options."""
    from trueodds.io.csv_format import CsvSettings
    from trueodds.io.recalibrated_files import recalibrate_options, recalibrate_stated

    data = files[0] if len(files) == 1 else list(files)
    abstained = columns.get("abstained", ())
    abstained = [abstained] if isinstance(abstained, str) else abstained
    csv_settings = CsvSettings(columns.get("separator"), columns.get("decimal"))
    if "confidence" in columns:
        _check_is_for_confidence(calibrator, columns)
        rows_written, notes = recalibrate_stated(
            data,
            lambda p: calibrator.predict_proba(p)[:, 1],
            out,
            confidence=columns["confidence"],
            percent=percent,
            abstained=abstained,
            csv_settings=csv_settings,
        )
    else:
        if tuple(calibrator.classes) == CORRECTNESS_CLASSES:
            problem, fix = "The calibrator is for the confidence in an answer, not for options.", "Pass --confidence F."
            raise InputError("TO607", problem, f"--logprobs {columns['logprobs']}", fix)
        rows_written, notes = recalibrate_options(
            data,
            lambda log_probs: calibrator.predict_proba(log_probs, logits=True),
            out,
            options=columns["logprobs"],
            class_names=calibrator.classes,
            abstained=abstained,
            csv_settings=csv_settings,
        )
    _print_applied(calibrator, rows_written, out, notes)


def _print_applied(calibrator: Any, rows_written: int, out: str, notes: Sequence[Any]) -> None:
    output.print_text(f"{calibrator.describe()}\n{rows_written:,} rows written to {out}")
    for note in notes:
        output.print_text(f"  {note_line(note)}")


def _check_is_for_confidence(calibrator: Any, columns: dict[str, Any]) -> None:
    if tuple(calibrator.classes) != CORRECTNESS_CLASSES:
        raise InputError(
            "TO607",
            "The calibrator is for class probabilities, not for the confidence in an answer.",
            f"--confidence {columns['confidence']} and {', '.join(map(str, calibrator.classes))} in the calibrator",
            "Name the columns of the probabilities by --probs.",
        )


def _match_classes(classes: list[str], columns: list[str]) -> list[int] | None:
    """Return the column of each class if the order in the file differs, else None.

    Classes are matched by name if both sides have names, because a calibrator treats each class differently.
    """
    if columns == classes or not columns:
        return None
    if sorted(columns) == sorted(classes):
        column_of_name = {name: i for i, name in enumerate(columns)}
        return [column_of_name[name] for name in classes]
    class_numbers = [str(number) for number in range(len(classes))]
    if len(columns) != len(classes) or class_numbers in (classes, columns):
        return None  # the calibrator itself refuses another number of classes
    raise InputError(
        "TO607",
        "The file and the calibrator name different classes.",
        f"{', '.join(columns)} in the file, {', '.join(classes)} in the calibrator",
        "Name the columns in the calibrator's order: --probs a,b,c.",
    )
