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
from trueodds.core.errors import InputError
from trueodds.core.formatting import format_number
from trueodds.reports.html.comparison_page import comparison_page, verdict_of_models

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
    assert html.split('id="table-differences"')[1].split("</table>")[0].count("<tr") == 1 + 3
    assert html.split('id="table-measures"')[1].split("</table>")[0].count("<tr") == 1 + 9
    words = Read(html).words
    for pair in ranking.to_dict()["pairs"]:
        assert f"{pair['difference']:.4f}" in words
        assert f"{pair['interval']['low']:.4f}" in words


def test_the_heading_is_the_verdict(ranking: to.Ranking, html: str) -> None:
    heading = Read(re.search(r"<h1>.*?</h1>", html, re.DOTALL)[0]).words
    assert heading == verdict_of_models(ranking)
    assert heading.startswith(f"By debiased l2, from the best to the worst: {', '.join(ranking.order)}.")


def test_two_models_name_the_better_one() -> None:
    models = dict(list(_models().items())[:2])
    comparison = to.compare(*models.values(), names=list(models))
    assert comparison.better == "calibrated"
    sentence = verdict_of_models(comparison)
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
        Path(f"m{i}.csv").write_text("\n".join(["label,p_0,p_1,p_2", *rows]) + "\n", encoding="utf-8")
    result = CliRunner().invoke(main, ["compare", "m0.csv", "m1.csv", "m2.csv", "--html", "F.html", "--json", "F.json"])
    assert result.exit_code == 0, result.output
    words = Read(Path("F.html").read_text(encoding="utf-8")).words
    order = ", ".join(json.loads(Path("F.json").read_text(encoding="utf-8"))["order"])
    assert f"By debiased l2, from the best to the worst: {order}." in words
    assert "m0" in words
    refused = CliRunner().invoke(main, ["compare", "m0.csv", "m1.csv", "--html", "m0.csv"])
    assert refused.exit_code != 0


def _table(html: str, name: str) -> str:
    """The words of a table of the page."""
    return Read(html.split(f'id="table-{name}"')[1].split("</table>")[0]).words


def test_the_measures_have_the_level_bins_and_lens_of_the_comparison() -> None:
    models = dict(list(_models().items())[:2])
    a, b = models.values()
    settings = {"lens": "classwise", "bins": 7, "level": 0.8, "resamples": 300}
    comparison = to.compare(a, b, "ece", names=list(models), **settings)
    html = comparison.to_html(models)
    measures = _table(html, "measures")
    assert "80 % interval" in measures.replace("\u00a0", " ")
    assert "80 % interval" in _table(html, "compared").replace("\u00a0", " ")
    assert "80 % interval" in _table(html, "differences").replace("\u00a0", " ")
    assert "uniform 7" in measures
    assert "uniform 15" not in html
    for name, estimate in comparison.models.items():  # the estimates of the comparison, not others
        limits = f"[{estimate.interval.low:.4f}, {estimate.interval.high:.4f}]"
        assert limits in measures, name
    brier = to.measure(a, "brier", level=0.8, resamples=300)
    assert f"[{brier.interval.low:.4f}, {brier.interval.high:.4f}]" in measures
    by_other_error = to.compare(a, b, "debiased_l2", names=list(models), bins=7, resamples=300).to_html(models)
    ece = to.measure(a, "ece", bins=7, resamples=300)
    assert f"[{ece.interval.low:.4f}, {ece.interval.high:.4f}]" in _table(by_other_error, "measures")


def test_a_model_with_infinite_log_loss_is_named_with_the_reason() -> None:
    y = np.arange(200) % 2
    good, zero = np.where(y, 0.7, 0.3), np.where(np.arange(200) < 3, 1.0 - y, np.where(y, 0.9, 0.1))
    models = {"good": (y, good), "zero": (y, zero)}
    html = to.compare(models["good"], models["zero"], "log_loss", names=list(models)).to_html(models)
    heading = Read(re.search(r"<h1>.*?</h1>", html, re.DOTALL)[0]).words.replace("\u00a0", " ")
    assert heading.startswith("zero has infinite log loss (3 observed outcomes had predicted probability 0)")
    assert "that of good is 0.3567" in heading
    assert "–" not in heading
    assert "∞" in _table(html, "compared")
    assert "∞" in _table(html, "measures")
    ranking = to.compare({**models, "again": (y, zero)}, "log_loss").to_html({**models, "again": (y, zero)})
    assert "zero has infinite log loss (3 observed outcomes" in Read(ranking).words
    both = to.compare((y, zero), (y, zero), "log_loss")
    assert verdict_of_models(both).startswith("a has infinite log loss")
    assert "b has infinite log loss" in verdict_of_models(both)


def test_the_heading_of_a_measure_with_a_target_speaks_of_the_distance() -> None:
    y = np.arange(200) % 2
    models = {"a": (y, np.full(200, 0.55)), "b": (y, np.full(200, 0.3))}
    comparison = to.compare(models["a"], models["b"], "o_e", resamples=300)
    assert verdict_of_models(comparison).startswith("a is better by o e: the distance from 1 of a minus that of b is -")
    assert (
        "Difference: distance from 1 of the first model minus distance from 1 of the second."
        in Read(comparison.to_html(models)).words
    )


def test_the_page_accepts_only_the_models_that_were_compared(tmp_path: Path) -> None:
    models = dict(list(_models().items())[:2])
    a, b = models.values()
    comparison = to.compare(a, b, "brier", rng=np.random.default_rng(1), resamples=200)
    html = comparison.to_html([a, b], tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == html
    assert "Generator(" not in html
    assert comparison.to_html({"b": b, "a": a}) == html
    for wrong in ([a], [a, b, b], {"zzz": a}, {"a": a, "zzz": b}, a, {"a": a, "b": b[:50]}):
        with pytest.raises(InputError, match="The page needs the models of this comparison") as error:
            comparison.to_html(wrong)
        assert error.value.code == "TO205"
