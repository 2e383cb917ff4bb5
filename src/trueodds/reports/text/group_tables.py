"""Tables of the subgroups of an audit: their errors and statuses, and the differences between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueodds.core.formatting import format_number
from trueodds.reports.text.formatting import (
    DETAIL,
    NAMES,
    TableColumn,
    TextTable,
    align_digits,
    format_share,
    interval_texts,
    is_binary,
    level_text,
    pvalue,
)
from trueodds.reports.text.results import interval_mark, smallest_pvalue

Audit = Mapping[str, Any]
# Why a subgroup may be miscalibrated although its interval starts at 0.
_INTERVAL_AT_ZERO = (
    " The interval of a miscalibrated group may start at 0, because the test uses the null distribution of a calibrated"
    " model, while the interval does not assume calibration and is wider."
)


def group_table(audit: Audit) -> TextTable:
    """The error and status of each subgroup."""
    subgroups = audit.get("groups") or []
    among_groups = audit.get("among_groups") or {}
    min_pvalue = among_groups.get("min_pvalue")
    binary, votes = is_binary(audit["data"]), audit["data"].get("votes")
    first = binary or audit["data"]["kind"] == "multilabel"  # otherwise the event rate is the accuracy
    predicted_label = "predicted" if first else "confidence"
    outcome_label = "observed" if first else "vote share" if votes else "accuracy"
    columns = (
        TableColumn("group", NAMES),
        TableColumn("n"),
        *([TableColumn("accuracy", detail=DETAIL)] if first else []),
        TableColumn(predicted_label),
        TableColumn(outcome_label),
        TableColumn("error"),
        TableColumn(f"{level_text(among_groups['level'])} interval" if "level" in among_groups else "interval"),
        TableColumn("noise floor"),
        TableColumn("p", detail=DETAIL),
        TableColumn("joint p"),
        TableColumn("detectable from"),
        TableColumn("status", NAMES),
    )
    rows = zip(
        (group["label"] for group in subgroups),
        (f"{group['n']:,}" for group in subgroups),
        *([(format_share(group.get("accuracy")) for group in subgroups)] if first else []),
        *([format_share(group.get(name)) for group in subgroups] for name in ("mean_prob", "event_rate")),
        align_digits([group.get("error") for group in subgroups]),
        interval_texts([group.get("interval") for group in subgroups]),
        align_digits([group.get("noise_floor") for group in subgroups]),
        (pvalue(group.get("pvalue"), smallest_pvalue(audit)) for group in subgroups),
        (pvalue(group.get("joint"), min_pvalue) for group in subgroups),
        align_digits([group.get("min_detectable") for group in subgroups]),
        (group["status"] for group in subgroups),
        strict=True,
    )
    marks = tuple(
        interval_mark(group.get("error"), group.get("interval"), group.get("noise_floor")) for group in subgroups
    )
    return TextTable("Errors by group", columns, tuple(rows), _on_groups(audit), marks=marks).without_empty_columns()


def _on_groups(audit: Audit) -> str:
    """How to read the table of subgroups."""
    among_groups = audit.get("among_groups") or {"min_effect": None, "correction": ""}
    total = audit["verdict"]["alpha"]
    alpha = among_groups.get("alpha", total)
    share = "" if alpha == total else " (the part of alpha that remains for groups)"
    weighted = " Means and errors are weighted." if audit["data"].get("weighted") else ""
    has_min_detectable = any(group.get("min_detectable") is not None for group in audit.get("groups") or ())
    return (
        f"Expected calibration error of each group. Joint p is adjusted for all groups ({among_groups['correction']})."
        f" Miscalibrated: joint p at most {format_number(alpha)}{share}. Within: not rejected, and the interval ends"
        f" below the equivalence margin {format_number(among_groups['min_effect'])}. Undecided: neither.{weighted}"
        + (" Detectable from: the smallest error that would have been significant." if has_min_detectable else "")
        + (_INTERVAL_AT_ZERO if any(group["status"] == "miscalibrated" for group in audit.get("groups") or ()) else "")
    )


def group_gap_table(audit: Audit) -> TextTable:
    """The largest difference between subgroups of each column, and the multicalibration error."""
    among_groups = audit.get("among_groups") or {}
    rows = []
    for gap in among_groups.get("widest") or ():
        pair = f"{format_number(gap['difference'])} ({gap['first']} minus {gap['second']})"
        text = pair if gap["settled"] else f"{pair}, not significant"
        ends = gap["interval"]
        (span,) = interval_texts([ends])
        rows.append(
            (
                f"widest gap of {gap['column']}",
                f"{text}; {level_text(ends['level'])} interval of the largest true gap {span}",
            )
        )
    if error := among_groups.get("multicalibration"):
        p = _pvalue_relation(error["pvalue"], smallest_pvalue(audit))
        text = f"{format_number(error['value'])}, p {p}; noise floor {format_number(error['noise_floor'])}"
        worst = f"largest for {error['worst']}, {format_number(error['sigma'])} standard errors"
        rows.append(("multicalibration error", f"{text}; {worst}"))
    intro = (
        "Gap: difference of two expected calibration errors; the intervals of a column hold simultaneously."
        " Multicalibration error: the largest cumulative difference between predicted and observed in any group,"
        " relative to its standard error."
    )
    return TextTable("Differences between groups", (TableColumn("", NAMES), TableColumn("", NAMES)), tuple(rows), intro)


def _pvalue_relation(p: float | None, min_pvalue: float | None) -> str:
    text = pvalue(p, min_pvalue)
    return text if text[:1] in "≤<" else f"= {text}"
