"""Do the studies of levels measure what they say, stop and go on, and judge every test in every form?"""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import trueodds as to
from tests import reference
from trueodds.cli import main
from trueodds.cli.study import installed_studies
from trueodds.hypotests import TESTS
from trueodds_studies.common.rejection_rates import (
    add_verdicts,
    clopper_pearson,
    exceeds_level,
    size_verdict,
    summarize_by_test,
    summarize_sizes,
)
from trueodds_studies.common.simulated_worlds import CALIBRATED_WORLDS, MISCALIBRATIONS
from trueodds_studies.insert_tables import insert_table
from trueodds_studies.level import (
    COSTLY_FORMS,
    EXTRA_FORMS,
    Cell,
    HypothesisForm,
    Plan,
    SimulatedPValues,
    hypothesis_forms,
    level,
    level_cells,
    measure_cell,
    simulate_pvalues,
)
from trueodds_studies.uniform import Plan as UniformPlan
from trueodds_studies.uniform import kolmogorov_pvalue, randomize_pvalues, uniform, uniform_distances

SMALL = Plan(sets=3, asymptotic_sets=4, powered=2, rows=(30,), worlds=("sure", "sharp 3"), resamples=19)
ROW = {
    "test": "t", "null": "asymptotic", "design": "rare", "n": 30, "sets": 1000, "noted": 0.0, "undefined": 0.0,
    "size5": 0.05, "low5": 0.03, "high5": 0.07, "size1": 0.01, "low1": 0.0, "high1": 0.02,
    "unnoted5": 0.05, "unnoted1": 0.01, "power_overconfident": 0.5, "power_shift": 0.25,
}  # fmt: skip


# Worlds


@pytest.mark.parametrize("world", CALIBRATED_WORLDS, ids=lambda world: world.name)
def test_outcomes_come_as_the_world_says(world):
    for name, how in [("", {}), *MISCALIBRATIONS.items()]:
        miscalibrated = world.miscalibrated(name, **how)
        rows = miscalibrated.rows(np.random.default_rng(0), 20_000)
        r = miscalibrated.true_probs(rows.P.copy())
        gap = np.eye(world.k)[rows.y] - r
        # The mean of 20,000 gaps is within four standard errors, weighed by anything known beforehand.
        for weighed in (gap, gap * rows.P):
            assert (np.abs(weighed.mean(axis=0)) < 4 * weighed.std(axis=0) / np.sqrt(rows.n) + 1e-12).all()
        assert miscalibrated.calibrated == (how == {})


def test_a_distorted_world_has_the_truth_worked_by_hand():
    # Odds of 3 to 1 to the power of 0.7 are 3^0.7; odds of 1 to 3 times 1.5 are 1 to 2.
    world, P = CALIBRATED_WORLDS[0], np.array([[0.25, 0.75], [0.75, 0.25]])
    assert world.miscalibrated("", power=0.7).true_probs(P)[0, 1] == pytest.approx(3**0.7 / (1 + 3**0.7))
    assert world.miscalibrated("", odds=1.5).true_probs(P)[1, 1] == pytest.approx(1 / 3)


def test_the_whole_world_holds_the_true_probabilities():
    world = next(world for world in CALIBRATED_WORLDS if world.k == 3).miscalibrated("shift", odds=1.5)
    population = world.population(100)
    assert np.allclose(population.Y, world.true_probs(population.P))
    assert (population.Y[:, 2] > population.P[:, 2]).all()


# Rates


def test_limits_of_a_rate_are_those_of_clopper_and_pearson():
    # 5 of 10 at 95 %: 0.1871, 0.8129 in every table of them.
    assert clopper_pearson(5, 10, 0.95) == pytest.approx((0.1871, 0.8129), abs=5e-5)
    for hits, sets in ((0, 20), (20, 20), (31, 400)):
        exact = stats.binomtest(hits, sets).proportion_ci(0.99, "exact")
        assert clopper_pearson(hits, sets) == pytest.approx(tuple(exact), abs=1e-12)


