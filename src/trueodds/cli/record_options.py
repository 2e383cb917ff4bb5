"""Options for records of a language model's answers, the checks of these options, and reading the records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from trueodds.core.errors import InputError, spell


def make_option(name: str, metavar: str, text: str, **settings: Any) -> tuple[str, dict[str, Any]]:
    """Return the name of an option and its settings for `click.option`, among them its text in the help."""
    return name, {"metavar": metavar, "help": text, **settings}


RECORD_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    make_option("--percent", "", "Confidences are percentages (70 means 70 %).", is_flag=True),
    make_option("--logprobs", "F", "Field of the log-probabilities of the options, in records of answers."),
    make_option("--samples", "F", "Field of several answers to one question, or of one answer with --question."),
    make_option("--answer", "F", "Field of the correct answer, with --logprobs or --samples. [default: label]"),
    make_option("--choices", "F", "Field of the names of the options, if --answer is one of them."),
    make_option(
        "--question",
        "F",
        "Field (or a,b) that identifies the question; its rows form a cluster, and compare pairs by it.",
    ),
    make_option(
        "--abstained",
        "F",
        "Field (or a,b) that is yes where no answer was given; or the confidence field itself, if it is"
        " empty in that case.",
    ),
)
CONFIDENCE_KEYWORDS = ("logprobs", "confidence", "samples")
RECORD_KEYWORDS = tuple(option.removeprefix("--") for option, _ in RECORD_OPTIONS)
# For each option, the options of which it requires one.
_REQUIRED_KEYWORDS = {
    "percent": ("confidence",),
    "answer": ("logprobs", "samples"),
    "choices": ("logprobs",),
    "question": CONFIDENCE_KEYWORDS,
    "abstained": CONFIDENCE_KEYWORDS,
}
# Options of tables of probabilities that records do not have, and what to use instead; empty if there is nothing.
_TABLE_OPTION_REMEDIES = {
    "predicted": "Name the field that says whether the answer was correct by --correct.",
    "label": "Name the correct answer by --answer.",
    "cluster": "Name the field of dependent rows by --question.",
    **dict.fromkeys(
        ("probs", "logits", "votes", "multilabel", "missing", "classes", "sum_tolerance", "engine", "row_id"), ""
    ),
    "weight": "Leave --weight out: records have equal weights.",
}


def check_record_options(columns: Mapping[str, Any]) -> None:
    """Raise an error for options of records that exclude each other, and for those that nothing would read."""
    confidence_keywords = [keyword for keyword in CONFIDENCE_KEYWORDS if keyword in columns]
    if len(confidence_keywords) > 1:
        got = " and ".join(f"--{keyword}" for keyword in confidence_keywords)
        fix = f"Leave --{confidence_keywords[1]} out."
        raise InputError("TO603", "Exactly one field must hold the confidence.", got, fix)
    for name, partners in _REQUIRED_KEYWORDS.items():
        if name in columns and not any(partner in columns for partner in partners):
            raise _missing_partner_error(name, columns[name], partners, confidence_keywords)
    if "correct" in columns and "logprobs" in columns:
        reason = "With --logprobs, correctness follows from the correct option."
        raise InputError("TO603", reason, "--correct and --logprobs", "Name the correct option by --answer.")
    if "correct" in columns and "answer" in columns:
        reason = "Both define which answer is correct."
        raise InputError("TO603", reason, "--correct and --answer", "Omit one of them.")
    record_keyword = next((keyword for keyword in RECORD_KEYWORDS if keyword in columns), None)
    if record_keyword is None:
        return
    for name, remedy in _TABLE_OPTION_REMEDIES.items():
        if name in columns:
            option = "--" + name.replace("_", "-")
            problem = f"Records of answers are read without {option}."
            fix = remedy or f"Leave {option} out."
            raise InputError("TO603", problem, f"{option} and --{record_keyword}", fix)


def _missing_partner_error(
    name: str, value: Any, partners: Sequence[str], confidence_keywords: Sequence[str]
) -> InputError:
    """Return the error of the option --`name`, which is used without any of its partners.

    `confidence_keywords` has the option of the confidence, if there is one.
    """
    options = [f"--{partner}" for partner in partners]
    required = options[0] if len(options) == 1 else f"{', '.join(options[:-1])} or {options[-1]}"
    got = f"--{name}" if value is True else f"--{name} {value}"
    if confidence_keywords:
        got, fix = f"{got} with --{confidence_keywords[0]}", f"Leave --{name} out."
    elif name == "percent":
        got += " alone"
        fix = "Add --confidence F. Columns of probabilities are fractions: divide percentages by 100."
    else:
        got, fix = f"{got} alone", f"Add {options[0]} F."
    return InputError("TO601", f"--{name} needs {required}.", got, fix)


def has_record_options(files: Sequence[str], columns: Mapping[str, Any]) -> bool:
    return any(name in columns for name in RECORD_KEYWORDS) or (
        "confidence" in columns and "predicted" not in columns and _look_like_records(files, columns)
    )


def _look_like_records(files: Sequence[str], columns: Mapping[str, Any]) -> bool:
    """Return whether files with --confidence hold records of answers, and not a table.

    A .json file always does. A .jsonl file does if the first record has one of the fields only inside another field,
    or if its correctness is a text, such as yes or no.
    """
    if not _are_json_lines(files):
        return _all_end_with(files, ".json")
    from trueodds.io.records import iterate_records

    first_fields = next(iterate_records(files[0])).fields
    fields = [columns["confidence"], columns["correct"]]
    if any("." in name and name not in first_fields for name in fields):
        return True
    return all(name in first_fields for name in fields) and isinstance(first_fields[columns["correct"]], str)


def _are_json_lines(files: Sequence[str]) -> bool:
    from trueodds.io.files import FORMAT_OF_SUFFIX

    return _all_end_with(files, FORMAT_OF_SUFFIX[".jsonl"].suffixes)


def _all_end_with(files: Sequence[str], suffixes: str | tuple[str, ...]) -> bool:
    return all(file.lower().endswith(suffixes) for file in files)


def has_records_to_recalibrate(files: Sequence[str], columns: Mapping[str, Any]) -> bool:
    """Return whether `apply` reads records of answers, and not a table of confidences or probabilities."""
    if "logprobs" in columns or "abstained" in columns:
        return True
    if "confidence" not in columns:
        return False
    if _are_json_lines(files) and "." in columns["confidence"]:
        from trueodds.io.records import iterate_records

        return columns["confidence"] not in next(iterate_records(files[0])).fields
    return _all_end_with(files, ".json")


def read_answer_set(files: Sequence[str], columns: Mapping[str, Any]) -> Any:
    from trueodds.io.answers import read_answers

    settings = {"options" if name == "logprobs" else name: value for name, value in columns.items()}
    return read_answers(files[0] if len(files) == 1 else list(files), **settings)


@contextmanager
def name_question_in_errors(columns: Mapping[str, Any], *, costs: bool) -> Iterator[None]:
    """Name --question in errors about clusters."""
    try:
        yield
    except InputError as problem:
        if problem.code != "TO205" or "question" not in columns or "cluster" not in problem.got:
            raise
        question = f"--question {','.join(columns['question'])}"
        got = spell(problem.got, lambda code: question if code.startswith("cluster") else f"⟨{code}⟩")
        fix = "With --cost leave out --question, on a file with one row of each question." if costs else problem.fix
        raise InputError(problem.code, problem.problem, got, fix) from None


def open_records(files: Sequence[str], columns: Mapping[str, Any]) -> Any:
    """Return the answers in these files as a source of predictions, which keeps the number of questions."""
    from trueodds.io.source import InMemorySource

    answer_set = read_answer_set(files, columns)
    name = files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1:,} more"
    return InMemorySource(answer_set.predictions, name=name, n_queries=answer_set.n_queries)
