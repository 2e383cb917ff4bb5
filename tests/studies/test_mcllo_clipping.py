"""Does the study of zeros change what it says it changes, and are its forests what they are said to be?"""

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from tests import reference
from trueodds.cli import main
from trueodds.hypotests._glm.mcllo_likelihood import MclloModel, mcllo_statistics
from trueodds.lenses.view import View
from trueodds_studies.mcllo_clipping import (
    MIN_PROBS,
    ROW_SUBSETS,
    Cell,
    Plan,
    SimulatedForest,
    ZeroReplacement,
    forest_row,
    has_no_votes,
    mcllo_clipping,
    measure_cell,
    summarize,
    zero_replacements,
)

SMALL = Plan(sets=2, rows=120, missed=2, resamples=99, redraws=19)
OF = {
    "clip_2.2e-16": ZeroReplacement("min_prob", MIN_PROBS[0]),
    "clip_1e-12": ZeroReplacement("min_prob", 1e-12),
    "clip_1e-08": ZeroReplacement("min_prob", 1e-8),
    "clip_1e-06": ZeroReplacement("min_prob", 1e-6),
    "clip_0.0001": ZeroReplacement("min_prob", 1e-4),
    "clip_0.001": ZeroReplacement("min_prob", 1e-3),
    "clip_0.025": ZeroReplacement("min_prob", 0.025),
    "votes_plus_half": ZeroReplacement("votes", 0.5),
    "votes_plus_1/K": ZeroReplacement("votes", 1 / 3),
    "votes_plus_1": ZeroReplacement("votes", 1.0),
    "mix_1/(n+1)": ZeroReplacement("mixture"),
}


# Stand-ins


def test_stand_ins_worked_by_hand():
    votes = np.array([[3, 1, 0], [2, 2, 0]])
    # (3, 1, 0) + 1/2 each over 5.5; shares (.75, .25, 0) with 0 → .25 over 1.25; 2/3 of them and 1/3 of thirds.
    assert ZeroReplacement("votes", 0.5).replace_zeros(votes)[0] == pytest.approx([3.5 / 5.5, 1.5 / 5.5, 0.5 / 5.5])
    assert ZeroReplacement("min_prob", 0.25).replace_zeros(votes)[0] == pytest.approx([0.6, 0.2, 0.2])
    assert ZeroReplacement("mixture").replace_zeros(votes)[0] == pytest.approx([0.5 + 1 / 9, 1 / 6 + 1 / 9, 1 / 9])
    assert has_no_votes(votes, np.array([2, 0])).tolist() == [True, False]


@pytest.mark.reference
@pytest.mark.parametrize("name", OF)
@pytest.mark.parametrize("baseline", [0, 1, 2])
def test_the_test_gives_the_reference_numbers_at_every_stand_in_and_baseline(name, baseline):
    # mcllo_zeros.json: an independent program's fits by BFGS, to some 1e-8.
    table, known = (
        reference.frame("recalibration/multi3_votes.csv"),
        reference.golden("recalibration/mcllo_zeros.json")[name],
    )
    votes, y = reference.columns(table, "v"), table["y"].astype(int)
    assert ((votes == 0).any(axis=1).sum(), has_no_votes(votes.astype(int), y).sum()) == (117, 5)
    odds = MclloModel.from_view(View(p=OF[name].replace_zeros(votes), y=np.eye(3)[y]), baseline, 0.0, "mcllo")
    published = known["by_base"][baseline]
    assert odds.identity_likelihood.value == pytest.approx(known["nll_null"], rel=1e-9)
    assert odds.mle.converged
    assert odds.mle.likelihood.value == pytest.approx(published["nll"], rel=1e-9)
    assert mcllo_statistics(odds)["likelihood-ratio"] == pytest.approx(published["lrt"], rel=1e-6)
    assert odds.mle.theta[::2] == pytest.approx(published["gamma"], rel=1e-6)
    assert np.exp(odds.mle.theta[1::2]) == pytest.approx(published["delta"], rel=1e-6)
    assert odds.covariance is not None
    assert np.sqrt(odds.covariance.diagonal()[1::2]) == pytest.approx(published["se_tau"], rel=1e-6)


@pytest.mark.reference
def test_the_row_of_a_stand_in_is_that_of_the_reference_forest():
    table, known = reference.frame("recalibration/multi3_votes.csv"), reference.golden("recalibration/mcllo_zeros.json")
    votes, y = reference.columns(table, "v").astype(int), table["y"].astype(int)
    rows = {
        replacement: forest_row(votes, y, Cell(replacement, ROW_SUBSETS[0]), SMALL)
        for replacement in zero_replacements()
    }
    for name, replacement in OF.items():
        if replacement in rows:
            bases = [entry["lrt"] for entry in known[name]["by_base"]]
            row = rows[replacement]
            assert (row["lrt_low"], row["lrt"], row["lrt_high"]) == pytest.approx(
                (min(bases), bases[2], max(bases)), rel=1e-6
            )
            assert (row["gamma_1"], row["gamma_2"]) == pytest.approx(
                tuple(known[name]["by_base"][2]["gamma"]), rel=1e-6
            )
    verdicts = [rows[ZeroReplacement("min_prob", min_prob)]["verdict"] for min_prob in (MIN_PROBS[0], 1e-6, 1e-4)]
    assert verdicts == ["rejected", "rejected", "not rejected"]
    # Labels drawn from shares of votes never are what had no votes: an outcome that came so beats every draw.
    assert rows[ZeroReplacement("min_prob", 1e-6)]["p_zeros_impossible"] == 1 / 100


