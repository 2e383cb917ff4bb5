"""Unknown labels of a multilabel problem: each label is evaluated on the rows in which it is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

import trueodds as to
from tests.io.test_columns import refusal
from trueodds import Predictions, read
from trueodds.data.plausibility import plausibility_notes
from trueodds.data.predictions import concatenate
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import log_odds, rank_scores

NAMES = ["a", "b", "c"]


def partly_known(n: int = 300, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Calibrated outcomes of three labels, of which three in ten are unknown (NaN), and their probabilities."""
    draw = np.random.default_rng(seed)
    P = draw.beta(1, 3, (n, 3)).round(4)
    Y = (draw.random((n, 3)) < P).astype(float)
    Y[draw.random((n, 3)) < 0.3] = np.nan
    return Y, P


def binned_error(y: NDArray[np.float64], p: NDArray[np.float64], k: int = 15) -> float:
    """ECE of one label with k uniform bins, by its definition."""
    b = np.ceil(p * k).clip(1).astype(int) - 1
    return float(np.abs(np.bincount(b, p, k) - np.bincount(b, y, k)).sum() / len(p))


def on_known_rows(function: Any, Y: NDArray[np.float64], P: NDArray[np.float64]) -> list[float]:
    """A function of outcomes and probabilities of each label, from the rows in which the label is known."""
    known = ~np.isnan(Y)
    return [function(Y[known[:, c], c], P[known[:, c], c]) for c in range(Y.shape[1])]


def test_a_missing_outcome_is_unknown_whatever_says_so() -> None:
    Y, P = [[0, None], [1, 1], [np.nan, 0]], [[0.2, 0.3], [0.6, 0.7], [0.5, 0.1]]
    expected = [[0, -1], [1, 1], [-1, 0]]
    masked = np.ma.masked_invalid(np.array(Y, dtype=float))
    nullable = pd.DataFrame(Y, columns=NAMES[:2]).astype("Int64")
    for outcomes in (Y, np.array(Y, dtype=float), masked, nullable, pl.DataFrame(np.array(Y, dtype=float))):
        preds = Predictions.from_multilabel(outcomes, P)
        assert preds.y is not None
        assert preds.y.tolist() == expected
        assert [note.code for note in preds.notes] == ["TN303"]
    np.testing.assert_array_equal(preds.Y, np.array(Y, dtype=float))
    assert Predictions.from_multilabel([[0, 1], [1, 1]], [[0.2, 0.3], [0.6, 0.7]]).known is None


def test_minus_one_is_unknown_only_on_request() -> None:
    Y, P = [[0, -1], [1, 1], [-1, 0]], [[0.2, 0.3], [0.6, 0.7], [0.5, 0.1]]
    with refusal("TO116", "-1 in row 0, class 1", "missing=-1"):
        Predictions.from_multilabel(Y, P)
    preds = Predictions.from_multilabel(Y, P, missing=-1, classes=["x", "y"])
    assert preds.y is not None
    assert preds.y.tolist() == Y
    assert "x in 1, y in 1" in preds.notes[0].text
    with refusal("TO116", "2.0 in row 0"):
        Predictions.from_multilabel([[2.0, np.nan]], [[0.5, 0.5]])
    with refusal("TO203", "missing=1"):
        Predictions.from_multilabel(Y, P, missing=1)
    with refusal("TO205", "missing=-1"):
        read({"label": [0, 1], "p": [0.1, 0.2]}, probs="p", missing=-1)


def test_a_label_that_no_row_has_is_an_error() -> None:
    Y, P = partly_known()
    with refusal("TO358", "'1'|1", "300 rows"):
        Predictions.from_multilabel(np.where(np.arange(3) == 1, np.nan, Y), P)
    preds = Predictions.from_multilabel(Y, P)
    rows = np.isnan(Y[:, 1])  # label 1 is unknown in all of them
    for lens in ("classwise", "class:1"):
        with refusal("TO358", "1"):
            to.measure(preds[rows], "ece", lens=lens)
    assert float(to.measure(preds[rows], "ece", lens="class:0", interval=None)) > 0


