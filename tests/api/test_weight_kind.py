"""Are whole-number weights explained by a note until the caller says what they are?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import trueodds as to
from trueodds.cli import main

FAST = {"resamples": 99}


def predictions(weight: Any) -> to.Predictions:
    rng = np.random.default_rng(0)
    p = rng.random(120)
    return to.Predictions((rng.random(120) < p).astype(int), p, weight=weight, group={"site": np.arange(120) % 2})


COUNTS = np.random.default_rng(1).integers(0, 4, 120)
VERBS: dict[str, Callable[..., Sequence[Any]]] = {
    "measure": lambda preds, **kind: to.measure(preds, "ece", **FAST, **kind).notes,
    "test": lambda preds, **kind: to.test(preds, **FAST, **kind).notes,
    "compare": lambda preds, **kind: to.compare(preds, preds, "brier", **FAST, **kind).notes,
    "by_group": lambda preds, **kind: to.by_group(preds, **FAST, **kind).notes,
    "table": lambda preds, **kind: to.table({"a": preds, "b": preds}, ["brier"], **FAST, **kind).notes,
    "fit": lambda preds, **kind: to.fit(preds, "temperature", **kind).notes,
    "draw": lambda preds, **kind: to.draw(preds, "reliability", **kind).notes,
    "power": lambda preds, **kind: to.power(preds, width=0.1, **kind).notes,
    "audit": lambda preds, **kind: to.audit(preds, **FAST, **kind).notes,
}


def codes(notes: Sequence[Any]) -> list[str]:
    return [note["code"] if isinstance(note, dict) else note.code for note in notes]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_whole_number_weights_until_their_kind_is_given(verb: str) -> None:
    preds = predictions(COUNTS)
    assert codes(VERBS[verb](preds)).count("TN286") == 1
    for kind in ("importance", "frequency"):
        assert "TN286" not in codes(VERBS[verb](preds, weight_kind=kind))


@pytest.mark.parametrize(
    ("weight", "is_explained"),
    [
        (COUNTS, True),
        (COUNTS.astype(float), True),
        (np.full(120, 2), True),
        (COUNTS + 0.5, False),
        (COUNTS.clip(max=1), False),  # rows that are used or not
        (None, False),
    ],
)
def test_only_whole_numbers_above_one_can_be_counts(weight: Any, is_explained: bool) -> None:
    assert ("TN286" in codes(VERBS["measure"](predictions(weight)))) is is_explained


def test_the_note_states_both_numbers_of_observations() -> None:
    text = next(note.text for note in to.measure(predictions(COUNTS), "ece").notes if note.code == "TN286")
    assert f"{np.count_nonzero(COUNTS)} observations" in text
    assert f"{COUNTS.sum()} observations" in text


def test_the_default_is_still_importance() -> None:
    preds = predictions(COUNTS)
    default, importance = to.measure(preds, "ece"), to.measure(preds, "ece", weight_kind="importance")
    assert (default.value, default.interval, default.settings) == (
        importance.value, importance.interval, importance.settings,
    )  # fmt: skip
    with pytest.raises(to.InputError, match="TO203"):
        to.measure(preds, "ece", weight_kind="counts")


def test_the_command_line_names_its_own_option(tmp_path: Path) -> None:
    preds, file = predictions(COUNTS), tmp_path / "a.csv"
    rows = [f"{p},{y},{w}" for p, y, w in zip(preds.p.tolist(), preds.Y[:, 1].astype(int), COUNTS, strict=True)]
    file.write_text("\n".join(["p_1,label,w", *rows]) + "\n", encoding="utf-8")
    words = ["measure", str(file), "--weight", "w", "--interval", "none"]
    printed = " ".join(CliRunner().invoke(main, words).output.split())
    assert "pass --weight-kind frequency" in printed
    assert "pass --weight-kind importance" in printed
    for kind in ("importance", "frequency"):
        assert "TN286" not in CliRunner().invoke(main, [*words, "--weight-kind", kind]).output
