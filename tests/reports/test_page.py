"""Is the page one harmless file that shows everything? Facts, escapes, hashes, size, what works without script."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from tests.reports.example import PICTURES, example, typed, unremarkable
from trueodds.core.formatting import format_decimals, format_error, format_number, format_pvalue, format_share
from trueodds.data.predictions import Predictions
from trueodds.reports.audit import audit
from trueodds.reports.html import audit_page as page
from trueodds.reports.text import diagram_tables

VOID = {"meta", "img", "br", "input", "link", "circle", "rect", "line"}


class Read(HTMLParser):
    """The tags, attributes and visible text of a page; tags must close in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).replace("\u00a0", " ").split())


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, dict):
        for item in value.values():
            yield from numbers(item)
    elif isinstance(value, list):
        for item in value:
            yield from numbers(item)
    else:
        yield value


def forms(x: float) -> set[str]:
    """The ways in which a number may be displayed."""
    texts = {
        format_number(x),
        format_decimals(x),
        format_share(x),
        f"{x:.1f} %",
        f"+{format_decimals(x)}",
        format_error(x),
        format_pvalue(x).split()[-1],
    }
    return texts | ({f"{x:,}"} if isinstance(x, int) else set())


def test_every_number_of_the_audit_is_on_the_page() -> None:
    audit = example()
    shown = set(re.findall(r"[+-]?[\d.,]*\d(?:e-?\d+)?(?: %)?", Read(page.render_html(audit, PICTURES)).words))
    bare = {text.removesuffix(" %").rstrip(".,") for text in shown} | shown
    missing = [x for x in numbers(audit) if not forms(x) & (bare | {text.rstrip(".,") for text in shown})]
    assert missing == []


def test_every_class_group_note_and_name_is_on_the_page() -> None:
    audit = example()
    words = Read(page.render_html(audit, PICTURES)).words
    for phrase in (
        audit["verdict"]["sentence"],
        "site=north",
        "site=south",
        "widest gap of site",
        "multicalibration error",
        "digits.parquet",
        "T = 0.38",
        "T = 0.38",
    ):
        assert phrase in words
    for note in [*audit["notes"], *audit["recalibration"]["notes"]]:
        assert note["text"] in words


def test_the_sentence_is_the_heading() -> None:
    html = page.render_html(example())
    heading = unescape(re.search(r"<h1>(.*?)</h1>", html, re.DOTALL)[1])
    assert heading.replace("\u00a0", " ") == example()["verdict"]["sentence"]


def test_a_line_of_the_heading_never_ends_within_a_number() -> None:
    heading = unescape(re.search(r"<h1>(.*?)</h1>", page.render_html(example()), re.DOTALL)[1])
    assert "p\u00a0≤\u00a00.001)" in heading
    assert not re.search(r"\d %", heading)


def test_the_tables_of_pictures_begin_with_what_is_read() -> None:
    audit = example()
    columns = "view bin low high n weight share mean_prediction outcome_rate deviation bar_low bar_high outside"
    audit["diagrams"][0]["table"] = {name: [0.5, 0.25] for name in columns.split()} | {"view": ["a", "a"], "n": [1, 2]}
    names = [column.name for column in diagram_tables.diagram_table(typed(audit).diagrams[0]).columns]
    assert names[:6] == ["predicted", "observed", "deviation", "bar low", "bar high", "n"]
    assert names[-4:] == ["low", "high", "share", "weight"]


def test_on_a_phone_each_cell_of_the_errors_has_its_heading() -> None:
    section = page.render_html(example()).split('id="error"')[1].split("</section>")[0]
    labels = [attrs.get("data-label") for tag, attrs in Read(f"<p>{section}</p>").tags if tag == "td"]
    assert {"error", "95 % interval", "noise floor", "p", "Holm p"} <= set(labels)
    assert 'class="box drawn stack"' in section


def policy(html: str) -> dict[str, str]:
    content = next(attrs["content"] for tag, attrs in Read(html).tags if attrs.get("http-equiv"))
    return dict(part.strip().split(" ", 1) for part in content.split(";"))


def test_the_policy_lets_in_the_style_and_the_script_by_their_hashes_and_nothing_else() -> None:
    html = page.render_html(example(), PICTURES)
    allowed = policy(html)
    assert allowed["default-src"] == "'none'"
    assert allowed["img-src"] == "data:"
    for tag in ("style", "script"):
        blocks = re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", html, re.DOTALL)
        assert len(blocks) == 1
        digest = base64.b64encode(sha256(blocks[0].encode()).digest()).decode()
        assert allowed[f"{tag}-src"] == f"'sha256-{digest}'"


def test_no_attribute_needs_more_than_the_policy_lets_in() -> None:
    for _, attrs in Read(page.render_html(example(), PICTURES)).tags:
        assert "style" not in attrs
        assert not [name for name in attrs if name.startswith("on")]


def test_nothing_is_loaded_from_outside() -> None:
    html = page.render_html(example(), PICTURES)
    assert not re.search(r"https?:|//[a-z]|@import|url\(", html.replace("// ", ""))
    for tag, attrs in Read(html).tags:
        assert tag not in {"link", "iframe", "object", "embed", "base", "form"}
        assert attrs.get("src", "data:").startswith("data:")
        assert attrs.get("href", "#").startswith("#")