@pytest.mark.parametrize("weighted", [False, True])
def test_estimates_are_means_over_labels_of_those_on_known_rows(weighted: bool) -> None:
    Y, P = partly_known()
    w = np.random.default_rng(1).integers(1, 4, len(P)).astype(float) if weighted else None
    preds = Predictions.from_multilabel(Y, P, weight=w)
    if not weighted:
        assert float(to.measure(preds, "ece", interval=None)) == pytest.approx(
            np.mean(on_known_rows(binned_error, Y, P)), rel=1e-12
        )
        scores = on_known_rows(lambda y, p: float(np.mean((p - y) ** 2)), Y, P)
        assert float(to.measure(preds, "brier", interval=None)) == pytest.approx(np.mean(scores), rel=1e-12)
        losses = on_known_rows(lambda y, p: float(-np.mean(np.log(np.where(y == 1, p, 1 - p)))), Y, P)
        assert float(to.measure(preds, "log_loss", interval=None)) == pytest.approx(np.mean(losses), rel=1e-12)
    known = ~np.isnan(Y)
    for name in ("ece", "ace", "debiased_l2", "smece", "skce", "ici", "corp", "spherical", "ks"):
        alone = []
        for c in range(3):
            rows = known[:, c]
            weight = None if w is None else w[rows]
            one = Predictions.from_multilabel(Y[rows][:, [c]], P[rows][:, [c]], weight=weight)
            alone.append(float(to.measure(one, name, lens="classwise", interval=None)))
        estimate = to.measure(preds, name, lens="classwise", interval=None)
        assert list(estimate.parts.values()) == pytest.approx(alone, rel=1e-9)
        assert float(estimate) == pytest.approx(np.mean(alone), rel=1e-9)


def test_tests_of_a_label_are_those_of_its_known_rows() -> None:
    Y, P = partly_known()
    preds, known = Predictions.from_multilabel(Y, P), ~np.isnan(Y)
    for name in ("cox", "spiegelhalter", "ks", "debiased_l2", "giviti", "hosmer_lemeshow"):
        for c in range(3):
            one = to.test(preds[known[:, c]], name, lens=f"class:{c}", rng=0)
            verdict = to.test(preds, name, lens=f"class:{c}", rng=0)
            assert (verdict.statistic, verdict.n) == (pytest.approx(one.statistic, rel=1e-9), known[:, c].sum())
            # Simulated p-values have different draws: four standard errors of a difference of two shares of 999.
            assert verdict.pvalue == pytest.approx(one.pvalue, abs=4 * np.sqrt(2 * 0.25 / 999))


def test_intervals_and_noise_floors_have_the_size_of_the_known_rows() -> None:
    # The standard error of a mean of Brier scores, computed from the known rows of a single label.
    Y, P = partly_known(2000)
    preds, known = Predictions.from_multilabel(Y, P), ~np.isnan(Y)
    for c in range(3):
        scores = (P[known[:, c], c] - Y[known[:, c], c]) ** 2
        estimate = to.measure(preds, "brier", lens=f"class:{c}", rng=0)
        assert estimate.interval is not None
        width = estimate.interval.high - estimate.interval.low
        assert width == pytest.approx(2 * 1.96 * scores.std() / np.sqrt(len(scores)), rel=0.1)
        noise_floor = to.measure(preds, "ece", lens=f"class:{c}", rng=0).noise_floor
        alone = to.measure(preds[known[:, c]], "ece", lens=f"class:{c}", rng=0).noise_floor
        assert noise_floor == pytest.approx(alone, rel=0.05)


@pytest.mark.slow
def test_the_level_of_a_test_is_kept_where_labels_are_unknown() -> None:
    # 200 calibrated data sets: the number rejected at 10 % is Binomial(200, .1), whose 99.9 % range is 8 to 35.
    n_rejected = 0
    for seed in range(200):
        preds = Predictions.from_multilabel(*partly_known(100, seed))
        n_rejected += to.test(preds, "consistency", rng=seed, resamples=99).pvalue <= 0.1
    assert 8 <= n_rejected <= 35


def test_groups_count_the_known_rows() -> None:
    Y, P = partly_known()
    g = np.arange(len(P)) % 2
    Y[(g == 0), 2] = np.nan
    preds = Predictions.from_multilabel(Y, P, classes=NAMES, group={"g": g})
    result = to.by_group(preds, "ece", lens="class:a", rng=0, resamples=99)
    assert [group.n for group in result.groups] == [(~np.isnan(Y[g == 1, 0])).sum()]  # group 0 has no known label c
    assert any("known labels" in note.text and "g=0" in note.text for note in result.notes)
    report = to.audit(preds, rng=0, resamples=99).to_dict()
    assert report["data"]["n"] == 300
    assert any(note["code"] == "TN303" and "c in" in note["text"] for note in report["notes"])