def test_a_rate_is_above_its_level_more_rarely_the_more_rates_there_are():
    # 35 of 400: P(Binomial(400, 0.05) ≥ 35) = 0.00125, below 0.005 but not below 0.005/10.
    assert exceeds_level(35, 400, 0.05)
    assert not exceeds_level(35, 400, 0.05, rates=10)
    assert not exceeds_level(0, 0, 0.05)


def test_distances_from_the_uniform_law_worked_by_hand():
    # The distribution function of (0.1, 0.2) is 1 at 0.2, 0.8 above; at 0.1 it was still 0, 0.1 below.
    assert uniform_distances([0.2, 0.1]) == pytest.approx((0.8, 0.1))
    assert kolmogorov_pvalue(2, 0.8, sides=1) == pytest.approx(stats.ksone.sf(0.8, 2))
    assert kolmogorov_pvalue(400, 0.1) == pytest.approx(stats.kstwo.sf(0.1, 400), rel=1e-6)


def test_p_values_on_their_grid_are_uniform_once_spread_out():
    p = np.random.default_rng(0).integers(1, 21, 4000) / 20
    assert kolmogorov_pvalue(4000, max(uniform_distances(p))) < 1e-3
    # Uniform by construction: rejected with probability 1e-3.
    assert kolmogorov_pvalue(4000, max(uniform_distances(randomize_pvalues(p, 19, np.random.default_rng(1))))) > 1e-3


# Forms


def test_every_null_law_that_a_test_offers_is_measured():
    assert {form.null for form in hypothesis_forms("spiegelhalter")} == {"asymptotic", "redraw"}
    assert hypothesis_forms("consistency")[0].null == "redraw"
    for name in TESTS.names():
        nulls = [form.null for form in hypothesis_forms(name) if not form.variant]
        assert set(nulls) == set(TESTS.load(name).null_distributions or ("redraw",))
        assert len(set(nulls)) == len(nulls)


def test_the_tables_of_special_forms_are_of_members():
    assert set(EXTRA_FORMS) <= set(TESTS.names())
    assert all(null in {form.null for form in hypothesis_forms(name)} for name, null in COSTLY_FORMS)


@pytest.mark.slow
@pytest.mark.parametrize("name", TESTS.names())
def test_every_form_answers_in_every_world_that_it_fits(name):
    plan = Plan(sets=2, asymptotic_sets=2, powered=1, rows=(30,), resamples=9)
    for cell in level_cells(plan, [name]):
        row = measure_cell(cell, plan)
        assert row["undefined"] < 1, cell.key
        assert 0 <= row["size1"] <= row["size5"] <= 1


def test_slow_forms_get_a_share_of_the_data_sets():
    assert [HypothesisForm("ece", "redraw", slow_from=100).count_sets(n, 200) for n in (30, 100)] == [200, 40]


def test_vectors_are_seen_whole_where_the_test_takes_them():
    assert [form.lens_name(3) for form in hypothesis_forms("consistency")[:2]] == ["canonical", "confidence"]
    assert hypothesis_forms("spiegelhalter")[0].lens_name(3) == "confidence"
    assert hypothesis_forms("spiegelhalter")[0].lens_name(2) == "positive"


# Verdicts


def test_a_cell_is_classified_by_its_lower_limit():
    assert size_verdict(ROW, 2) == "keeps"
    assert size_verdict({**ROW, "size5": 0.08, "unnoted5": 0.08}, 2) == "exceeds"
    assert size_verdict({**ROW, "size5": 0.08, "unnoted5": 0.08}, 10**6) == "keeps"
    assert size_verdict({**ROW, "size1": 0.03, "unnoted1": 0.03}, 2) == "exceeds"
    assert size_verdict({**ROW, "undefined": 1.0, "size5": 0.0}, 2) == "undefined"


