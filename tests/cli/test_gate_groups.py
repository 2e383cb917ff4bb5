"""Gates on the estimate of every group, and the note on bounds that are large for the event rate."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import trueodds as to
from tests.cli.conftest import Run
from tests.slow_parameters import slow_except

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
    done = run("audit", rare, "--fail-on", "ece>0.1", "--fail-on", "o_e[worst].low>1.25")
    assert "o_e[worst].low>1.25" in done.stderr  # the gate at fault, not the first one
    assert "ece>0.1" not in done.stderr


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


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> str:
    """66 cells, of which the smallest, `M08 z`, has about twice as many events as predicted."""
    rng = np.random.default_rng(6)
    frames = []
    for month in range(11):
        for i, site in enumerate("abcdez"):
            n = 300 if site == "z" else 400 + 20 * i
            p = rng.beta(3, 27, n)
            factor = 2.4 if (month, site) == (8, "z") else 1.0
            label = (rng.random(n) < np.minimum(factor * p, 1)).astype(int)
            frames.append(pd.DataFrame({"label": label, "pd": p, "ms": f"M{month:02d} {site}"}))
    path = tmp_path_factory.mktemp("cells") / "cells.parquet"
    pd.concat(frames).to_parquet(path)
    return str(path)


@pytest.fixture(scope="module")
def calm_cells(tmp_path_factory: pytest.TempPathFactory) -> str:
    """12 calibrated cells."""
    events = np.tile(np.arange(100) < 20, 12)  # in every cell 20 of 100, as predicted
    frame = pd.DataFrame(
        {"label": events.astype(int), "pd": 0.2, "ms": np.repeat([f"c{i:02d}" for i in range(12)], 100)}
    )
    path = tmp_path_factory.mktemp("calm") / "calm.parquet"
    frame.to_parquet(path)
    return str(path)


CELLS = ("--probs", "pd", "--group", "ms")
RATIO_GATES = ("--fail-on", "o_e[worst].low>1.25", "--fail-on", "o_e[worst].high<0.6")


@pytest.mark.slow
def test_the_smallest_of_66_cells_fails_the_gates(run: Run, cells: str) -> None:
    done = run("groups", cells, *CELLS, "--estimator", "o_e", *RATIO_GATES, "--fail-on", "reject")
    assert done.exit_code == 1
    assert "66 miscalibrated" in done.stdout.splitlines()[0]
    worst, other, reject = gate_lines(done.stderr)
    assert worst.startswith("gate failed: o_e[worst].low (ms=M08 z) = ")
    assert other.startswith("gate passed: o_e[worst].high (")
    assert reject.startswith("gate failed: reject")
    named = run("groups", cells, *CELLS, "--estimator", "o_e", "--fail-on", "o_e[ms=M08 z].low>1.25")
    assert named.exit_code == 1


@pytest.mark.slow
@pytest.mark.parametrize("mode", slow_except(["exact", "tally"], ["exact"]))
def test_the_newest_of_53_weeks_fail_the_gates_of_an_audit(run: Run, folder: Path, mode: str) -> None:
    # 200 rows per week and 60 in the newest two, in which 2.5 times as many events occur as predicted.
    rng, sizes = np.random.default_rng(1), [200] * 51 + [60] * 2
    week = np.repeat([f"W{i:02d}" for i in range(1, 54)], sizes)
    p = rng.uniform(0.15, 0.25, len(week))
    label = rng.random(len(week)) < np.where(week >= "W52", 2.5, 1.0) * p
    pd.DataFrame({"label": label.astype(int), "p": p, "week": week}).to_parquet(folder / "weeks.parquet")
    words = ("--probs", "p", "--group", "week", "--mode", mode, "--brief")
    done = run(
        "audit", folder / "weeks.parquet", *words, *RATIO_GATES, "--fail-on", "reject", "--fail-on", "ece[week=W53]>0.2"
    )
    assert done.exit_code == 1, done.output
    first, second, _, reject, ece = gate_lines(done.stderr)
    assert re.match(r"gate failed: o_e\[worst\].low \(week=W5[23]\) = ", first)
    assert re.match(r"gate failed: o_e\[week=W5[23]\].low = ", second)
    assert reject.startswith("gate failed: reject (")
    assert ece.startswith("gate failed: ece[week=W53] = ")


@pytest.mark.parametrize("command", ["groups", "audit"])
@pytest.mark.parametrize("gate", ["ece[worst].low>0.4", "reject", "pvalue<0.01"])
def test_a_gate_on_all_groups_does_not_pass_if_some_were_not_examined(
    run: Run, calm_cells: str, command: str, gate: str
) -> None:
    words = (command, calm_cells, *CELLS, "--resamples", 1999, "--max-groups", 10, "--fail-on", gate)
    done = run(*words)
    assert done.exit_code == 2
    assert "error TO612" in done.stderr
    assert "could not be checked: 2 of 12 groups were not examined." in " ".join(done.stderr.split())
    accepted = run(*words, "--accept-unexamined")
    assert accepted.exit_code == 0, accepted.stderr
    assert "gate passed" in accepted.stderr


@pytest.mark.parametrize("mode", ["exact", "tally"])
def test_the_limit_of_an_audit_is_in_its_text_json_and_page(run: Run, calm_cells: str, folder: Path, mode: str) -> None:
    files = ("--json", folder / "a.json", "--html", folder / "a.html")
    done = run("audit", calm_cells, *CELLS, "--mode", mode, "--max-groups", 10, "--brief", *files)
    report = json.loads((folder / "a.json").read_text(encoding="utf-8"))
    assert len(report["groups"]) == 10
    assert len(report["among_groups"]["unexamined"]) == report["verdict"]["unexamined_groups"] == 2
    names = {group["label"] for group in (*report["groups"], *report["among_groups"]["unexamined"])}
    assert names == {f"ms=c{i:02d}" for i in range(12)}
    text = " ".join(done.stdout.split())
    assert "Inconclusive: " in text
    assert "2 of 12 groups were not examined" in text
    assert "Groups examined 10 of 12 (not examined: " in text
    assert "10 of 12" in (folder / "a.html").read_text(encoding="utf-8")


def test_an_examined_group_that_fails_a_gate_fails_it_whatever_the_others_are(run: Run, cells: str) -> None:
    words = ("groups", cells, *CELLS, "--estimator", "o_e", "--max-groups", 5)
    done = run(*words, "--fail-on", "o_e[worst].low>1.25", "--fail-on", "reject")
    assert done.exit_code == 1
    assert [line.split(" (")[0] for line in gate_lines(done.stderr)] == [
        "gate failed: o_e[worst].low", "gate failed: reject",
    ]  # fmt: skip


@pytest.mark.parametrize("command", ["groups", "audit"])
def test_a_group_that_exists_and_was_not_examined_is_named_as_such(run: Run, calm_cells: str, command: str) -> None:
    words = (command, calm_cells, *CELLS, "--max-groups", 1, "--resamples", 999)
    gates = ("--fail-on", "ece[ms=c11].low>0.4")
    done = run(*words, *gates)
    assert done.exit_code == 2
    message = " ".join(done.stderr.split())
    assert "the group exists, but was not examined" in message
    assert "Did you mean" not in message
    assert "Leave --max-groups out" in message
    assert run(*words, *gates, "--accept-unexamined").exit_code == 2
    assert run(command, calm_cells, *CELLS, "--resamples", 999, *gates).exit_code == 0


@pytest.mark.slow
def test_a_group_without_weight_does_not_pass_a_gate(run: Run, rare: str, folder: Path) -> None:
    frame = pd.read_csv(rare)
    frame.assign(weight=(frame["day"] != 1).astype(int)).to_csv(folder / "w.csv", index=False)
    words = (folder / "w.csv", *DAY, "--weight", "weight", "--resamples", 199)
    for command in ("groups", "audit"):
        done = run(command, *words, "--fail-on", "ece[worst].low>0.4")
        assert done.exit_code == 2
        assert "1 of 3 groups were not examined" in " ".join(done.stderr.split())
        named = run(command, *words, "--fail-on", "ece[day=1].low>0.4")
        assert named.exit_code == 2
        assert "day=1, with rows of weight 0 only" in " ".join(named.stderr.split())
        assert run(command, *words, "--accept-unexamined", "--fail-on", "ece[worst].low>0.4").exit_code == 0


def test_a_combination_without_rows_is_no_group(run: Run, folder: Path) -> None:
    frame = pd.DataFrame({"label": [0, 1] * 60, "p": 0.5, "a": ["u", "v", "v"] * 40, "b": ["x", "x", "y"] * 40})
    frame.to_csv(folder / "e.csv", index=False)
    words = ("groups", folder / "e.csv", "--probs", "p", "--group", "a", "--group", "b", "--resamples", 49)
    gate = ("--fail-on", "ece[a=u, b=y]>0.9")
    assert run(*words, "--crossings", "--fail-on", "ece[worst]>0.9").exit_code == 0
    empty = run(*words, "--crossings", *gate)
    assert empty.exit_code == 2
    assert "No row has a=u and b=y" in empty.stderr
    assert "with --crossings only" in run(*words, *gate).stderr
    assert "Write a=v, b=y." in run(*words, "--crossings", "--fail-on", "ece[b=y, a=v]>0.9").stderr


@pytest.fixture(scope="module")
def many_groups(tmp_path_factory: pytest.TempPathFactory) -> str:
    """150 calibrated groups of rare events, and one of 40 rows without events, although 16 are predicted."""
    rng = np.random.default_rng(1)
    site = np.repeat(np.arange(151), [40, *[8] * 150])
    p = np.where(site == 0, 0.4, rng.beta(2, 3, len(site)) * 0.05)
    label = (site > 0) & (rng.random(len(site)) < p)
    path = tmp_path_factory.mktemp("many") / "many.csv"
    pd.DataFrame({"label": label.astype(int), "p_1": p, "site": site}).to_csv(path, index=False)
    return str(path)


@pytest.mark.slow
def test_a_group_more_extreme_than_all_its_draws_never_passes(run: Run, many_groups: str) -> None:
    words = ("groups", many_groups, "--probs", "p_1", "--group", "site", "--fail-on", "reject", "--interval", "none")
    reduced = run(*words, "--resamples", 999)
    assert reduced.exit_code in (1, 2)  # but for the draws of 150 other groups it is rejected
    assert run(*words).exit_code == 1  # with the default number of draws it is rejected whatever they are


@pytest.mark.slow
def test_an_audit_of_a_tally_with_too_few_draws_for_its_groups_does_not_pass(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    site, p = np.repeat(np.arange(40), 10), rng.random(400)
    path = tmp_path / "calibrated.csv"
    pd.DataFrame({"label": (rng.random(400) < p).astype(int), "p_1": p, "site": site}).to_csv(path, index=False)
    words = ("audit", path, "--probs", "p_1", "--group", "site", "--mode", "tally", "--fail-on", "reject")
    done = run(*words, "--resamples", 199)  # Holm: 40/200 is the smallest joint p-value
    assert done.exit_code == 2
    assert "no p-value below 0.2 was possible" in done.stderr
    assert "Inconclusive" in done.stdout
    assert "the groups could not be tested, for too few null draws or clusters" in " ".join(done.stdout.split())


@pytest.mark.parametrize("command", ["groups", "audit"])
@pytest.mark.parametrize("condition", ["reject", "pvalue<=0.05"])
def test_groups_of_one_cluster_each_do_not_pass_a_gate(run: Run, tmp_path: Path, command: str, condition: str) -> None:
    rng = np.random.default_rng(0)
    site, p = np.arange(300) % 6, rng.uniform(0.2, 0.6, 300)
    path = tmp_path / "sites.csv"
    pd.DataFrame({"label": (rng.random(300) < p).astype(int), "p_1": p, "site": site}).to_csv(path, index=False)
    words = (command, path, "--probs", "p_1", "--group", "site", "--cluster", "site", "--fail-on", condition)
    done = run(*words, "--resamples", 199)
    assert done.exit_code == 2
    assert "no p-value below 1 was possible" in done.stderr
    assert "Groups need more clusters" in done.stderr


@pytest.mark.parametrize(
    ("command", "clusters", "exit_code"), [("groups", 5, 2), ("groups", 6, 0), ("audit", 7, 2), ("audit", 8, 0)]
)
def test_a_group_of_too_few_clusters_does_not_pass_beside_others(
    run: Run, tmp_path: Path, command: str, clusters: int, exit_code: int
) -> None:
    # With signs of G clusters flipped, p ≥ 2^(1−G): 1/16 > .05 ≥ 1/32. In an audit whose lens is not rejected,
    # the groups have a quarter of 95 % of the level, .0119: 1/64 > .0119 ≥ 1/128. The other group has 20 clusters.
    rng = np.random.default_rng(1)
    p, row = rng.uniform(0.2, 0.6, 400), np.arange(400)
    few = row < 100
    frame = pd.DataFrame({"label": (rng.random(400) < p).astype(int), "p_1": p})
    frame["site"], frame["ward"] = np.where(few, "few", "many"), np.where(few, row % clusters, 100 + row % 20)
    path = tmp_path / "wards.csv"
    frame.to_csv(path, index=False)
    words = (command, path, "--probs", "p_1", "--group", "site", "--cluster", "ward", "--fail-on", "reject")
    done = run(*words, "--resamples", 499)
    assert done.exit_code == exit_code
    assert ("no p-value of site=few" in done.stderr) == (exit_code == 2)
    assert ("at least 2^(1 − G)" in " ".join(done.stderr.split())) == (exit_code == 2)
