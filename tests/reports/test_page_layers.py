"""Does the page lead from the verdict to the evidence and to its methods, with links, numbers of bins and searches?"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.reports.example import PICTURES, example, unremarkable
from tests.reports.test_page import Read
from trueodds.data.predictions import Predictions
from trueodds.reports.audit import Audit, audit
from trueodds.reports.html import audit_page as page
from trueodds.reports.html.svg_pictures import bin_label, reliability_svg, select_bins


def _overconfident(k: int = 4, n: int = 500) -> Predictions:
    rng = np.random.default_rng(7)
    scores = rng.standard_normal((n, k))
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    P = np.exp(3 * scores)
    return Predictions(y, P / P.sum(axis=1, keepdims=True), classes=["Katze", "قطة", "猫", "cat"][:k])


@pytest.fixture(scope="module")
def report() -> Audit:
    return audit(_overconfident(), resamples=99)


@pytest.fixture(scope="module")
def html(report: Audit) -> str:
    return report.to_html()


def _with_id(html: str, name: str) -> str:
    """The page from the element with this id to the end of its section or figure."""
    return re.split(r"</section>|</figure>", html.split(f'id="{name}"')[1])[0]


def test_the_layers_are_what_it_means_the_evidence_and_how_it_was_made(html: str) -> None:
    assert html.index('id="meaning"') < html.index('id="evidence"') < html.index('id="made"')
    assert html.index('id="figure-main"') < html.index('class="tiles"') < html.index('id="evidence"')
    for layer in ("meaning", "evidence", "made"):
        assert f'<a href="#{layer}">' in html


def test_the_page_opens_with_the_recalibration_before_and_after(report: Audit, html: str) -> None:
    recalibration = report.to_dict()["recalibration"]
    assert recalibration["confirmed"]
    opening = _with_id(html, "figure-main")
    titles = re.findall(r'class="title">(.*?)</p>', opening)
    assert [title.split(":")[0] for title in titles] == ["Before", "After"]
    for time in ("before", "after"):
        table = recalibration["diagrams"][time]["table"]
        assert sum(table["n"]) == recalibration["diagrams"]["n"] == 500
        for row in select_bins(table):
            assert bin_label(row, ("confidence", "accuracy")) in opening


def test_the_rows_after_the_recalibration_are_those_whose_gain_was_tested(report: Audit) -> None:
    # Log loss cannot be recomputed from bins, but the mean confidence of cross-fitted predictions must be near the
    # accuracy, and that before it is the audit's own mean: all 500 rows were compared.
    facts = report.to_dict()
    before, after = (facts["recalibration"]["diagrams"][time]["panels"] for time in ("before", "after"))
    assert before["mean_prediction"][0] == pytest.approx(facts["data"]["mean_confidence"])
    assert before["outcome_rate"][0] == pytest.approx(facts["data"]["accuracy"])
    assert abs(after["mean_prediction"][0] - after["outcome_rate"][0]) < 0.05 < before["mean_prediction"][0] - 0.6


def test_without_a_confirmed_recalibration_the_page_opens_with_the_reliability_diagram() -> None:
    audit_facts = unremarkable()
    opening = _with_id(page.render_html(audit_facts), "figure-main")
    assert opening.count("<svg") == 1
    assert "Before" not in opening


def test_if_only_classes_reject_the_page_opens_with_the_worst_class() -> None:
    facts = example()
    facts["tests"][1]["pvalue"] = 0.4  # the test through the lens of the first diagram
    opening = _with_id(page.render_html(facts), "figure-main")
    assert 'data-view="0"' in opening  # the first view of the classwise diagram
    assert "largest error" in opening


def test_every_table_and_figure_has_an_id_and_a_link_to_it(html: str) -> None:
    tags = Read(html).tags
    ids = [attrs["id"] for _, attrs in tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = {attrs["href"] for tag, attrs in tags if tag == "a"}
    targets = [attrs["id"] for tag, attrs in tags if tag in ("table", "section", "figure") and "id" in attrs]
    assert len(targets) > 12
    assert {f"#{target}" for target in targets} <= links
    assert {link.removeprefix("#") for link in links} <= set(ids)
    assert all(attrs.get("id") for tag, attrs in tags if tag == "table")


def test_each_diagram_is_one_stop_of_the_tab_key_and_its_bins_have_names(html: str) -> None:
    pictures = re.findall(r'<svg class="rd"[^>]* role="group".*?</svg>', html, re.DOTALL)
    assert len(pictures) >= 7  # before, after, confidence, and four classes
    for picture in pictures:
        bins = re.findall(r'<g class="bin" role="img" tabindex="(-?\d)" aria-label="(.*?)">', picture)
        assert [tab for tab, _ in bins] == ["0", *["-1"] * (len(bins) - 1)]
        assert all(re.search(r"\d %.*\d rows?", name) for _, name in bins)


@pytest.mark.parametrize(("level", "text"), [(0.95, "95 %"), (0.99, "99 %")])
def test_the_key_of_the_diagrams_states_the_level_of_their_bars(level: float, text: str) -> None:
    html = audit([0, 1] * 50, [0.3, 0.6] * 50, level=level, resamples=99).to_html()
    assert f"each bin lies inside its bar with a probability of about {text}." in html.replace("\u00a0", " ")


def test_a_bin_outside_its_bar_has_another_shape() -> None:
    rows = [
        {"mean_prediction": 0.2, "outcome_rate": 0.9, "n": 5, "bar_low": 0.1, "bar_high": 0.3, "outside": True},
        {"mean_prediction": 0.5, "outcome_rate": 0.5, "n": 5, "bar_low": 0.1, "bar_high": 0.8, "outside": False},
    ]
    svg = reliability_svg(rows, "two <bins>")
    assert svg.count('<path class="outside"') == svg.count('<circle class="inside"') == 1
    assert 'aria-label="two &lt;bins&gt;"' in svg
    # x: 40 + 270 · .2 and 40 + 270 · .5; y: 280 − 270 · .9 and 280 − 270 · .5
    assert 'points="108,37 189,145"' in svg


def test_rare_events_get_axes_that_end_early() -> None:
    rows = [{"mean_prediction": 0.01, "outcome_rate": 0.02, "n": 5}]
    assert 'points="189,10"' in reliability_svg(rows, "rare")  # the axes end at 2 %


def test_classes_are_listed_worst_first_with_their_curves(html: str) -> None:
    table = _with_id(html, "table-classes").split("</table>")[0]
    errors = [float(x) for x in re.findall(r'data-label="error">([\d.]+)<', table)]
    assert errors == sorted(errors, reverse=True)
    assert table.count('<svg class="mini"') == 4
    assert 'data-tools="table-classes" data-filter="class"' in html


def test_names_from_right_to_left_are_isolated_from_the_text_around_them(html: str) -> None:
    assert re.search(r'<td class="l"[^>]*>\u2068قطة\u2069</td>', html)
    assert re.search(r'class="title">猫', html)


def test_the_methods_name_what_ran_and_cite_it(report: Audit, html: str) -> None:
    text = Read(_wrap(_with_id(html, "methods"))).words
    for phrase in (
        "500 rows of 4 classes",
        "15 bins of equal width",
        "99 draws of the null distribution",
        "omnibus test",
        "nested cross-validation (Stone 1974",
        "seed 0",
        report.to_dict()["data"]["fingerprint"],
        f"NumPy {np.__version__}",
        "Naeini, Cooper & Hauskrecht (2015).",
    ):
        assert phrase in text, phrase
    cited = set(re.findall(r"(\w+)(?: et al\.| &[^()]*?)? (?:19|20)\d\d", text.split("References")[0]))
    assert cited
    assert all(name in text.split("References")[1] for name in cited)


def _wrap(fragment: str) -> str:
    return f'<section id="x"{fragment}</section>'


def test_the_methods_follow_the_settings() -> None:
    facts = example()
    facts["data"]["clusters"], facts["settings"]["seed"] = 40, "generator"
    facts["recalibration"] |= {"confirmed": False, "outcome": "no gain"}
    words = Read(page.render_html(facts)).words
    assert "in 40 clusters of dependent rows" in words
    assert "No recalibration was confirmed: no significant gain." in words
    assert "a random generator without a seed" in words
    assert "2 groups of site were tested jointly by step-down min-p (Westfall & Young 1993)" in words


@pytest.mark.slow
def test_the_methods_name_the_intervals_of_the_groups() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(2, 5, 300)
    preds = Predictions((rng.random(300) < p).astype(int), p, group={"site": rng.integers(0, 2, 300)})
    words = Read(audit(preds, resamples=99).to_html()).words
    text = words[words.index("The intervals of each group, not adjusted for the number of groups, are ") :].split(". ")[
        0
    ]
    parts = [part.partition(" for ") for part in text.partition(" are ")[2].split("; ")]
    assert {names: method for method, _, names in parts} == {
        "the expected calibration error": "folded-normal bootstrap intervals",
        "O:E ratio": "bias-corrected and accelerated bootstrap intervals (Efron 1987)",
        "calibration slope": "normal (Wald) intervals",
    }


def test_the_same_rows_seed_and_version_give_the_same_bytes(html: str) -> None:
    assert audit(_overconfident(), resamples=99).to_html() == html


def test_the_fingerprint_depends_on_rows_and_not_on_how_they_are_stored() -> None:
    preds = _overconfident()
    from trueodds.reports.provenance import fingerprint_rows

    def fingerprint(y: Any, P: Any, **more: Any) -> str:
        return fingerprint_rows(Predictions(y, P, **more))

    expected = fingerprint(preds.y, preds.p)
    assert expected == fingerprint_rows(preds)  # names of classes are no part of a row
    assert expected == fingerprint(preds.y, np.asfortranarray(preds.p))
    assert expected == fingerprint(preds.y.astype(np.int8), preds.p)
    assert expected != fingerprint_rows(preds[::-1])
    assert expected != fingerprint(np.roll(preds.y, 1), preds.p)
    assert expected != fingerprint(preds.y, preds.p, weight=np.full(500, 2.0))
    site, patient = np.arange(500) % 3, np.arange(500) % 50
    of_groups = {fingerprint(preds.y, preds.p, group={name: site}) for name in ("site", "region")}
    of_clusters = {fingerprint(preds.y, preds.p, cluster=cluster) for cluster in (patient, site)}
    assert len({expected} | of_groups | of_clusters) == 5
    assert fingerprint(preds.y, preds.p, group={"site": site.astype(str)}) in of_groups


def test_the_fingerprint_of_many_blocks_is_that_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from trueodds.reports import provenance

    preds = _overconfident()
    expected = provenance.fingerprint_rows(preds)
    monkeypatch.setattr(provenance, "_VALUES_PER_BLOCK", 50)
    assert provenance.fingerprint_rows(preds) == expected


def test_no_picture_moves_or_repeats_an_id() -> None:
    html = page.render_html(example(), PICTURES)
    assert not re.search(r'<svg class="(rd|mini)"[^>]*>(?:(?!</svg>).)*\bid="', html, re.DOTALL)
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert style is not None
    assert not re.search(r"\b(animation|transition|scroll-behavior)\b", style[1])
    for query in ("prefers-color-scheme: dark", "forced-colors: active", "print"):
        assert f"@media ({query}" in style[1] or f"@media {query}" in style[1]
    assert "break-inside: avoid" in style[1]
    assert "table-header-group" in style[1]


def test_a_thousand_classes_make_less_than_one_and_a_half_megabytes() -> None:
    facts = example()
    names = [f"class number {i}" for i in range(1000)]
    facts["data"] |= {"k": 1000, "classes": names}
    part = {"statistic": 0.0123, "pvalue": 0.001, "holm": 0.01, "noise_floor": 0.0045}
    for test in facts["tests"]:
        if test["lens"] == "classwise":
            test["parts"] = {f"class:{name}": part for name in names}
    for measure in facts["measures"]:
        if measure["lens"] == "classwise":
            measure["parts"] = {f"class:{name}": 0.01 + i / 1e6 for i, name in enumerate(names)}
    facts["diagrams"] = [diagram for diagram in facts["diagrams"] if diagram["lens"] != "classwise"]
    html = page.render_html(facts, [None, PICTURES[0]])
    table = _with_id(html, "table-classes").split("</table>")[0]
    assert table.count("<tr") == 1001
    assert table.index("class number 999") < table.index("class number 0<")
    assert len(html.encode()) <= 1_500_000


@pytest.mark.slow
def test_ten_classes_make_less_than_six_hundred_kilobytes() -> None:
    rng = np.random.default_rng(1)
    P = rng.dirichlet(np.full(10, 0.4), 900)
    y = (P.cumsum(axis=1) < rng.random((900, 1))).sum(axis=1).clip(max=9)
    assert (
        len(audit(Predictions(y, P**2 / (P**2).sum(axis=1, keepdims=True)), resamples=99).to_html().encode()) <= 600_000
    )
