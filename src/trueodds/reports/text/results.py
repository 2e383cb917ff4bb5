"""Tables of the scores, calibration errors, classes, subgroups and tests of an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trueodds.core.formatting import format_number, format_percent
from trueodds.reports.text.formatting import (
    DETAIL,
    NAMES,
    Column,
    Mark,
    Table,
    align_digits,
    claim,
    interval_texts,
    is_binary,
    pvalue,
    share,
)

Audit = Mapping[str, Any]
_PROPER = ("brier", "log_loss", "spherical", "rps")
_JOINT = "The family's p is joint over all claims; p and Holm p are of single claims, Holm p allowing for their number."
# Why the table may say off beside an interval that begins at 0.
_INTERVAL_AT_ZERO = (
    " The interval of a group that is off may begin at 0: the test draws the labels of a calibrated model and so knows "
    "what chance does; the interval takes nothing for granted, and is wider."
)
_REASONS = {
    "TN201": "the value is infinite, or no interval of known coverage exists",
    "TN402": "from a tally an aggregate over classes has no interval",
    "TN406": "a tally keeps no entropy, so what log loss expects of itself is unknown",
}


def score_table(audit: Audit) -> Table:
    """How good the probabilities are altogether."""
    measured = [measure for measure in audit["measures"] if measure["estimator"] in _PROPER]
    columns = (
        Column("score", NAMES),
        Column("lens", NAMES),
        Column("value"),
        Column(_level(audit) + " interval"),
        Column("own expectation"),
        Column("n"),
    )
    cells = zip(
        (measure["estimator"].replace("_", " ") for measure in measured),
        (measure["lens"] for measure in measured),
        align_digits([measure["value"] for measure in measured]),
        interval_texts([measure["interval"] for measure in measured]),
        align_digits([measure["noise_floor"] for measure in measured]),
        (f"{measure['n']:,}" for measure in measured),
        strict=True,
    )
    rows = [
        (*row[:2], "infinite", *row[3:]) if measure["value"] is None and measure["estimator"] == "log_loss" else row
        for measure, row in zip(measured, cells, strict=True)
    ]
    intro = "Lower is better; calibration and sharpness both count."
    if any(measure["noise_floor"] is not None for measure in measured):
        intro += (
            " Own expectation: the score expected by its own probabilities; "
            "a score far from it, either way, means miscalibration."
        )
    return Table("Scores", columns, tuple(rows), intro + _dashes(measured)).filled()


def _dashes(measured: Sequence[Mapping[str, Any]]) -> str:
    """Why a cell may hold no number, of the reasons that the measures themselves give."""
    if all(measure["interval"] and measure["noise_floor"] is not None for measure in measured):
        return ""
    codes = dict.fromkeys(note["code"] for measure in measured for note in measure["notes"])
    reasons = [f"{_REASONS[code]} ({code})" for code in codes if code in _REASONS]
    return f" A dash: {'; '.join(reasons)}." if reasons else ""


_STANDARD = {
    "mean_gap": ("mean gap", "mean prediction minus outcome rate"),
    "calibration_in_the_large": ("calibration in the large", "log odds to add; above 0 predictions are too low"),
    "calibration_slope": ("calibration slope", "of log odds; below 1 too extreme, above 1 too timid"),
    "observed_to_expected": ("O:E ratio", "outcomes per predicted outcome"),
    "ici": ("ICI", "mean distance to a smoothed calibration curve"),
    "auc": ("AUC", "discrimination, not calibration"),
}


def standard_measure_table(audit: Audit) -> Table:
    """The measures that clinical and credit-risk reports state."""
    measured = audit.get("standard_measures") or ()
    columns = (
        Column("measure", NAMES),
        Column("value"),
        Column(_level(audit) + " interval"),
        Column("calibrated"),
        Column("what it is", NAMES, DETAIL),
    )
    rows = zip(
        (_STANDARD[measure["name"]][0] for measure in measured),
        align_digits([measure["value"] for measure in measured]),
        interval_texts([measure["interval"] for measure in measured]),
        (format_number(measure["ideal"]) for measure in measured),
        (_STANDARD[measure["name"]][1] for measure in measured),
        strict=True,
    )
    names = {measure["name"] for measure in measured}
    intro = "Slope: of log odds; below 1 probabilities are too extreme, above 1 too timid."
    if "calibration_in_the_large" in names:
        intro = f"In the large: log odds to add; above 0 probabilities are too low. {intro} O:E: outcomes per predicted one."
    elif names:
        intro = f"Mean gap: mean prediction minus outcome rate. {intro}"
    return Table("Level and slope", columns, tuple(rows), intro).filled()


def error_table(audit: Audit) -> Table:
    """How far off, claim by claim."""
    measured = [measure for measure in audit["measures"] if measure["estimator"] not in _PROPER]
    tests = [_tested(audit, measure["lens"]) for measure in measured]
    columns = (
        Column("what is claimed", NAMES, DETAIL),
        Column("lens", NAMES),
        Column("measure", NAMES),
        Column("error"),
        Column(_level(audit) + " interval"),
        Column("noise floor"),
        Column("debiased", detail=DETAIL),
        Column("p"),
        Column("Holm p"),
        Column("n"),
    )
    cells = zip(
        (claim(measure["lens"], audit["data"]) or measure["lens"] for measure in measured),
        (measure["lens"] for measure in measured),
        (measure["estimator"].replace("_", " ") for measure in measured),
        align_digits([measure["value"] for measure in measured]),
        interval_texts([measure["interval"] for measure in measured]),
        align_digits([measure["noise_floor"] for measure in measured]),
        align_digits([measure.get("debiased") for measure in measured]),
        (test.p for test in tests),
        (test.holm for test in tests),
        (f"{measure['n']:,}" for measure in measured),
        strict=True,
    )
    marks = tuple(_mark(measure["value"], measure["interval"], measure["noise_floor"]) for measure in measured)
    intro = (
        "The noise floor is what a calibrated model would show on as many rows. p is that of the test of the same claim, "
        "which sees patterns beside the size of the error: it may be small where the interval begins at 0."
        + _dashes(measured)
    )
    if any(test.holm != "–" for test in tests):
        intro += f" {_JOINT}"
    return Table("How far off", columns, tuple(cells), intro, marks=marks).filled()


def _mark(value: float | None, interval: Mapping[str, Any] | None, noise_floor: float | None) -> Mark:
    ends = interval or {}
    return Mark(value, ends.get("low"), ends.get("high"), noise_floor)


class _Tested(NamedTuple):
    """What the tests say about one claim, as it is displayed."""

    p: str
    holm: str
    expected: float | None


def _tested(audit: Audit, lens: str) -> _Tested:
    """Of one lens: its own test, with Holm's p from the family."""
    own: Mapping[str, Any] = next((test for test in audit["tests"] if test["lens"] == lens), {})
    family: Mapping[str, Any] = next((test for test in audit["tests"] if test["lens"] == "family"), {"parts": {}})
    part = family["parts"].get(lens, {})
    p = own.get("pvalue", part.get("pvalue"))
    min_pvalue = own.get("min_pvalue", _min_pvalue(audit))
    return _Tested(pvalue(p, min_pvalue), _holm(p, part.get("holm"), min_pvalue), part.get("noise_floor"))


