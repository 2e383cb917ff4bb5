"""Gates on the estimate of every group, and the note on bounds that are large for the event rate."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import trueodds as to
from tests.cli.conftest import Run

DAY = ("--group", "day")


@pytest.fixture(scope="module")
def rare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Events of 5 %, on three days; on the last two, they occur twice and three times as often as predicted."""
    rng = np.random.default_rng(0)
    p, day = rng.beta(2, 38, 6000), np.arange(6000) % 3
    frame = pd.DataFrame({"label": (rng.random(6000) < p * (1 + day)).astype(int), "p_0": 1 - p, "p_1": p, "day": day})
    path = tmp_path_factory.mktemp("rare") / "rare.csv"
    frame.assign(weight=1).to_csv(path, index=False)
    return str(path)


def gate_lines(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("gate ")]


@pytest.mark.parametrize("mode", [(), ("--mode", "tally")], ids=str)
def test_an_audit_bounds_any_estimator_by_group(run: Run, rare: str, mode: tuple[str, ...]) -> None:
    gates = ("--fail-on", "o_e[worst].low>1.25", "--fail-on", "o_e[day=0].low>1.25", "--fail-on", "o_e[worst]<0.5")
    done = run("audit", rare, *DAY, *mode, "--resamples", 199, *gates)
    assert done.exit_code == 1
    worst, other, first, small = gate_lines(done.stderr)
    assert worst.startswith("gate failed: o_e[worst].low (day=2) = ")
    assert other.startswith("gate failed: o_e[day=1].low = ")
    assert first.startswith("gate passed: o_e[day=0].low = ")
    assert small.startswith("gate passed: o_e[worst] (day=0) = ")


@pytest.mark.slow
def test_an_audit_and_groups_bound_the_same_numbers(run: Run, rare: str) -> None:
    gates = ("--fail-on", "o_e[worst].low>0.1", "--fail-on", "o_e[worst].high<0.1")
    words = (rare, *DAY, "--seed", 3)
    by_group, audit = run("groups", *words, "--estimator", "o_e", *gates), run("audit", *words, *gates)
    assert gate_lines(audit.stderr) == gate_lines(by_group.stderr)
    assert len(gate_lines(audit.stderr)) == 4
    groups = to.by_group(to.read(rare, group="day"), "o_e", rng=3).groups
    assert f"{groups[2].estimate.interval.low:.4f}" in gate_lines(audit.stderr)[0]


def test_an_estimator_by_group_without_groups_is_refused_before_the_audit(run: Run, rare: str) -> None:
    done = run("audit", rare, "--fail-on", "o_e[worst].low>1.25")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error TO610")


def test_every_group_that_fails_has_a_line(run: Run, rare: str) -> None:
    done = run("groups", rare, *DAY, "--resamples", 199, "--fail-on", "ece[worst]>0.03")
    assert [line.split(" = ")[0] for line in gate_lines(done.stderr)] == [
        "gate failed: ece[worst] (day=2)",
        "gate failed: ece[day=1]",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "gate", "is_noted"),
    [
        (("measure", "{}"), "ece.high>0.2", True),
        (("measure", "{}"), "ece.debiased>0.5", True),
        (("measure", "{}"), "o_e>3", False),
        (("measure", "{}"), "ece<0.01", False),
        (("measure", "{}", "--estimator", "brier"), "brier>0.5", False),
        (("measure", "{}", "--lens", "confidence"), "ece.high>0.2", False),
        (("measure", "{}", "--lens", "class:1", "--mode", "tally"), "ece.high>0.2", True),
        (("measure", "{}", "--weight", "weight", "--weight-kind", "frequency"), "ece.high>0.2", True),
        (("audit", "{}", "--resamples", "99"), "ece.low>0.2", True),
        (("audit", "{}", "--resamples", "99"), "ece.floor>0.2", False),
        (("audit", "{}", "--resamples", "99"), "pvalue>0.2", False),
        (("groups", "{}", *DAY, "--resamples", "99"), "ece[worst].low>0.2", True),
        (("groups", "{}", *DAY, "--resamples", "99"), "ece[day=0].low>0.02", False),
        (("groups", "{}", *DAY, "--resamples", "99"), "ece[day=0].low>0.03", True),
    ],
    ids=str,
)
def test_a_gate_that_passed_with_a_bound_of_half_the_event_rate_is_noted(
    run: Run, rare: str, words: tuple[str, ...], gate: str, is_noted: bool
) -> None:
    # The event rates are about 5 % on the first day and 10 % overall, so half of them is .025 and .05.
    option = {"o_e>3": ("--estimator", "o_e")}.get(gate, ())
    done = run(*(word.format(rare) for word in words), *option, "--fail-on", gate)
    assert done.exit_code == 0, done.output
    assert bool(re.search(r"\[TN240\] The bound of 0\.\d+ is at least half", done.stderr)) is is_noted


def test_the_bound_of_a_gate_that_fails_needs_no_note(run: Run, rare: str) -> None:
    done = run("measure", rare, "--fail-on", "ece>0.01")
    assert done.exit_code == 1
    assert "TN240" not in done.stderr


def test_a_bound_for_many_classes_is_compared_with_their_mean_event_rate(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    P = rng.dirichlet(np.ones(20), 500)
    y = (P.cumsum(axis=1) < rng.random((500, 1))).sum(axis=1)
    path = tmp_path / "many.csv"
    pd.DataFrame({"label": y} | {f"p_{c}": P[:, c] for c in range(20)}).to_csv(path, index=False)
    for bound, is_noted in (("0.024", False), ("0.025", True)):  # the mean event rate of 20 classes is 5 %
        done = run("measure", path, "--lens", "classwise", "--fail-on", f"ece@classwise>{bound}")
        assert ("mean event rate of the classes, 5 %" in done.stderr) is is_noted, done.output
