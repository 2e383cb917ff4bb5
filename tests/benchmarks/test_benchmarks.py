"""Do the benchmarks measure what they say? On made-up figures, and once from end to end on very few rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.audit import measure_audit_in_memory
from benchmarks.peers import job_data, jobs, page, results, run, table, timing
from benchmarks.peers.results import Measurement, Results
from benchmarks.peers.timing import TimedCall
from benchmarks.peers.tools import ARRAY_COPY, TOOLS, TRUEODDS

from benchmarks import scaling

MACHINE = {
    "cpu": "?", "cores": 2, "avx512": None, "memory_gb": 1, "system": "?", "python": "3", "load": 0.0,
    "date": "2026-01-01",
}  # fmt: skip


def make_results(*measurements: Measurement, differs: dict[str, str] | None = None) -> Results:
    tools = {one.tool: {"version": "1", "differs": {}} for one in measurements}
    tools["quick"] = {"version": "1", "differs": differs or {}}
    return Results(MACHINE, tools, [], {job.data: "1 × 1" for job in jobs.JOBS}, list(measurements))


def took(tool: str, wall: list[float], value: list[float] | None = None, label: str = "") -> Measurement:
    return Measurement("top-label", tool, label, wall, wall, 1.0, [0.1] if value is None else value)


# How it grows


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_the_exponent_of_made_up_times_is_found(power: float) -> None:
    times = {n: 3e-9 * n**power for n in (10_000, 100_000, 1_000_000)}
    assert scaling.fit_exponent(times) == pytest.approx(power, abs=1e-9)


def test_what_a_call_costs_at_all_does_not_flatten_the_exponent() -> None:
    # At 1,000 rows the millisecond of the call is all there is; the slope is taken from 10,000 on.
    times = {1_000: 1e-3} | {n: 1e-7 * n for n in (10_000, 100_000)}
    assert scaling.fit_exponent(times) == pytest.approx(1.0)


def test_one_time_has_no_exponent() -> None:
    assert scaling.fit_exponent({1_000: 1.0}) is None


def test_the_stated_exponent_is_read_from_the_docstring() -> None:
    class Square:
        """It pairs rows. Cost: O(n²m) time; O(n log n) for one score."""

    class Bins:
        """Cost: O(n log k) time, O(k) memory."""

    class Draws(Bins):
        """Cost as for ECE."""

    assert [scaling.read_stated_cost(kind)[1] for kind in (Square, Bins, Draws, int)] == [2.0, 1.0, 1.0, None]


def test_the_columns_of_the_scaling_table_are_aligned_for_every_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scaling, "measure_seconds", lambda *_: 1.0)
    scaling.print_scaling(10_000, ["ece", "decision_regret", "calibration_in_the_large", "consistency"], 2.0)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6  # the header, three estimators, and `decision_regret` and `consistency` among the tests
    assert len({len(line) for line in lines}) == 1


# What the table says


def test_the_ratio_is_the_fastest_peer_over_ours_least_over_least() -> None:
    made = make_results(took(TRUEODDS, [0.03, 0.02]), took("slow", [0.5]), took("quick", [0.09, 0.08]))
    (row,) = results.results_by_job(made)
    assert row.ratio == pytest.approx(4.0)  # 0.08 / 0.02
    assert "quick ÷ ours = 4" in table.format_results(made)


def test_a_peer_with_another_value_does_not_count_as_faster() -> None:
    made = make_results(took(TRUEODDS, [0.02]), took("slow", [0.5]), took("quick", [0.01], [0.2]))
    (row,) = results.results_by_job(made)
    assert row.ratio == pytest.approx(25.0)
    assert "DIFFERS" in table.format_results(made)


def test_a_peer_whose_value_is_not_compared_counts() -> None:
    made = make_results(took(TRUEODDS, [0.02]), took("quick", [0.01], [0.2]), differs={"top-label": "other draws"})
    (row,) = results.results_by_job(made)
    assert row.ratio == pytest.approx(0.5)


def test_our_time_is_reported_in_copies_of_the_array() -> None:
    made = make_results(took(TRUEODDS, [0.02]), took(ARRAY_COPY, [0.01], [], "copyto"))
    assert "ours = 2 × copyto" in table.format_results(made)


def test_a_promised_time_is_checked() -> None:
    made = make_results(Measurement("draws", TRUEODDS, "redraw", [0.02], [0.02], 1.0, [0.1]))
    assert "OVER 10 ms" in table.format_results(made)


def test_a_tool_that_failed_is_reported_and_does_not_stop_the_rest() -> None:
    made = make_results(took(TRUEODDS, [0.02]), Measurement("top-label", "slow", note="ValueError: no"))
    assert "slow: ValueError: no" in table.format_results(made)


def test_a_time_has_three_digits_and_a_unit() -> None:
    assert [table.format_seconds(t) for t in (2.0, 0.0123, 4.56e-5)] == ["2 s", "12.3 ms", "45.6 µs"]


def test_patience_limits_the_turns() -> None:
    assert run.plan_turns(4.0, 7, 6.0) == (0, 0)  # the call that told so was enough
    assert run.plan_turns(1.0, 7, 6.0) == (5, 1)
    assert run.plan_turns(1e-3, 7, 6.0) == (7, 10)


# What is measured


def test_the_peak_of_a_job_is_seen_though_it_is_given_back() -> None:
    def work() -> float:
        return float(np.ones(5 << 17).sum())  # 5 MB of float64

    _, peak = timing.measure_peak(work)
    assert 4.5 < peak < 50


def test_what_is_made_anew_is_made_for_every_call() -> None:
    made: list[int] = []
    timed = TimedCall(lambda value: value, make_argument=lambda: made.append(1) or len(made))
    assert timed.run(3)["value"] == [3.0]


def test_labels_are_drawn_from_the_predictions() -> None:
    arrays = job_data.simulate_predictions(20_000, 10)
    # Of the labels 95 % follow P and the others are even: the mean of 1[y = k] − that is within 5 standard errors of 0.
    expected = 0.95 * arrays["P"].mean(axis=0) + 0.05 / 10
    observed = np.bincount(arrays["y"], minlength=10) / 20_000
    assert np.abs(observed - expected).max() < 5 * np.sqrt(0.1 / 20_000)


@pytest.mark.slow
def test_every_tool_has_only_tasks_of_the_jobs() -> None:
    assert set(TOOLS) >= {TRUEODDS, ARRAY_COPY}
    tasks = {job.task for job in jobs.JOBS}
    for tool in (TRUEODDS, ARRAY_COPY):
        process = run.ToolProcess(tool, sys.executable)
        assert set(process.description["tasks"]) <= tasks
        process.close()


@pytest.mark.slow
def test_a_comparison_on_few_rows_runs_from_end_to_end(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    made = run.run_jobs(["top-label", "draws"], ["scipy"], None, repeats=2, max_seconds=0.2, scale=0.001)
    row, _ = results.results_by_job(made)
    assert row.ours is not None
    assert [one.label for one in row.copies] == ["copyto", "copy"]
    page.write_page(made, tmp_path)
    (saved,) = page.load_results(tmp_path / "speed.json").values()
    assert saved == made
    assert "| trueodds |" in (tmp_path / "speed.md").read_text(encoding="utf-8")
    assert (tmp_path / "speed.svg").stat().st_size > 1000


@pytest.mark.slow
def test_the_page_has_a_column_for_each_processor_and_keeps_what_is_not_run_again(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    on_intel = make_results(took(TRUEODDS, [0.002]), took("peer", [0.010]))
    on_intel.machine = MACHINE | {"cpu": "Intel(R) Xeon(R) Processor"}
    both_jobs = make_results(
        took(TRUEODDS, [0.004]), took("peer", [0.012]), Measurement("isotonic", TRUEODDS, "", [0.5], [0.5], 1.0, [0.1])
    )
    one_job = make_results(took(TRUEODDS, [0.003]), took("peer", [0.012]))
    with_more_cores = make_results(took(TRUEODDS, [0.001]), took("peer", [0.006]))
    with_more_cores.machine = MACHINE | {"cores": 8}
    for made in (on_intel, both_jobs, with_more_cores):
        page.write_page(made, tmp_path)
    with (tmp_path / "speed.md").open("a", encoding="utf-8") as file:
        file.write(f"\n{page.HAND_WRITTEN}\n\nBy hand.\n")
    page.write_page(one_job, tmp_path)
    lines = (tmp_path / "speed.md").read_text(encoding="utf-8").splitlines()
    assert "| trueodds | 2 ms | 3 ms | 1 ms | 1.0 MB | 0.100000 |  |" in lines
    assert "| peer | 10 ms | 12 ms | 6 ms | 1.0 MB | 0.100000 | agrees |" in lines
    assert f"| {jobs.JOBS[0].title} | 5 | 4 | 6 |" in lines
    assert "- Intel Xeon, 2 cores: peer ÷ ours = 5; CPU 5" in lines
    assert "- ?, 2 cores: peer ÷ ours = 4; CPU 4" in lines
    assert "- ?, 8 cores: peer ÷ ours = 6; CPU 6" in lines
    assert "| trueodds |  | 500 ms |  | 1.0 MB | 0.100000 |  |" in lines
    assert lines[-4:] == ["", page.HAND_WRITTEN, "", "By hand."]


def test_the_command_lists_its_parts() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--help"], cwd=run.ROOT, capture_output=True, text=True, encoding="utf-8"
    )
    assert all(part in result.stdout for part in ("peers", "startup", "audit", "tally", "scaling", "coverage"))


@pytest.mark.slow
def test_an_audit_in_memory_is_timed_and_its_memory_is_measured() -> None:
    (name, wall), (_, cpu), (_, memory) = measure_audit_in_memory(2000, 3, repeats=2)
    assert name == "audit 2,000 × 3 in memory"
    assert float(wall.removesuffix(" s wall")) > 0
    assert float(cpu.removesuffix(" CPU-s")) > 0
    assert memory.endswith(" MB beside 0 MB of data")