def test_what_draws_new_labels_leaves_unknown_ones_unknown() -> None:
    Y, P = partly_known()
    preds = Predictions.from_multilabel(Y, P)
    relabeled = preds.with_labels(np.ones(P.shape))
    assert relabeled.y is not None
    np.testing.assert_array_equal(relabeled.y, np.where(np.isnan(Y), -1, 1))
    assert to.test(preds, "consistency", redraw="both", resamples=99, rng=0).pvalue > 0.01
    assert to.test(preds, "consistency", hypothesis=lambda P: P, resamples=99, rng=0).pvalue > 0.01
    both = concatenate([preds, preds])
    assert float(to.measure(both, "ece", interval=None)) == pytest.approx(
        float(to.measure(preds, "ece", interval=None))
    )


def test_models_are_compared_on_the_known_labels() -> None:
    Y, P = partly_known()
    a, b = (Predictions.from_multilabel(Y, Q) for Q in (P, P**1.2))
    difference = to.compare(a, b, "brier", rng=0)
    scores = [np.mean(on_known_rows(lambda y, p: float(np.mean((p - y) ** 2)), Y, Q)) for Q in (P, P**1.2)]
    assert float(difference) == pytest.approx(scores[0] - scores[1], rel=1e-9)


def test_events_of_a_label_are_expected_only_in_its_known_rows() -> None:
    def notes(n_known: int) -> list[str]:
        Y = np.tile([0.0, 1.0], (200, 1))
        Y[n_known:, 0] = np.nan
        preds = Predictions.from_multilabel(Y, np.full((200, 2), 0.1))
        return [note.text for note in plausibility_notes(preds) if note.code == "TN185"]

    assert notes(40) == []  # 4 events were expected
    assert notes(60) == ["Class 0 (6.0 expected) was never observed."]


def test_log_odds_rank_labels_whose_probabilities_round_to_one() -> None:
    Z = np.array([[40.0, 0.0], [50.0, 0.0], [60.0, 0.0], [-1.0, 0.0]])
    preds = Predictions.from_multilabel([[1, 0], [0, 1], [1, 1], [0, 0]], Z, logits=True)
    view = as_lens("class:0").views(preds)[0]
    assert log_odds(view) is not None
    assert log_odds(view).tolist() == Z[:, 0].tolist()
    assert rank_scores(view).tolist() == Z[:, 0].tolist()


def test_a_tally_of_partly_known_rows_is_refused() -> None:
    preds = Predictions.from_multilabel(*partly_known())
    for tally in (lambda: to.tally(preds), lambda: to.measure(preds, "ece", mode="tally")):
        with refusal("TO359", "unknown labels in 300 rows", "mode='exact'"):
            tally()