# Forests


def test_in_a_forest_votes_and_a_half_are_exactly_right():
    # The mean of 40,000 residuals, weighed by anything that is known beforehand, is within 4 standard errors of 0.
    votes, y = SimulatedForest(40_000).rows(np.random.default_rng(0))
    P = ZeroReplacement("votes", 0.5).replace_zeros(votes)
    gap = np.eye(3)[y] - P
    for weighed in (gap, gap * P, gap * (votes == 0)):
        assert (np.abs(weighed.mean(axis=0)) < 4 * weighed.std(axis=0) / 200).all()
    # What had no votes comes in 1/2 of 21.5 cases.
    never = votes == 0
    share, count = never[np.arange(len(y)), y].sum() / never.sum(), never.sum()
    assert abs(share - 1 / 43) < 4 * np.sqrt(1 / 43 / count)


def test_without_outcomes_that_had_no_votes_the_floor_hardly_matters():
    votes, y = SMALL.find_shown_forest()
    assert has_no_votes(votes, y).sum() >= SMALL.missed
    tiny, large = ZeroReplacement("min_prob", MIN_PROBS[0]), ZeroReplacement("min_prob", 1e-3)
    every = [forest_row(votes, y, Cell(replacement, ROW_SUBSETS[0]), SMALL)["lrt"] for replacement in (tiny, large)]
    without = [forest_row(votes, y, Cell(replacement, ROW_SUBSETS[1]), SMALL) for replacement in (tiny, large)]
    # Each such outcome costs the identity the log of the floor:
    # 29 nats from 1e-3 to 2e-16, that the slopes earn back in part.
    assert every[0] - every[1] > 10
    assert abs(without[0]["lrt"] - without[1]["lrt"]) < 2
    assert without[0]["n"] == SMALL.rows - has_no_votes(votes, y).sum()


@pytest.mark.slow
def test_votes_and_a_half_are_rejected_at_the_level():
    # Exact where labels are redrawn: of 100 forests Binomial(100, .05) are rejected,
    # more than 13 in 1 of 2,000 studies.
    row = measure_cell(Cell(ZeroReplacement("votes", 0.5), ROW_SUBSETS[0]), Plan(sets=100, redraws=19))
    assert round(100 * row["redrawn"]) <= 13
    assert row["verdict"] == "keeps level"
    assert (
        measure_cell(Cell(ZeroReplacement("min_prob", MIN_PROBS[0]), ROW_SUBSETS[0]), Plan(sets=10, redraws=19))[
            "verdict"
        ]
        == ""
    )


# The study


@pytest.mark.slow
def test_the_study_tells_every_stand_in_with_and_without():
    study = mcllo_clipping(plan=SMALL)
    assert [(row["rows"], row["replacement"]) for row in study.rows] == [
        (kind, replacement.name) for kind in ROW_SUBSETS for replacement in zero_replacements()
    ]
    (many,) = study.also
    assert [row["replacement"] for row in many.rows] == [replacement.name for replacement in zero_replacements()]
    assert [row["verdict"] != "" for row in many.rows].count(True) == 1
    assert "{" not in study.legend + many.legend


@pytest.mark.parametrize(
    ("pvalues", "words"),
    [
        (
            (0.01, 0.01, 0.5),
            "the replacement decides the result, 2 of 3 reject, and the likelihood ratio falls from 30.00 to 20.00",
        ),
        ((0.01, 0.02, 0.03), "every replacement rejects, and"),
        ((0.1, 0.2, 0.3), "no replacement rejects, and"),
    ],
)
def test_who_decides_is_what_the_verdicts_say(pvalues, words):
    names, ratios = ("min_prob 2.2e-16", "min_prob 0.001", "votes + 0.5"), (30.0, 20.0, 1.0)
    rows = [
        {"rows": kind, "replacement": name, "lrt": lrt, "p": p}
        for kind in ROW_SUBSETS
        for name, lrt, p in zip(names, ratios, pvalues, strict=True)
    ]
    many = [
        {"replacement": name, "lrt": 0.5, "redrawn": 0.5, "verdict": "keeps level" * (name == names[2])}
        for name in names
    ]
    text = summarize(rows, many)
    assert text.startswith(f"One forest: {words}")
    assert f". Without the rows whose observed class had no votes, {words}" in text


def test_another_seed_gives_other_forests_and_the_same_seed_the_same():
    (votes, y), (repeat, _), (other, _) = (replace(SMALL, seed=seed).find_shown_forest() for seed in (0, 0, 1))
    assert (votes == repeat).all()
    assert (votes != other).any()
    cell = Cell(ZeroReplacement("votes", 0.5), ROW_SUBSETS[0])
    assert forest_row(votes, y, cell, SMALL) == forest_row(votes, y, cell, SMALL)


@pytest.mark.slow
def test_the_command_line_keeps_tables_and_picture(tmp_path, monkeypatch):
    monkeypatch.setattr("trueodds_studies.mcllo_clipping.QUICK", SMALL)
    ran = CliRunner().invoke(
        main, ["study", "mcllo_clipping", "--quick", "--out", str(tmp_path)], standalone_mode=False
    )
    assert "as the smallest probability increases from 2.2e-16 to 0.001" in ran.output
    files = {file.name for file in tmp_path.iterdir()}
    assert {"mcllo_clipping.csv", "mcllo_clipping.md", "mcllo_clipping.many.md", "mcllo_clipping.svg"} <= files
    assert ET.parse(tmp_path / "mcllo_clipping.svg").getroot().tag.endswith("svg")
