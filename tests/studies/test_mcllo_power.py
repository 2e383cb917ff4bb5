"""Does the study of MCLLO simulate what it says, predict what it finds, and judge sizes as it should?"""

import json
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import integrate, stats

import trueodds as to
from tests import reference
from trueodds.calibrators.mcllo import MclloSpec
from trueodds.cli import main
from trueodds_studies.common.data_files import hash_file
from trueodds_studies.mcllo_power import power_simulation, size_simulation
from trueodds_studies.mcllo_power.power_simulation import PARAMETERS, expected_divergence, predict_power
from trueodds_studies.mcllo_power.study import Plan, mcllo_power

pytestmark = pytest.mark.slow

SMALL = Plan(
    sets=8, binned=4, rows=(50,), deltas=(1.0, 3.0), sized=3, sized_rows=(60,), classes=(2, 10), resamples=19
)  # fmt: skip
FLAT = {f"K{world.k}_c{world.alpha:g}": world for world in size_simulation.DIRICHLET_WORLDS}


def sets(count, seed=0):
    return SimpleNamespace(sets=count, binned=min(count, 4), seed=seed, sized=count, resamples=99)


# The simulation


def test_labels_come_as_the_shifted_odds_say():
    P, Y = power_simulation.PowerCell(40_000, 2.0).rows(np.random.default_rng(0))
    # By hand: twice the odds against class 3 make q ∝ (2p₁, p₂, p₃).
    q = P * [2, 1, 1]
    q /= q.sum(axis=1, keepdims=True)
    for weighed in (Y - q, (Y - q) * P):
        assert (np.abs(weighed.mean(axis=0)) < 4 * weighed.std(axis=0) / 200).all()


def test_the_divergence_is_that_of_a_plain_integral_and_of_many_vectors():
    for delta, k in ((1.25, 3), (3.0, 3), (2.0, 7)):

        def of_one(p, delta=delta, k=k):
            q = delta * p / (1 + (delta - 1) * p)
            return stats.beta.pdf(p, 1, k - 1) * (q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p)))

        assert expected_divergence(delta, k) == pytest.approx(integrate.quad(of_one, 0, 1)[0], rel=1e-7)
    P = np.random.default_rng(0).dirichlet(np.ones(3), 100_000)
    q = P * [3, 1, 1]
    q /= q.sum(axis=1, keepdims=True)
    divergences = (q * np.log(q / P)).sum(axis=1)
    assert abs(divergences.mean() - expected_divergence(3.0)) < 4 * divergences.std() / 100_000**0.5


def test_the_prediction_is_the_tail_of_non_central_chi_square():
    for n, delta, level in ((50, 2.0, 0.05), (500, 1.25, 0.01)):
        ncp, predicted_power = predict_power(n, delta, level)
        assert ncp == 2 * n * expected_divergence(delta)
        assert predicted_power == pytest.approx(stats.ncx2.sf(stats.chi2.isf(level, 4), 4, ncp), abs=1e-9)
    assert predict_power(100, 1.0, 0.01)[1] == pytest.approx(0.01)


@pytest.mark.reference
def test_predictions_are_those_of_the_reference_simulation():
    # mc_power.json took the divergence from a sample: some 0.5 % off, which moves a power by 0.003 at most.
    for known in reference.golden("recalibration/mc_power.json").values():
        ncp, predicted_power = predict_power(known["n"], known["delta1"], 0.05)
        assert ncp == pytest.approx(known["ncp"], rel=5e-3, abs=1e-9)
        assert predicted_power == pytest.approx(known["power_ncx2"], abs=3e-3)


@pytest.mark.reference
def test_rejections_are_those_of_the_reference_simulation():
    # 1,000 data sets of another program. Two rates differ by 4 standard errors with probability 6e-5,
    # one of six with 4e-4.
    known = reference.golden("recalibration/mc_power.json")
    for n, delta in ((50, 1.0), (50, 2.0), (250, 1.5)):
        row, published = (
            power_simulation.measure_power(power_simulation.PowerCell(n, delta), sets(200)),
            known[f"n{n}_d{delta}"],
        )
        for name in ("5", "1"):
            combined = (200 * row[f"lrt{name}"] + 1000 * published[f"rej0{name}"]) / 1200
            error = (combined * (1 - combined) * (1 / 200 + 1 / 1000)) ** 0.5
            assert abs(row[f"lrt{name}"] - published[f"rej0{name}"]) < 4 * error
            # The prediction errs by 0.03 at most; beyond that is chance, 4 standard errors.
            wide = 4 * (row[f"predicted{name}"] * (1 - row[f"predicted{name}"]) / 200) ** 0.5
            assert abs(row[f"lrt{name}"] - row[f"predicted{name}"]) < 0.03 + wide