def _holm(p: float | None, holm: float | None, min_pvalue: float | None) -> str:
    """Holm's p of a claim; where its own p is at the floor, Holm's is no more than a bound either."""
    bound = p is not None and min_pvalue is not None and p <= min_pvalue * (1 + 1e-9) and holm is not None and holm < 1
    return pvalue(holm, holm if bound else None)


def _min_pvalue(audit: Audit) -> float | None:
    """The smallest p of a single claim that so many redraws can give."""
    resamples = (audit.get("settings") or {}).get("resamples")
    return None if resamples is None else 1 / (1 + resamples)


def _level(audit: Audit) -> str:
    levels = {measure["interval"]["level"] for measure in audit["measures"] if measure["interval"]}
    return format_percent(levels.pop()) if len(levels) == 1 else ""


def class_table(audit: Audit) -> Table:
    """The error of every class against the rest, worst first."""
    measured, tested = _by_class(audit["measures"]), _by_class(audit["tests"])
    names = dict.fromkeys([*measured["parts"], *tested["parts"]])
    entries = []
    for name in names:
        part = tested["parts"].get(name, {})
        entries.append((name, measured["parts"].get(name, part.get("statistic")), part))
    entries.sort(key=lambda entry: -(entry[1] if entry[1] is not None else -1.0))
    columns = (Column("class", NAMES), Column("error"), Column("noise floor"), Column("p"), Column("Holm p"))
    min_pvalue = _min_pvalue(audit)
    rows = zip(
        (class_name(name) for name, _, _ in entries),
        align_digits([value for _, value, _ in entries]),
        align_digits([part.get("noise_floor") for _, _, part in entries]),
        (pvalue(part.get("pvalue"), min_pvalue) for _, _, part in entries),
        (_holm(part.get("pvalue"), part.get("holm"), min_pvalue) for _, _, part in entries),
        strict=True,
    )
    return Table(
        "Class by class",
        columns,
        tuple(rows),
        "Each class against all others, worst first. Holm's p allows for looking at many classes.",
        tuple(class_name(name) for name, _, _ in entries),
        tuple(Mark(value, noise_floor=part.get("noise_floor")) for _, value, part in entries),
    ).filled()


