"""Does the text of an audit fit a terminal of 80 columns, and does its brief form give the verdict in ten lines?"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.reports.example import example, unremarkable
from tests.reports.test_people import example as example_of_votes
from trueodds.core.table import display_width
from trueodds.reports.audit import Audit
from trueodds.reports.text.terminal import render_brief, render_text


def of_many_classes() -> dict[str, Any]:
    """200 classes with long names, groups with long names."""
    audit = example()
    names = [f"species number {i} of the forest in the north of the country" for i in range(200)]
    part = next(iter(audit["tests"][2]["parts"].values()))
    audit["data"] |= {"classes": names, "k": 200, "source": "a_long_name_of_a_file_" * 6 + ".parquet"}
    audit["tests"][2]["parts"] = {f"class:{name}": part for name in names}
    audit["measures"][3]["parts"] = {f"class:{name}": i / 1000 for i, name in enumerate(names)}
    for group in audit["groups"]:
        group["label"] = f"region and kind of the forest={group['value']} of the country, with many more words"
    return audit


AUDITS = {
    "example": example(),
    "unremarkable": unremarkable(),
    "votes": example_of_votes(),
    "200 classes": of_many_classes(),
}


@pytest.mark.parametrize("width", [48, 80, 110])
@pytest.mark.parametrize("name", AUDITS)
def test_no_line_of_the_report_is_wider_than_the_terminal(name: str, width: int) -> None:
    for text in (render_text(AUDITS[name], width), render_brief(AUDITS[name], width)):
        assert [line for line in text.split("\n") if display_width(line) > width] == []


@pytest.mark.parametrize("name", AUDITS)
def test_without_a_terminal_the_report_has_80_columns(name: str) -> None:
    audit = Audit(AUDITS[name])
    assert str(audit) == render_text(AUDITS[name], 80)
    assert audit.brief() == render_brief(AUDITS[name], 80)


@pytest.mark.parametrize("name", AUDITS)
def test_color_says_nothing_that_the_words_do_not(name: str) -> None:
    """Without its colors the report is the plain one, so that each colored piece has its meaning in words."""

    def style(text: str, role: str) -> str:
        return f"\x1b[{len(role)}m{text}\x1b[0m"

    for render in (render_text, render_brief):
        colored = render(AUDITS[name], 80, style)
        assert "\x1b" in colored
        assert re.sub(r"\x1b\[\d+m", "", colored) == render(AUDITS[name], 80)


@pytest.mark.parametrize("name", ["example", "unremarkable", "votes"])
def test_the_brief_report_has_at_most_ten_lines(name: str) -> None:
    assert len(Audit(AUDITS[name]).brief().splitlines()) <= 10


def test_the_brief_report_has_verdict_error_interval_noise_floor_pvalue_place_and_fix() -> None:
    text = " ".join(Audit(example()).brief().split())
    assert text.startswith(example()["verdict"]["sentence"])  # with the p-value and the recalibration
    assert "Data digits.parquet · 899 rows · 10 classes" in text
    assert "Expected calibration error 0.251 (95 % confidence interval 0.239 to 0.263; noise floor 0.032)" in text
    assert "Largest class error 0.073 (class 8, Holm p ≤ 0.01)" in text  # 0.0733, the largest of the ten classes


def test_the_brief_report_names_no_class_where_calibration_is_not_rejected() -> None:
    assert "Largest" not in Audit(unremarkable()).brief()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["exact", "tally"])
def test_the_brief_report_names_the_worst_group(mode: str) -> None:
    # Both groups are overconfident, and "drift" is more so: right in 50 % and in 20 % of the rows that claim 90 %.
    day = np.repeat(["usual", "drift"], 500)
    y = np.concatenate([np.arange(500) % 2, np.arange(500) % 5 == 0]).astype(int)
    p = np.full(1000, 0.9) + np.arange(1000) % 7 / 1e6
    audit = to.audit(to.Predictions(y, p, group={"day": day}), mode=mode, resamples=199)
    (group,) = (group for group in audit.to_dict()["groups"] if group["label"] == "day=drift")
    low, high = (f"{group['interval'][end]:.3f}" for end in ("low", "high"))
    text = " ".join(audit.brief().split())
    assert f"Worst group ECE 0.700 (day=drift, 95 % confidence interval {low} to {high})" in text


def test_the_brief_report_says_why_no_recalibration_was_attempted() -> None:
    tally = to.tally(to.Predictions([0, 1] * 50, [0.5] * 100))
    text = " ".join(to.audit(tally, resamples=99).brief().split())
    assert text.endswith("Recalibration not attempted (a tally keeps no rows)")


@pytest.mark.slow
def test_a_notebook_shows_the_audit_with_notes_and_picture_and_leaves_the_page_alone() -> None:
    rng = np.random.default_rng(3)
    p = rng.random(300)
    y = (rng.random(300) < p**2).astype(int)
    preds = to.Predictions(y, p, classes=["<b>no</b>", "<script>yes</script>"])
    audit = to.audit(preds, resamples=99)
    html = audit._repr_html_()
    assert "<style" not in html
    assert "<script" not in html
    assert "&lt;script&gt;yes" in html
    assert html.count("<img ") == 1
    assert "data:image/svg+xml;base64," in html
    assert {note.code for note in audit.notes} <= set(re.findall(r"TN\d{3}", html))
    assert Audit(audit.facts)._repr_html_().count("<img ") == 0


def test_a_diagram_with_notes_shows_them_below_its_picture() -> None:
    rng = np.random.default_rng(3)
    p = rng.random(300)
    diagram = to.draw(to.Predictions((rng.random(300) < p).astype(int), p), "reliability")
    html = diagram._repr_html_()
    assert diagram.notes
    assert html is not None
    assert all(note.code in html for note in diagram.notes)
    assert "background:#fff" in html