def test_a_row_tells_what_the_test_and_the_calibrator_say_of_its_data_sets():
    cell, rejected, scores, deviations = power_simulation.PowerCell(60, 2.0), [], [], []
    for repetition in range(6):
        P, Y = cell.rows(np.random.default_rng([0, 60, 2000, repetition]))
        preds = to.Predictions(Y.argmax(axis=1), P)
        rejected.append(to.test(preds, "mcllo").pvalue <= 0.05)
        scores.append(to.test(preds, "mcllo", form="score").pvalue <= 0.05)
        calibration_map = MclloSpec().fit(P, Y, np.ones(60))
        deviations.append(
            [
                calibration_map.gamma[0] - 1,
                calibration_map.tau[0] - np.log(2),
                calibration_map.gamma[1] - 1,
                calibration_map.tau[1],
            ]
        )
    row = power_simulation.measure_power(cell, sets(6))
    assert (row["lrt5"], row["score5"], row["finite"]) == (np.mean(rejected), np.mean(scores), 6)
    assert [row[f"bias_{name}"] for name in PARAMETERS] == pytest.approx(np.mean(deviations, axis=0), abs=1e-7)


def test_ece_is_that_of_the_largest_probability_before_and_after():
    cell = power_simulation.PowerCell(60, 2.0)
    before, after, new, calibration_map = [], [], [], None
    for repetition in range(3):
        P, Y = cell.rows(np.random.default_rng([0, 60, 2000, repetition]))
        y = Y.argmax(axis=1)

        def ece(Q, y=y):
            return to.measure(to.Predictions(y, Q), "ece", lens="confidence", bins=8, interval=None).value

        before.append(ece(P))  # √60 = 7.7: 8 bins
        new += [] if calibration_map is None else [ece(calibration_map.apply(P))]
        calibration_map = MclloSpec().fit(P, Y, np.ones(60))
        after.append(ece(calibration_map.apply(P)))
    row = power_simulation.measure_power(cell, sets(3))
    assert (row["before"], row["after"], row["new"]) == pytest.approx(
        (np.mean(before), np.mean(after), np.mean(new)), abs=1e-7
    )
    assert row["lowered"] == np.mean(np.array(after) < before)
    assert row["lowered_new"] == np.mean(np.array(new) < before[1:])


def test_intervals_of_parameters_cover_as_they_say():
    # At n = 250 the normal law holds: of 200 intervals Binomial(200, .95) cover,
    # fewer than 177 in 1 of 5,000 studies each.
    row = power_simulation.measure_power(power_simulation.PowerCell(250, 1.5), sets(200))
    assert min(200 * row[f"coverage_{name}"] for name in PARAMETERS) >= 176.5
    assert row["finite"] == 200


# Sizes


def test_a_cell_of_sizes_tells_what_the_tests_say():
    cell, pvalues = size_simulation.SizeCell(FLAT["K3_c0.3"], 60), []
    for repetition in range(5):
        rng = np.random.default_rng([0, *cell.world.name.encode(), 60, repetition])
        preds = cell.world.rows(rng, 60)
        pvalues.append([to.test(preds, "mcllo").pvalue, to.test(preds, "mcllo", form="score").pvalue,
                      to.test(preds, "mcllo", null="redraw", resamples=99, rng=rng).pvalue])  # fmt: skip
    rows = size_simulation.add_form_verdicts([size_simulation.measure_size(cell, sets(5))])
    assert [row["test"] for row in rows] == list(size_simulation.SIZE_FORMS)
    assert [row["size5"] for row in rows] == (np.array(pvalues) <= 0.05).mean(axis=0).tolist()
    assert {(row["design"], row["K"], row["n"], row["sets"]) for row in rows} == {("Dirichlet(0.3)", 3, 60, 5)}
    assert rows[2]["noted"] == 0


@pytest.mark.reference
def test_sizes_are_those_of_the_reference_simulation():
    # 1,000 data sets of another program, 4 standard errors apart with probability 6e-5.
    known = reference.golden("recalibration/mc_type1.json")["K7_n132_c0.3"]
    row = size_simulation.measure_size(size_simulation.SizeCell(FLAT["K7_c0.3"], 132), sets(150))["forms"][0]
    combined = (150 * row["size5"] + 1000 * known["rej05"]) / 1150
    assert abs(row["size5"] - known["rej05"]) < 4 * (combined * (1 - combined) * (1 / 150 + 1 / 1000)) ** 0.5


@pytest.mark.reference
def test_rows_of_the_network_are_its_own_and_labels_come_from_them():
    folder = reference.path("data/plambda_cifar10_vgg16.npz").parent
    world = size_simulation.load_network(folder)
    P = world.draw_predictions(np.random.default_rng(0), 2000)
    predicted = np.maximum(reference.data("plambda_cifar10_vgg16.npz")["probs"].astype(float), 1e-6)
    predicted = {row.tobytes() for row in predicted / predicted.sum(axis=1, keepdims=True)}
    assert all(row.tobytes() in predicted for row in P)
    preds = world.rows(np.random.default_rng(0), 2000)
    outcome_probs = preds.P[np.arange(2000), preds.y]
    # The mean of the probability of what came is Σp² where labels come from p, within 4 standard errors.
    expected = (preds.P**2).sum(axis=1)
    assert abs((outcome_probs - expected).mean()) < 4 * (outcome_probs - expected).std() / 2000**0.5