def test_a_note_counts_only_where_most_rejections_carry_it_and_the_others_keep_the_level():
    # 200 of 1,000 rejected. Half of the sets are noted; of the 500 silent ones 5 % are 25 rejections, 30 % are 150.
    noted = {**ROW, "size5": 0.2, "noted": 0.5}
    assert size_verdict({**noted, "unnoted5": 0.05}, 2) == "exceeds, noted"
    assert size_verdict({**noted, "unnoted5": 0.3}, 2) == "exceeds"
    assert size_verdict({**ROW, "size5": 0.2, "noted": 1.0, "unnoted5": None, "unnoted1": None}, 2) == "exceeds, noted"


def test_the_sentence_and_the_table_by_test_count_what_the_rows_say():
    rows = add_verdicts(
        [ROW, {**ROW, "size5": 0.2, "low5": 0.17, "unnoted5": 0.2, "n": 100}, {**ROW, "null": "redraw", "test": "r"}]
    )
    text = summarize_sizes(rows)
    assert "in 0 of 1 cells" in text
    assert "the test rejects 5.0 % at the 5 % level, not above it by more than Monte Carlo error." in text
    assert "in 1 of 2 cells" in text
    first, second = summarize_by_test(rows)
    # 50 + 200 of 2,000.
    assert first["size at 5 %"].startswith("12.5 %")
    assert first["largest at 5 %"] == "20.0 % [17.0 %, 7.0 %] rare, n = 100"
    assert (first["exceeds, noted"], first["exceeds, not noted"], second["exceeds, not noted"]) == (0, 1, 0)
    assert first["power: shift"] == "25.0 % … 25.0 %"


def test_an_undefined_p_value_rejects_nothing():
    result = SimulatedPValues(np.array([0.01, np.nan, 0.05, 0.2]), np.array([True, True, False, False]))
    assert (
        result.count_rejections(0.05),
        result.count_rejections(0.05, ~result.doubted),
        result.rejection_rate(0.01),
    ) == (2, 1, 0.25)


# The studies


@pytest.mark.slow
@pytest.mark.reference
@pytest.mark.parametrize("name", ["spiegelhalter", "hosmer_lemeshow"])
def test_sizes_are_those_of_an_independent_simulation(name):
    # type1_simulation.json: another program's 1,500 data sets per design. Two rates differ by 4 standard errors with
    # probability 6e-5, one of these six with 4e-4.
    known = reference.golden("estimators/type1_simulation.json")
    published = {"spiegelhalter": "spiegelhalter", "hosmer_lemeshow": "HL df=g"}[name]
    designs = {"logit-normal": "logit-normal(0,1.3)", "sure": "overconf Beta(.3,.3)", "rare": "rare Beta(1,19)"}
    (form,) = (form for form in hypothesis_forms(name) if form.null == "asymptotic" and not form.variant)
    for world in (world for world in CALIBRATED_WORLDS if world.k == 2):
        rate, sets = known[f"{designs[world.name]} n=30"][published]
        hits = simulate_pvalues(form, world, 30, 400, Plan()).count_rejections(0.05)
        combined = (hits + rate * sets) / (400 + sets)
        error = (combined * (1 - combined) * (1 / 400 + 1 / sets)) ** 0.5
        assert abs(hits / 400 - rate) < 4 * error


def test_a_row_tells_what_its_cell_gave():
    row = level(methods=["spiegelhalter"], plan=SMALL).rows[0]
    pvalues = []
    for repetition in range(4):
        rng = SMALL.rng(CALIBRATED_WORLDS[1], 30, repetition)
        pvalues.append(to.test(CALIBRATED_WORLDS[1].rows(rng, 30), "spiegelhalter", rng=rng).pvalue)
    assert (row["test"], row["null"], row["K"], row["design"], row["n"], row["sets"]) == (
        "spiegelhalter", "asymptotic", 2, "extreme", 30, 4,
    )  # fmt: skip
    assert row["size5"] == np.mean(np.array(pvalues) <= 0.05)