def test_names_with_markup_or_template_code_are_harmless() -> None:
    evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{7*7}}{% raw %}"
    audit = example()
    audit["data"] |= {"source": evil, "classes": [evil] * 10, "group_columns": [evil], "resolution": evil}
    audit["verdict"] |= {"sentence": evil, "state": evil}
    audit["groups"][0] |= {"column": evil, "value": evil}
    audit["recalibration"]["map_text"] = evil
    audit["notes"].append({"code": "TN999", "text": evil})
    audit["settings"][evil] = evil
    for entry in audit["measures"]:
        entry["lens"] = evil
        entry["parts"] = {f"class:{evil}": 0.5}
    for entry in audit["diagrams"]:
        entry |= {"lens": evil, "diagram": evil}
        entry["table"] = {evil: [evil, 0.5], "view": [evil, "b"]}
        entry["panels"] = {"view": [evil], "finding": [evil], "n": [3]}
    html = page.render_html(audit, PICTURES)
    read = Read(html)
    assert [tag for tag, _ in read.tags].count("script") == 1
    assert not [tag for tag, attrs in read.tags if "onerror" in attrs]
    assert read.words.count("{{7*7}}") == read.words.count("alert(1)") > 5


def test_a_picture_is_an_image_with_a_text_for_those_who_cannot_see_it() -> None:
    html = page.render_html(example(), [None, None, PICTURES[0]])  # the page draws reliability diagrams itself
    (image,) = [attrs for tag, attrs in Read(html).tags if tag == "img"]
    assert base64.b64decode(image["src"].removeprefix("data:image/svg+xml;base64,")).decode() == PICTURES[0]
    assert "table" in image["alt"]
    assert len(image["alt"].split()) > 5


def test_without_script_everything_is_visible() -> None:
    hidden = [attrs for tag, attrs in Read(page.render_html(example(), PICTURES)).tags if "hidden" in attrs]
    # The choosers and the lines that show the numbers of a bin need the script; the tables have these numbers.
    assert {attrs.get("id", attrs.get("class")) for attrs in hidden} == {"choose", "readout"}
    assert "<details" not in page.render_html(example())
    assert "<button" not in page.render_html(example())  # none without effect


def test_the_script_finds_what_it_looks_for() -> None:
    tags = Read(page.render_html(example(), PICTURES)).tags
    lenses = {attrs["value"] for tag, attrs in tags if tag == "option"}
    assert {f"={attrs['data-lens']}" for tag, attrs in tags if "data-lens" in attrs} <= lenses
    tables = {attrs["id"] for tag, attrs in tags if tag == "table"}
    named = [attrs[name] for _, attrs in tags for name in ("data-table", "data-tools") if name in attrs]
    assert len(named) > 10
    assert set(named) <= tables


def test_the_marks_lie_where_the_numbers_say() -> None:
    # The largest number drawn is the upper end .2679 (canonical); .96 of the width is its place.
    html = page.render_html(example()).split('id="error"')[1].split("</section>")[0]
    assert 'cx="89.84%"' in html  # .2507 · .96 / .2679
    assert 'width="11.40%"' in html  # noise floor .0318 · .96 / .2679
    assert 'x1="85.68%" x2="94.06%"' in html  # .2391 and .2625


def test_ten_classes_make_less_than_a_megabyte() -> None:
    assert len(page.render_html(example(), PICTURES).encode()) < 200_000  # pictures are at most 300 kB each


@pytest.mark.slow
def test_people_come_first_where_there_are_votes() -> None:
    rng = np.random.default_rng(1)
    P = rng.dirichlet(np.ones(3), 60)
    report = audit(Predictions(rng.multinomial(5, P), P), resamples=39)
    html = page.render_html(report.to_dict())
    assert html.index('id="people"') < html.index('id="where"') < html.index('id="error"')
    assert "of the votes" in Read(html).words


def test_between_a_note_and_its_code_no_space_is_left_that_would_indent_its_first_line() -> None:
    html = page.render_html(example(), PICTURES)
    assert re.search(r"<li><code>TN\d+</code> <span>", html)
    assert ".notes li { display: grid" in html  # where a space between two cells takes no room


def test_an_audit_that_found_nothing_is_green() -> None:
    html = page.render_html(unremarkable())
    assert '<header class="good">' in html
    assert "no gain" in html


def test_long_tables_of_pictures_are_cut_and_counted() -> None:
    audit = example()
    audit["diagrams"][2]["table"] = {"theta": [0.5] * 2100}
    html = page.render_html(audit)
    assert "100 more rows are in the JSON." in html


def test_the_same_audit_gives_the_same_page() -> None:
    assert page.render_html(example(), PICTURES) == page.render_html(example(), PICTURES)


def _four(n: int = 400) -> Predictions:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(4), n)
    return Predictions((P.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1), P, classes=["<b>", "b", "c", "d"])


@pytest.mark.slow
def test_four_classes_turn_on_the_page_by_a_script_that_the_policy_names() -> None:
    text = audit(_four()).to_html()
    policy = re.search(r"script-src ([^;]*);", text)
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert policy is not None
    hashes = ["'sha256-" + base64.b64encode(sha256(script.encode()).digest()).decode() + "'" for script in scripts]
    assert policy[1].split() == hashes
    assert len(scripts) == 2
    assert text.count('data-turning="tetrahedron"') == 1
    assert "<b>" not in text.replace("&lt;b&gt;", "")


@pytest.mark.slow
def test_three_classes_are_seen_as_a_triangle() -> None:
    preds = _four()
    three = Predictions(np.minimum(preds.y, 2), np.c_[preds.P[:, :2], preds.P[:, 2:].sum(axis=1)])
    report = audit(three)
    assert [diagram["diagram"] for diagram in report.to_dict()["diagrams"]][-1] == "simplex"
    assert report.to_html().count("<script>") == 1