def write_table(path: Path, table: dict[str, Any]) -> str:
    """A file with empty cells, nulls or missing keys for None."""
    if path.suffix == ".parquet":
        parquet.write_table(pa.table(table), path)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(path, pa.table(table).schema) as writer:
            writer.write_table(pa.table(table))
    elif path.suffix == ".jsonl":
        rows = zip(*table.values(), strict=True)
        path.write_text("\n".join(json.dumps(dict(zip(table, row, strict=True))) for row in rows), encoding="utf-8")
    else:
        lines = [
            ",".join("" if cell is None else str(cell) for cell in row) for row in zip(*table.values(), strict=True)
        ]
        path.write_text("\n".join([",".join(table), *lines]) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow", "jsonl", "pandas", "polars", "arrow table", "lists"])
@pytest.mark.parametrize("token", [None, -1])
def test_files_and_frames_have_unknown_labels(tmp_path: Path, form: str, token: int | None) -> None:
    Y, P = partly_known()
    outcomes = {f"y_{name}": [token if np.isnan(y) else int(y) for y in Y[:, c]] for c, name in enumerate(NAMES)}
    table: dict[str, Any] = outcomes | {f"p_{name}": P[:, c].tolist() for c, name in enumerate(NAMES)}
    columns = {"multilabel": "y_*", "missing": token}
    data: Any
    if form == "pandas":
        data = pd.DataFrame(table)
    elif form == "polars":
        data = pl.DataFrame(table)
    elif form == "arrow table":
        data = pa.table(table)
    elif form == "lists":
        rows = [list(row) for row in zip(*outcomes.values(), strict=True)]
        data = write_table(tmp_path / "a.parquet", {"y": rows, "p": P.tolist()})
        columns |= {"multilabel": "y", "probs": "p"}
    else:
        data = write_table(tmp_path / f"a.{form}", table)
    source = read(data, batch_rows=70, **columns)
    preds = source.collect()
    np.testing.assert_array_equal(preds.Y, Y)
    assert np.concatenate([batch.Y for batch in source.batches()]).shape == Y.shape
    assert float(to.measure(source, "ece", interval=None)) == pytest.approx(
        np.mean(on_known_rows(binned_error, Y, P)), rel=1e-12
    )


def test_the_csv_reader_without_arrow_reads_unknown_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueodds.io.files._has_pyarrow", lambda: False)
    outcomes = {"y_a": [0, None, "NA", "nan"], "y_b": [1, 1, 0, 0]}
    path = write_table(tmp_path / "a.csv", outcomes | {name: [0.1, 0.2, 0.3, 0.4] for name in ("p_a", "p_b")})
    assert np.isnan(read(path, multilabel="y_*").collect().Y[:, 0]).tolist() == [False, True, True, True]


@pytest.mark.parametrize("has_arrow", [True, False])
def test_unknown_labels_stand_beside_decimal_commas_and_percentages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_arrow: bool
) -> None:
    monkeypatch.setattr("trueodds.io.files._has_pyarrow", lambda: has_arrow)
    path = tmp_path / "a.csv"
    path.write_text("y_a;y_b;y_note;p_a;p_b\nNA;1;x;12,5%;0,5\n0;;y;50%;0,25\n1;0;z;75%;1\n", encoding="utf-8")
    preds = read(str(path), multilabel="y_*").collect()
    np.testing.assert_array_equal(preds.Y, [[np.nan, 1], [0, np.nan], [1, 0]])
    assert preds.p.tolist() == [[0.125, 0.5], [0.5, 0.25], [0.75, 1]]
    assert sorted(note.code for note in preds.notes) == ["TN303", "TN310", "TN312", "TN314"]


def test_a_missing_probability_or_label_of_classes_is_still_an_error(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.parquet", {"y_a": [0, 1], "p_a": [0.1, None]})
    with refusal("TO308", "p_a", "row 1"):
        read(path, multilabel="y_*").collect()
    path = write_table(tmp_path / "b.csv", {"label": [0, None], "p": [0.1, 0.2]})
    with refusal("TO308", "label", "row 1"):
        read(path, probs="p").collect()


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_log_odds_of_labels_are_kept_as_log_odds(tmp_path: Path, form: str) -> None:
    Y = [[0, 1], [1, 0], [1, 1]]
    Z = [[-2.0, 0.5], [1.0, -3.0], [800.0, -50.0]]
    preds = Predictions.from_multilabel(Y, Z, logits=True)
    assert preds.logits is not None
    assert preds.logits.tolist() == Z
    # The log loss of log odds z is log(1 + exp(−z)) for a present label and log(1 + exp(z)) for an absent one.
    loss = np.logaddexp(0, np.where(np.array(Y) == 1, -np.array(Z), Z)).mean(axis=0).mean()
    assert float(to.measure(preds, "log_loss", interval=None)) == pytest.approx(loss, rel=1e-12)
    assert float(to.measure(preds, "log_loss", interval=None, mode="tally")) == pytest.approx(loss, rel=1e-12)
    table = {f"y_{c}": [row[c] for row in Y] for c in range(2)} | {f"z_{c}": [row[c] for row in Z] for c in range(2)}
    source = read(write_table(tmp_path / f"a.{form}", table), multilabel="y_*", logits="z_*")
    np.testing.assert_allclose(source.collect().p, 1 / (1 + np.exp(-np.array(Z))), rtol=1e-12)
    assert source.collect().logits is not None
    with refusal("TO103", "inf in row 1, class 0"):
        Predictions.from_multilabel(Y, [[0, 1], [np.inf, 0], [0, 0]], logits=True)