def test_resampled_labels_keep_the_level_where_chi_square_does_not():
    # p ≤ .05 among 19 redraws in exactly 5 % where draws do not tie:
    # Binomial(100, .05) exceeds 13 in 1 of 2,000 studies.
    plan = SimpleNamespace(seed=0, sized=100, resamples=19)
    forms = size_simulation.measure_size(size_simulation.SizeCell(FLAT["K10_c0.2"], 30), plan)["forms"]
    assert round(100 * forms[2]["size5"]) <= 13
    assert forms[0]["noted"] > 0.9  # 30 rows for 18 parameters: χ² is doubted


def test_without_its_file_the_network_is_left_out_and_the_sentence_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("TRUEODDS_REFERENCE", str(tmp_path))
    study = mcllo_power(plan=SMALL)
    assert {row["design"] for row in study.also[2].rows} == {"Dirichlet(1)", "Dirichlet(0.3)", "Dirichlet(0.2)"}
    assert study.also[2].sentence.endswith("VGG16 is not included because its predictions are not available.")
    with pytest.raises(to.InputError) as refusal:  # where somebody names a folder it has to be there
        mcllo_power(plan=SMALL, data=tmp_path)
    assert refusal.value.code == "TO802"


def test_sizes_of_other_predictions_are_measured_again(tmp_path):
    plan = Plan(sets=2, binned=2, rows=(50,), deltas=(1.0,), sized=2, sized_rows=(60,), classes=(10,), resamples=19)
    stamps, where = [], tmp_path / "out"
    for seed in (0, 1):
        data = tmp_path / str(seed)
        data.mkdir()
        np.savez(
            data / size_simulation.NETWORK_FILE,
            probs=np.random.default_rng(seed).dirichlet(np.ones(10), 100).astype(np.float32),
        )
        mcllo_power(plan=plan, data=data, out=where)
        lines = (where / "mcllo_power.size.cells.jsonl").read_text(encoding="utf-8").splitlines()
        stamps.append(json.loads(lines[0])["data"])
        assert stamps[-1] == {size_simulation.NETWORK_FILE: hash_file(size_simulation.NETWORK_FILE, data)}
    assert stamps[0] != stamps[1]
    np.savez(data / size_simulation.NETWORK_FILE, logits=np.ones(3))
    with pytest.raises(to.InputError, match=r"TO803.*no probs in .*which holds logits"):
        mcllo_power(plan=plan, data=data)


def test_a_size_above_its_level_is_marked_and_counted():
    form = {"design": "D", "K": 3, "n": 60, "sets": 1000, "noted": 0.0, "undefined": 0.0, "size1": 0.01, "low1": 0.004,
            "high1": 0.02, "unnoted1": 0.01, "low5": 0.07, "high5": 0.13}  # fmt: skip
    shares = dict(zip(size_simulation.SIZE_FORMS, (0.1, 0.05, 0.05), strict=True))
    rows = size_simulation.add_form_verdicts(
        [{"forms": [{**form, "test": test, "size5": x, "unnoted5": x} for test, x in shares.items()]}]
    )
    # 100 of 1,000 at 5 % is 7 standard errors too many, 50 and 10 are just right.
    assert [row["verdict"] for row in rows] == ["exceeds", "keeps", "keeps"]
    (wide,) = size_simulation.world_table(rows)
    assert wide["likelihood ratio, 5 %"] == "10.0 [7.0, 13.0] *"
    assert wide["score, 5 %"] == "5.0 [7.0, 13.0]"
    assert (
        "the likelihood ratio by χ² exceeds its level in 1 of 1 cells, 0 of them with the note"
        in size_simulation.summarize_size(rows)
    )


# The study


def test_the_study_keeps_tables_pictures_and_cells_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("trueodds_studies.mcllo_power.study.QUICK", SMALL)
    words = ["study", "mcllo_power", "--quick", "--out", str(tmp_path)]
    ran = CliRunner().invoke(main, words, standalone_mode=False)
    assert "The noncentral χ² distribution predicts the power" in ran.output
    files = {file.name for file in tmp_path.iterdir()}
    tables = ("mcllo_power", "mcllo_power.parameters", "mcllo_power.ece", "mcllo_power.size")
    assert {f"{name}.{kind}" for name in tables for kind in ("csv", "md", "svg")} <= files
    assert "mcllo_power.by_design.md" in files
    for name in tables:
        assert ET.parse(tmp_path / f"{name}.svg").getroot().tag.endswith("svg")
        assert "{" not in (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    monkeypatch.setattr(power_simulation, "measure_power", None)  # nothing is measured twice
    monkeypatch.setattr("trueodds_studies.mcllo_power.study._draw_if_possible", lambda *_: None)
    assert CliRunner().invoke(main, words, standalone_mode=False).output == ran.output