@pytest.mark.usefixtures("only_tables")
def test_a_stopped_study_goes_on_with_the_same_numbers(tmp_path):
    full = level(methods=["spiegelhalter"], plan=SMALL, out=tmp_path / "whole")
    lines = (tmp_path / "whole" / "level.cells.jsonl").read_text(encoding="utf-8").splitlines()
    marked = json.loads(lines[1])
    marked[1]["power_shift"] = 0.42  # so that it shows that this cell was not measured again
    cells_file = tmp_path / "part" / "level.cells.jsonl"
    cells_file.parent.mkdir()
    cells_file.write_text(
        "\n".join([lines[0], json.dumps(marked), lines[2][:30]]), encoding="utf-8"
    )  # the last line was cut off
    resumed = level(methods=["spiegelhalter"], plan=SMALL, out=cells_file.parent)
    assert resumed.rows[0]["power_shift"] == 0.42
    assert resumed.rows[1:] == full.rows[1:]


def test_the_command_line_runs_it_and_keeps_tables_and_picture(tmp_path, monkeypatch):
    monkeypatch.setattr("trueodds_studies.level.QUICK", SMALL)
    words = ["study", "level", "--quick", "--method", "spiegelhalter", "--out", str(tmp_path)]
    ran = CliRunner().invoke(main, words, standalone_mode=False)
    assert "Redrawn labels: the size" in ran.output
    assert {"level.csv", "level.md", "level.tests.md", "level.svg"} <= {file.name for file in tmp_path.iterdir()}
    assert ET.parse(tmp_path / "level.svg").getroot().tag.endswith("svg")


def test_p_values_that_come_too_often_are_seen(monkeypatch):
    # A p-value that is halved rejects twice as often as it says.
    halved = lambda preds, *_, **settings: type("V", (), {"pvalue": settings["rng"].integers(1, 11) / 20, "notes": ()})
    monkeypatch.setattr("trueodds_studies.level.test", halved)
    plan = UniformPlan(sets=100, worlds=("sure",), resamples=9)
    assert [row["verdict"] for row in uniform(methods=["spiegelhalter"], plan=plan).rows] == ["exceeds"]


def test_a_test_that_has_no_p_value_is_not_called_uniform(monkeypatch):
    none = lambda *_, **__: type("V", (), {"pvalue": float("nan"), "notes": ()})
    monkeypatch.setattr("trueodds_studies.level.test", none)
    plan = UniformPlan(sets=3, worlds=("sure",), resamples=9)
    (row,) = uniform(methods=["spiegelhalter"], plan=plan).rows
    assert (row["sets"], row["p_uniform"], row["verdict"]) == (0, None, "undefined")


def test_a_value_that_a_test_refuses_is_no_answer_and_any_other_refusal_is_one(monkeypatch):
    def refused(code):
        def test(*_, **__):
            raise to.InputError(code, "p.", "g", "f")

        return test

    cell = Cell(hypothesis_forms("spiegelhalter")[0], CALIBRATED_WORLDS[0], 30)
    monkeypatch.setattr("trueodds_studies.level.test", refused("TO205"))
    assert measure_cell(cell, SMALL)["undefined"] == 1
    monkeypatch.setattr("trueodds_studies.level.test", refused("TO202"))
    with pytest.raises(to.InputError):
        measure_cell(cell, SMALL)


def test_an_unknown_member_is_refused():
    for study in ("level", "uniform"):
        with pytest.raises(to.InputError) as refusal:
            installed_studies().load(study)(methods=["spiegelhaltr"])
        assert refusal.value.code == "TO201"


def test_a_table_goes_between_its_marks_and_the_rest_of_the_page_stays(tmp_path):
    page, table = tmp_path / "page.md", tmp_path / "level.tests.md"
    page.write_text("Before.\n<!-- level.tests -->\nold\n<!-- end of level.tests -->\nAfter.\n", encoding="utf-8")
    table.write_text("new \\1\n", encoding="utf-8")
    insert_table(page, table)
    assert (
        page.read_text(encoding="utf-8")
        == "Before.\n<!-- level.tests -->\nnew \\1\n<!-- end of level.tests -->\nAfter.\n"
    )
    page.write_text("Nothing.\n", encoding="utf-8")
    with pytest.raises(LookupError, match=r"level\.tests"):
        insert_table(page, table)
