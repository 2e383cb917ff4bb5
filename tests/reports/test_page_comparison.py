"""Does the page of a comparison show every model, difference and setting, and is it as harmless as that of an audit?"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import trueodds as to
from tests.reports.test_page import Read, policy
from trueodds.cli import main
from trueodds.core.formatting import format_number
from trueodds.reports.comparison import comparison_page
from trueodds.reports.html.comparison import verdict_of_models

NAMES = ["calibrated", "<b>sharp</b>", "flat"]


def _models() -> dict[str, to.Predictions]:
    rng = np.random.default_rng(3)
    scores = rng.standard_normal((400, 3))
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    P = [np.exp(factor * scores) for factor in (1.0, 3.0, 0.3)]
    return {name: to.Predictions(y, p / p.sum(axis=1, keepdims=True)) for name, p in zip(NAMES, P, strict=True)}


@pytest.fixture(scope="module")
def ranking() -> to.Ranking:
    models = _models()
    return to.compare(list(models.values()), names=list(models))


@pytest.fixture(scope="module")
def html(ranking: to.Ranking) -> str:
    return comparison_page(ranking, _models())


def test_every_model_has_a_diagram_its_measures_and_every_pair_a_difference(ranking: to.Ranking, html: str) -> None:
    assert len(re.findall(r'<svg class="rd"', html)) == 3
    assert html.split('id="table-differences"')[1].split("</table>")[0].count("<tr>") == 1 + 3
    assert html.split('id="table-measures"')[1].split("</table>")[0].count("<tr>") == 1 + 9
    words = Read(html).words
    for pair in ranking.to_dict()["pairs"]:
        assert f"{pair['difference']:.4f}" in words
        assert f"{pair['interval']['low']:.4f}" in words


def test_the_heading_is_the_verdict(ranking: to.Ranking, html: str) -> None:
    facts = ranking.to_dict()
    heading = Read(re.search(r"<h1>.*?</h1>", html, re.DOTALL)[0]).words
    assert heading == verdict_of_models(facts)
    assert heading.startswith(f"By debiased l2, from the best to the worst: {', '.join(facts['order'])}.")


def test_two_models_name_the_better_one() -> None:
    models = dict(list(_models().items())[:2])
    comparison = to.compare(*models.values(), names=list(models))
    assert comparison.better == "calibrated"
    sentence = verdict_of_models(comparison.to_dict())
    assert sentence.startswith("calibrated is better by debiased l2: calibrated minus <b>sharp</b> is")
    assert format_number(comparison.difference) in sentence
    assert "95 % confidence interval [" in comparison_page(comparison, models).replace("\u00a0", " ")


def test_names_are_escaped_and_the_policy_is_that_of_the_audit(html: str) -> None:
    assert "<b>" not in html
    assert html.count("<script>") == html.count("<style>") == 1
    assert policy(html)["default-src"] == "'none'"
    tags = Read(html).tags
    ids = [attrs["id"] for _, attrs in tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {attrs["href"].removeprefix("#") for tag, attrs in tags if tag == "a"} <= set(ids)
    assert not re.search(r"https?:|@import|url\(", html)


def test_the_same_models_give_the_same_bytes(ranking: to.Ranking, html: str) -> None:
    assert comparison_page(ranking, _models()) == html


def test_the_command_writes_the_page_beside_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for i, preds in enumerate(_models().values()):
        rows = (",".join(map(str, [y, *map(float, p)])) for y, p in zip(preds.y, preds.p, strict=True))
        Path(f"m{i}.csv").write_text("\n".join(["label,p_0,p_1,p_2", *rows]) + "\n")
    result = CliRunner().invoke(main, ["compare", "m0.csv", "m1.csv", "m2.csv", "--html", "F.html", "--json", "F.json"])
    assert result.exit_code == 0, result.output
    words = Read(Path("F.html").read_text(encoding="utf-8")).words
    assert verdict_of_models(json.loads(Path("F.json").read_text())) in words
    assert "m0" in words
    refused = CliRunner().invoke(main, ["compare", "m0.csv", "m1.csv", "--html", "m0.csv"])
    assert refused.exit_code != 0
