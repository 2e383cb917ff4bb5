"""Is the model set beside the people fairly? Against votes, against majorities, row by row, and in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import softmax
from scipy.stats import binom

import trueodds as to
from tests import reference
from tests.reports.example import example, typed
from tests.reports.test_page import Read, forms
from tests.test_schemas import assert_valid
from trueodds.cli import main
from trueodds.core.errors import InputError
from trueodds.core.json_files import strict_json
from trueodds.data.predictions import Predictions
from trueodds.reports.audit_sections import AuditPeople
from trueodds.reports.html import audit_page as page
from trueodds.reports.text import terminal, vote_tables
from trueodds.reports.vote_comparison import VoteNullDistribution, compare_with_votes, select_furthest_rows


def crowd(n: int = 200, k: int = 3, votes: int = 20, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """What people think, and the votes of some of them."""
    rng = np.random.default_rng(seed)
    Q = rng.dirichlet(np.ones(k), n)
    return Q, rng.multinomial(votes, Q)


def section(preds: Any, alpha: float = 0.05, **settings: Any) -> tuple[Any, set[str]]:
    """The section alone, without the audit around it, and the codes of its notes."""
    measured = {name: [to.measure(preds, name, interval=None)] for name in ("ece", "log_loss")}
    facts: Any = SimpleNamespace(errors=measured["ece"], scores=measured["log_loss"])
    people, notes = compare_with_votes(preds, facts, alpha, 0.95, np.random.default_rng(0), lambda *_: None, **settings)
    return people, {note.code for note in notes}


def sharpened(Q: np.ndarray) -> np.ndarray:
    return np.asarray(Q**3 / (Q**3).sum(axis=1, keepdims=True))


@pytest.fixture(scope="module")
def audited() -> dict[str, Any]:
    """An audit of a model that is too sure, with a class whose name would be markup."""
    Q, votes = crowd()
    preds = Predictions(votes, sharpened(Q), classes=["yes", "<b>no</b>", "maybe"])
    return to.audit(preds, resamples=99).to_dict()


# Where there are votes, and where there are none


def test_labels_have_no_people() -> None:
    Q, votes = crowd()
    assert section(Predictions(votes.argmax(axis=1), Q)) == (None, set())
    assert vote_tables.summarize_distance(typed(example() | {"people": None})) is None


def test_a_tally_of_votes_says_that_it_has_no_rows_and_a_tally_of_labels_says_nothing() -> None:
    Q, votes = crowd()
    for outcome, noted in ((votes, True), (votes.argmax(axis=1), False)):
        assert section(to.tally(Predictions(outcome, Q))) == (None, {"TN161"} if noted else set())


def test_an_older_audit_without_the_section_is_shown_without_it() -> None:
    assert "people" not in example()
    for shown in (terminal.render_text(example()), page.render_html(example())):
        assert "Comparison with annotators" not in shown
        assert "vote noise floor" not in shown


# Against votes and against the majority


@pytest.mark.slow
def test_the_measures_are_those_requested_by_name(audited: dict[str, Any]) -> None:
    Q, votes = crowd()
    preds = Predictions(votes, sharpened(Q))
    measured = audited["people"]["measures"]
    queries = [("distce", {}), ("human_distance", {}), ("entce", {}), ("entce", {"signed": True}), ("rankcs", {})]
    for measure, (name, settings) in zip(measured, queries, strict=True):
        alone = to.measure(preds, name, **settings)
        assert measure["estimator"] == name
        assert measure["value"] == alone.value
        assert measure["noise_floor"] == pytest.approx(alone.noise_floor, rel=0.1, abs=1e-9)  # other draws
        assert measure["interval"]["low"] < measure["value"] < measure["interval"]["high"]
    parts = measured[1]["parts"]
    assert parts["order"] + parts["size"] == pytest.approx(measured[1]["value"])


@pytest.mark.slow
def test_what_is_held_against_all_votes_is_what_the_audit_measured(audited: dict[str, Any]) -> None:
    named = {(measure["estimator"], measure["lens"]): measure for measure in audited["measures"]}
    both = audited["people"]["distribution"]
    assert both["ece"] == named["ece", "confidence"]
    assert both["log_loss"] == named["log_loss", "canonical"]


def test_against_the_majority_by_hand() -> None:
    # Majorities 0, 1, and a tie of 0 and 1 that goes to 0; the model names 0, 0, 1: one of three.
    # Confidences .8, .6 and .6 against 1, 0 and 0;
    # bins (12/15, ..] and one of both .6: |.8 - 1|/3 + 2|.6 - 0|/3 = 7/15.
    P = [[0.8, 0.1, 0.1], [0.6, 0.3, 0.1], [0.2, 0.6, 0.2]]
    people, notes = section(Predictions([[3, 1, 0], [1, 2, 1], [2, 2, 0]], P))
    majority = people["majority"]
    assert majority["named"] == pytest.approx(1 / 3)
    assert majority["tied"] == 1
    assert majority["ece"]["value"] == pytest.approx(7 / 15)
    assert majority["log_loss"]["value"] == pytest.approx(-np.log([0.8, 0.3, 0.2]).mean())
    assert "TN160" in notes
    assert people["votes"] == {"median": 4.0, "min": 4, "max": 4}


@pytest.mark.slow
def test_a_model_that_is_right_about_people_looks_wrong_against_their_majority() -> None:
    # 6 of 10 people say 0: of 2,001 votes the majority is 0 but with probability 1e-19, so it is off by 1 - .6.
    rng = np.random.default_rng(0)
    votes = rng.multinomial(2001, [0.6, 0.4], size=50)
    people, _ = section(Predictions(votes, np.tile([0.6, 0.4], (50, 1))))
    assert people["majority"]["ece_if_right"] == pytest.approx(0.4)
    assert people["majority"]["ece"]["value"] == pytest.approx(0.4)
    assert people["distribution"]["ece"]["value"] < 0.01


@pytest.mark.slow
def test_chaosnli_against_its_majority_as_others_computed_it() -> None:
    # Accuracy and ECE against the majority of 100: the data's own README, computed when they were collected.
    z = reference.data("chaosnli_snli.npz")
    people, _ = section(Predictions(z["label_count"], softmax(z["logits_roberta_base_0"].astype(float), axis=1)))
    assert round(people["majority"]["named"], 4) == 0.7384
    assert round(people["majority"]["ece"]["value"], 4) == 0.1470
    assert people["votes"] == {"median": 100.0, "min": 100, "max": 100}


# Row by row


def test_the_distance_of_a_row_by_hand() -> None:
    # |P - V|² = .16 + .04 + .04; noise of ten votes (.25 + .25)/9.
    furthest_rows, _ = select_furthest_rows(Predictions([[5, 0, 5]], [[0.1, 0.2, 0.7]]), 0.05, np.random.default_rng(0))
    (row,) = furthest_rows["listed"]
    assert row["distance"] == pytest.approx(0.24 - 0.5 / 9)
    assert [row[name] for name in ("row", "model", "predicted", "people", "voted", "votes")] == [
        0,
        "2",
        0.7,
        "0",
        0.5,
        10,
    ]


def test_what_two_votes_reach_by_hand() -> None:
    # Two votes at 50 %: both for one class half of the time, then .5 + 0 noise; else 0 - .5/1.
    furthest_rows, _ = select_furthest_rows(Predictions([[2, 0]], [[0.5, 0.5]]), 0.05, np.random.default_rng(0))
    (row,) = furthest_rows["listed"]
    assert row["distance"] == row["critical_value"] == furthest_rows["limit"] == pytest.approx(0.5)
    assert furthest_rows["beyond"] == 0
    # hits are Binomial(999, 1/2): inside its 99.9 % range
    assert furthest_rows["draws"] == 999
    low, high = binom.ppf([0.0005, 0.9995], 999, 0.5)
    assert low <= row["pvalue"] * 1000 - 1 <= high


def test_the_rows_average_to_the_measure_and_stand_from_far_to_near() -> None:
    Q, votes = crowd(n=10)
    people, _ = section(Predictions(votes, sharpened(Q)))
    distances = [row["distance"] for row in people["rows"]["listed"]]
    assert np.mean(distances) == pytest.approx(people["measures"][1]["value"])
    assert distances == sorted(distances, reverse=True)
    assert sorted(row["row"] for row in people["rows"]["listed"]) == list(range(10))


@pytest.mark.slow
def test_a_row_whose_crowd_thinks_as_the_model_says_is_seldom_named() -> None:
    # Rows differ in sureness and in votes. Any row named in 200 data sets at 10 %: at most Binomial(200, .1), 99.9 %.
    rng = np.random.default_rng(7)
    named = 0
    for _ in range(200):
        P = rng.dirichlet([0.5, 0.5, 0.5], 12)
        furthest_rows, _ = select_furthest_rows(
            Predictions(rng.multinomial(rng.integers(2, 15, 12), P), P), 0.1, rng, n_draws=19
        )
        named += furthest_rows["beyond"] > 0
        assert (furthest_rows["beyond"] > 0) == (furthest_rows["listed"][0]["pvalue"] <= 0.1)
    assert binom.ppf(0.0005, 200, 0.1) <= named <= binom.ppf(0.9995, 200, 0.1)


def test_a_row_where_the_crowd_thinks_otherwise_is_named_and_first() -> None:
    Q, votes = crowd(n=300)
    votes[123] = [0, 0, 20]
    Q[123] = [0.9, 0.08, 0.02]
    furthest_rows, _ = select_furthest_rows(Predictions(votes, Q), 0.05, np.random.default_rng(0), n_draws=99)
    assert furthest_rows["listed"][0]["row"] == 123
    assert furthest_rows["listed"][0]["pvalue"] == 1 / (1 + furthest_rows["draws"])
    assert furthest_rows["beyond"] == 1
    assert furthest_rows["listed"][1]["pvalue"] > 0.05


def test_shares_without_counts_have_no_noise_and_no_p(audited: dict[str, Any]) -> None:
    Q, votes = crowd()
    people, notes = section(Predictions(votes / 20, Q))
    assert people["votes"] is people["rows"]["limit"] is people["rows"]["beyond"] is people["rows"]["draws"] is None
    assert {row["pvalue"] for row in people["rows"]["listed"]} == {None}
    assert people["majority"]["ece_if_right"] is None
    assert {"TN132", "TN140"} <= notes
    document = audited | {"people": strict_json(people)}
    assert "The number of annotators per row is unknown" in terminal.render_text(document)
    assert_valid(document, "audit")


def test_a_row_without_weight_is_not_listed() -> None:
    Q, votes = crowd(n=30)
    votes[4] = [0, 0, 20]
    Q[4] = [0.98, 0.01, 0.01]
    weight = np.ones(30)
    weight[4] = 0
    people, notes = section(Predictions(votes, Q, weight=weight))
    assert people["rows"]["n"] == 29
    assert people["rows"]["beyond"] == 0
    assert 4 not in [row["row"] for row in people["rows"]["listed"]]
    assert "TN162" in notes


@pytest.mark.slow
def test_copies_of_a_row_are_listed_once() -> None:
    Q, votes = crowd(n=30)
    preds = Predictions(votes, sharpened(Q), weight=np.full(30, 3))
    people, notes = section(preds.expand_frequencies(), has_repeated_rows=True)
    listed = [entry["row"] for entry in people["rows"]["listed"]]
    assert people["rows"]["n"] == 90
    assert "TN162" in notes
    assert [row % 3 for row in listed] == [0] * 10
    alone, notes = section(Predictions(votes, sharpened(Q)))
    assert [row // 3 for row in listed] == [entry["row"] for entry in alone["rows"]["listed"]]
    assert "TN162" not in notes


def test_rows_of_equal_shares_but_other_numbers_of_votes_are_no_copies() -> None:
    preds = Predictions([[5, 5], [50, 50], [9, 1]], [[0.9, 0.1]] * 3, weight=[2, 1, 1])
    people, _ = section(preds.expand_frequencies(), has_repeated_rows=True)
    assert sorted((row["row"], row["votes"]) for row in people["rows"]["listed"]) == [(0, 10), (2, 100), (3, 10)]


@pytest.mark.slow
def test_a_smaller_alpha_gets_as_many_draws_as_it_needs() -> None:
    Q, votes = crowd(n=4000, k=10, votes=5)
    furthest_rows, _ = select_furthest_rows(Predictions(votes, Q), 0.004, np.random.default_rng(0))
    assert furthest_rows["draws"] == 249
    assert 1 / (1 + furthest_rows["draws"]) == 0.004


# In words, in JSON and on the page


@pytest.mark.slow
def test_the_section_keeps_its_schema(audited: dict[str, Any]) -> None:
    assert_valid(audited, "audit")
    P = np.linspace(0.1, 0.9, 40)
    for preds in (Predictions(np.tile([[1, 2], [3, 1]], (20, 1)), P), Predictions([[1, 2]], [[0.0, 1.0]])):
        document = audited | {"people": strict_json(section(preds)[0])}  # the second with an infinite log loss
        assert_valid(document, "audit")
        assert "Comparison with annotators" in terminal.render_text(document)
        assert "Comparison with annotators" in page.render_html(document)
    assert "infinite" in terminal.render_text(document)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_section() -> None:
    Q, votes = crowd(n=60)
    once, second = (section(Predictions(votes, Q))[0] for _ in range(2))
    assert json.dumps(once) == json.dumps(second)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("power", "phrase"), [(3, "more confident than the annotators"), (0.3, "less confident than the annotators")]
)
def test_it_says_whether_the_model_is_more_confident_than_annotators(power: float, phrase: str) -> None:
    Q, votes = crowd()
    P = Q**power / (Q**power).sum(axis=1, keepdims=True)
    people, _ = section(Predictions(votes, P))
    audit = typed(example() | {"people": people})
    assert audit.people is not None
    assert f"On average the model is {phrase}." in vote_tables.describe_comparison(audit.people)
    value, remark = vote_tables.summarize_distance(audit) or ("", "")
    assert re.fullmatch(r"0\.\d+", value)
    assert phrase in remark


@pytest.mark.slow
def test_it_does_not_say_so_of_a_model_that_is_right() -> None:
    Q, votes = crowd()
    people = AuditPeople.from_dict(section(Predictions(votes, Q))[0])
    phrase = "neither significantly more nor significantly less confident"
    assert phrase in vote_tables.describe_comparison(people)


def numbers(people: dict[str, Any]) -> Iterator[float]:
    """Every number of the section but the settings of its measures."""
    majority, rows = people["majority"], people["rows"]
    yield from (majority["named"], majority["tied"], majority["ece_if_right"], rows["limit"], rows["beyond"], rows["n"])
    yield from (people["votes"]["min"],)
    for measure in (
        *people["measures"],
        *(people[side][name] for side in ("majority", "distribution") for name in ("ece", "log_loss")),
    ):
        yield from (
            measure["value"],
            measure["noise_floor"],
            measure["interval"]["low"],
            measure["interval"]["high"],
            measure["n"],
        )
    yield from (people["measures"][1]["parts"][name] for name in ("order", "size", "vote_noise"))
    for row in rows["listed"]:
        yield from (
            row[name] for name in ("row", "predicted", "voted", "votes", "distance", "critical_value", "pvalue")
        )


def test_every_number_is_on_the_page_and_in_the_terminal(audited: dict[str, Any]) -> None:
    assert audited["people"]["majority"]["tied"] > 0
    for words in (Read(page.render_html(audited)).words, terminal.render_text(audited)):
        shown = {number.rstrip(".,") for number in re.findall(r"[+-]?[\d.,]*\d(?:e-?\d+)?", words)}
        bare = {x: {form.removesuffix(" %") for form in forms(x)} for x in numbers(audited["people"])}
        assert [x for x, ways in bare.items() if not ways & shown] == []


def test_names_of_classes_are_escaped_on_the_page(audited: dict[str, Any]) -> None:
    html = page.render_html(audited)
    assert "<b>no" not in html
    assert "&lt;b&gt;no&lt;/b&gt;" in html


def test_the_words_are_explained_where_the_section_is(audited: dict[str, Any]) -> None:
    words = Read(page.render_html(audited)).words
    explained = words[words.index("Glossary") :]
    for term in (
        "votes",
        "vote noise floor",
        "total variation distance",
        "squared distance",
        "entropy difference",
        "rows ranked as by the votes",
    ):
        assert f"{term} " in explained
    assert "ranked as by the votes" not in Read(page.render_html(example())).words


# Votes that are none

BAD = [
    ([[3, 1], [-1, 4], [2, 2]], "-1.0 in row 1"),
    ([[3, 1], [0, 0], [2, 2]], "none in row 1"),
    ([[50, 0], [49.5, 0.5], [60, 0]], "49.5 in row 1"),
    ([[50, 0], [2.5, 1], [60, 0]], "3.5 in row 1"),
    ([[50, 0], [0.5, 0.5], [60, 0]], "shares in row 1"),
    ([[0.5, 0.5], [0.5, 0.4], [1, 0]], "0.9 in row 1"),
    ([[1, 1], [np.inf, 1], [1, 1]], "inf in row 1"),
    ([[1, 1], [1e308, 1e308], [1, 1]], "1e+308 in row 1"),
    ([[1, 1], [1e19, 0], [1, 1]], "1e+19 in row 1"),
]


@pytest.mark.parametrize(("votes", "got"), BAD, ids=[got for _, got in BAD])
def test_votes_that_are_none_are_refused_with_their_row(votes: Any, got: str, tmp_path: Path) -> None:
    P = [[0.6, 0.4]] * 3
    with pytest.raises(InputError, match=re.escape(got)) as refused:
        Predictions(votes, P)
    assert refused.value.code == "TO111"
    file = written(tmp_path, np.array(votes))
    ran = CliRunner().invoke(main, ["audit", file, "--votes", "v_*"])
    assert ran.exit_code == 2
    assert "TO111" in ran.stderr
    assert got in ran.stderr
    assert "Traceback" not in ran.output


def written(folder: Path, votes: np.ndarray) -> str:
    """A file of two probabilities and these votes."""
    lines = [",".join(["p_a", "p_b", *(f"v_{name}" for name in "abcd"[: votes.shape[1]])])]
    lines += [",".join(map(repr, [0.6, 0.4, *row.tolist()])) for row in votes]
    (folder / "votes.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(folder / "votes.csv")


def test_votes_of_the_wrong_width_are_refused(tmp_path: Path) -> None:
    votes = np.ones((3, 3), dtype=int)
    with pytest.raises(InputError, match="3 columns for 2 classes") as refused:
        Predictions(votes, [[0.6, 0.4]] * 3)
    assert refused.value.code == "TO111"
    ran = CliRunner().invoke(main, ["audit", written(tmp_path, votes), "--votes", "v_*"])
    assert (ran.exit_code, "TO313" in ran.stderr, "3 and 2" in ran.stderr) == (2, True, True)


@pytest.mark.slow
def test_the_command_shows_the_section(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    file = written(tmp_path, rng.multinomial(9, [0.6, 0.4], size=60))
    ran = CliRunner().invoke(main, ["audit", file, "--votes", "v_*", "--json", str(tmp_path / "a.json")])
    assert ran.exit_code == 0
    assert "Each row has the votes of 9 annotators." in " ".join(ran.output.split())
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["people"]["rows"]["n"] == 60


@pytest.mark.parametrize(("n_draws", "level"), [(98, 0.05), (99, 0.05), (199, 0.05), (999, 0.01)])
def test_a_distance_beyond_the_critical_value_is_significant_and_the_value_itself_is_not(n_draws, level):
    draws = np.random.default_rng(0).permutation(n_draws) / n_draws
    null = VoteNullDistribution(draws[:, None], draws, {})
    critical = null.critical_value(draws, level)
    assert null.pvalue(critical) > level
    assert null.pvalue(critical + 0.5 / n_draws) <= level