def class_name(view: str) -> str:
    """The class that a view is about."""
    return str(view).removeprefix("class:")


def group_table(audit: Audit) -> Table:
    """Each subgroup for itself, judged among all of them."""
    subgroups = audit.get("groups") or []
    among_groups = audit.get("among_groups") or {}
    min_pvalue = among_groups.get("min_pvalue")
    binary, votes = is_binary(audit["data"]), audit["data"].get("votes")
    first = binary or audit["data"]["kind"] == "multilabel"  # else what came is that the answer was right
    outcome_label = "observed" if first else "votes for it" if votes else "is right"
    columns = (
        Column("group", NAMES),
        Column("n"),
        *([Column("accuracy", detail=DETAIL)] if first else []),
        Column("predicted"),
        Column(outcome_label),
        Column("error"),
        Column("interval"),
        Column("noise floor"),
        Column("p", detail=DETAIL),
        Column("joint p"),
        Column("detectable from"),
        Column("status", NAMES),
    )
    rows = zip(
        (group["label"] for group in subgroups),
        (f"{group['n']:,}" for group in subgroups),
        *([(share(group.get("accuracy")) for group in subgroups)] if first else []),
        *([share(group.get(name)) for group in subgroups] for name in ("mean_prob", "event_rate")),
        align_digits([group.get("error") for group in subgroups]),
        interval_texts([group.get("interval") for group in subgroups]),
        align_digits([group.get("noise_floor") for group in subgroups]),
        (pvalue(group.get("pvalue"), _min_pvalue(audit)) for group in subgroups),
        (pvalue(group.get("joint"), min_pvalue) for group in subgroups),
        align_digits([group.get("min_detectable") for group in subgroups]),
        (group["status"] for group in subgroups),
        strict=True,
    )
    marks = tuple(_mark(group.get("error"), group.get("interval"), group.get("noise_floor")) for group in subgroups)
    return Table("Group by group", columns, tuple(rows), _on_groups(audit), marks=marks).filled()


