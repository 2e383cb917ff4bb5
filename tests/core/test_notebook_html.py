"""Do fragments of HTML inherit the colors of a notebook, escape every text, and leave the page around them alone?"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from trueodds.core.errors import Note
from trueodds.core.notebook_html import (
    details_html,
    frame_html,
    notes_html,
    paragraph_html,
    picture_html,
    preformatted_html,
    result_html,
    table_html,
)
from trueodds.core.results import Estimate, Verdict

HOSTILE = "<script>alert('x')</script>&\"\x1b[31m"


class Tags(HTMLParser):
    """The tags of a fragment; unbalanced ones fail."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.names.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


FRAGMENTS = {
    "result": result_html(f"ece 0.1 · {HOSTILE}\n{HOSTILE}", [Note("TN105", HOSTILE)]),
    "paragraph": paragraph_html(HOSTILE, is_faint=True),
    "preformatted": preformatted_html(HOSTILE),
    "notes": notes_html([Note("TN105", HOSTILE)]),
    "table": table_html(("name", HOSTILE), [(HOSTILE, "0.1")], (False, True)),
    "details": details_html(HOSTILE, paragraph_html(HOSTILE)),
    "picture": picture_html("<svg/>", HOSTILE),
}


@pytest.mark.parametrize("name", FRAGMENTS)
def test_every_text_is_escaped_and_nothing_reaches_the_page(name: str) -> None:
    html = frame_html(FRAGMENTS[name])
    tags = Tags(html).names
    assert tags & {"script", "style", "link", "iframe", "html", "body"} == set()
    assert "\x1b" not in html
    assert "<script>" not in html
    assert re.findall(r"https?:", html) == []


@pytest.mark.parametrize("name", [name for name in FRAGMENTS if name != "picture"])
def test_text_takes_the_color_of_the_notebook(name: str) -> None:
    colors = re.findall(r"(?<![-\w])(?:color|background|background-color):([^;\"]+)", frame_html(FRAGMENTS[name]))
    assert colors
    assert set(colors) <= {"inherit", "transparent"}  # legible on white and on black alike


def test_a_picture_in_dark_ink_stands_on_a_white_card() -> None:
    assert "background:#fff" in FRAGMENTS["picture"]
    assert 'alt="&lt;script&gt;' in FRAGMENTS["picture"]


def test_a_result_shows_its_value_first_and_all_its_notes() -> None:
    estimate = Estimate("ece", "confidence", 0.25, 9, notes=(Note("TN105", "few <rows>"), Note("TN203", "b")))
    shown = Tags(estimate._repr_html_()).text
    assert shown.startswith("ece 0.25 · n=9")
    assert all(note.text in shown and note.code in shown for note in estimate.notes)
    assert "<strong>ece 0.25</strong>" in estimate._repr_html_()
    verdict = Verdict("consistency", "confidence", 0.1, 0.5, 9, "labels drawn")
    assert "<ul" not in verdict._repr_html_()