def _on_groups(audit: Audit) -> str:
    """How the table of subgroups is read."""
    among_groups = audit.get("among_groups") or {"min_effect": None, "correction": ""}
    alpha = format_number(among_groups.get("alpha", audit["verdict"]["alpha"]))
    share = (
        "" if audit["verdict"]["rejected"] else ", the groups' share of alpha as the rows as a whole are not rejected"
    )
    has_min_detectable = any(group.get("min_detectable") is not None for group in audit.get("groups") or ())
    return (
        "The same question for each part of the rows. Joint p allows for all groups looked at "
        f"({among_groups['correction']}). miscalibrated: joint p at most {alpha}{share}. within: not rejected, and the interval ends below "
        f"{format_number(among_groups['min_effect'])}. undecided: these rows tell neither"
        + ("; detectable from: the smallest error that would have been significant." if has_min_detectable else ".")
        + (_INTERVAL_AT_ZERO if any(group["status"] == "miscalibrated" for group in audit.get("groups") or ()) else "")
    )


def group_gap_table(audit: Audit) -> Table:
    """What is said of all subgroups together: the widest gap of each column, and the multicalibration error."""
    among_groups = audit.get("among_groups") or {}
    rows = []
    for gap in among_groups.get("widest") or ():
        pair = f"{gap['first']} − {gap['second']}, {format_number(gap['difference'])}"
        text = pair if gap["settled"] else f"no two are surely apart; the largest difference is {pair}"
        ends = gap["interval"]
        (span,) = interval_texts([ends])
        rows.append(
            (
                f"widest gap of {gap['column']}",
                f"{text}; the largest true gap lies in {span} {format_percent(ends['level'])}",
            )
        )
    if error := among_groups.get("multicalibration"):
        text = f"{format_number(error['value'])}, p {_pvalue_relation(error['pvalue'], _min_pvalue(audit))}; noise floor {format_number(error['noise_floor'])}"
        worst = f"worst: {error['worst']}, {format_number(error['sigma'])} standard errors"
        rows.append(("multicalibration error", f"{text}; {worst}"))
    intro = (
        "The intervals of a column's gaps hold together. The multicalibration error is the largest drift of any group, "
        "in units of its own chance."
    )
    return Table("Between groups", (Column("", NAMES), Column("", NAMES)), tuple(rows), intro)


def _pvalue_relation(p: float | None, min_pvalue: float | None) -> str:
    text = pvalue(p, min_pvalue)
    return text if text[:1] in "≤<" else f"= {text}"


def test_table(audit: Audit) -> Table:
    """Could it be chance? The family, then each claim that was tested, once."""
    columns = (
        Column("test", NAMES),
        Column("lens", NAMES),
        Column("statistic"),
        Column("expected"),
        Column("effect"),
        Column("p"),
        Column("Holm p"),
        Column("family p"),
        Column("smallest p"),
        Column("n"),
    )
    tests = audit["tests"]
    parts: Mapping[str, Any] = next((test["parts"] for test in tests if test["lens"] == "family"), {})
    expected = [_tested(audit, test["lens"]).expected for test in tests]
    numbers = zip(
        align_digits([test.get("statistic") for test in tests]),
        align_digits(expected),
        align_digits([test.get("effect") for test in tests]),
        strict=True,
    )
    rows = []
    for test in tests:
        family = test.get("family_pvalue")
        rows.append(
            (
                test["test"],
                test["lens"],
                *next(numbers),
                pvalue(test.get("pvalue"), test.get("min_pvalue")),
                _tested(audit, test["lens"]).holm,
                pvalue(family, test.get("min_pvalue")),
                format_number(test.get("min_pvalue")),
                f"{test['n']:,}",
            )
        )
    nulls = dict.fromkeys(test["null"] for test in tests if test.get("null"))
    intro = " ".join(f"If the model were calibrated: {null}." for null in nulls)
    intro += (
        " Statistic: of omnibus, how surprising level, slope and local errors are together, on a log scale; 0 is no "
        "surprise. Effect: the error between groups of rows less what chance adds to it, below 0 where that is more than "
        "was seen. Smallest p: what so many redraws can give at best."
    )
    if parts:
        intro += f" {_JOINT}"
    return Table("Is it chance?", columns, tuple(rows), intro).filled()


def _by_class(entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The entry whose parts are classes; those of another lens are the terms of its error."""
    return next((entry for entry in entries if entry["lens"] == "classwise" and entry["parts"]), {"parts": {}})
