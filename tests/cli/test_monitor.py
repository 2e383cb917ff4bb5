"""monitor: the command is the class, its exit status is the alarm, and no error harms the state."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import trueodds as to
from tests.cli.conftest import Run
from tests.test_schemas import assert_valid
from trueodds.monitoring.open_metrics import open_metrics

DAYS = 40
AS_OF = "2026-05-01"
FIRST = ("--probs", "risk", "--time", "at", "--horizon", "5d", "--center", "0.25")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Forty days of predictions, of which those from day 15 on are too low."""
    rng = np.random.default_rng(11)
    day = np.repeat(np.arange(DAYS), rng.integers(20, 120, DAYS))
    p = rng.beta(2, 6, day.size)
    y = rng.random(day.size) < np.where(day < 15, p, np.minimum(1.25 * p, 1))
    at = np.datetime64("2026-03-01T08:00") + day * np.timedelta64(1, "D")
    region = rng.choice(["north", "south"], day.size)
    columns = {"label": y.astype(int), "risk": p, "at": at, "region": region, "key": np.arange(day.size)}
    return pd.DataFrame(columns)


@pytest.fixture
def table(frame: pd.DataFrame, tmp_path: Path) -> Path:
    path = tmp_path / "preds.parquet"
    frame.to_parquet(path)
    return path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "monitor.json"


def part(frame: pd.DataFrame, path: Path, first: str, last: str) -> Path:
    """A file of the rows of some days, both included."""
    day = frame["at"].dt.strftime("%Y-%m-%d")
    frame[(day >= first) & (day <= last)].to_csv(path, index=False)
    return path


def from_python(frame: pd.DataFrame, **settings: Any) -> Any:
    preds = to.Predictions(frame["label"], frame["risk"], group={"region": frame["region"]})
    return to.Monitor("5d", center=0.25, **settings).update(preds, frame["at"], AS_OF).report()


def test_the_command_gives_the_report_of_the_class(run: Run, frame: pd.DataFrame, table: Path, state: Path) -> None:
    result = run("monitor", table, "--state", state, *FIRST, "--as-of", AS_OF, "--group", "region", "--json", "-")
    assert result.exit_code == 1, result.stderr
    report = from_python(frame, group="region")
    document = assert_valid(json.loads(result.stdout), "monitor")
    advice = document.pop("advice")
    assert document == {name: value for name, value in report.to_dict().items() if name != "advice"}
    text = run("monitor", "--state", state).stdout  # without files
    assert text.startswith(report.describe().split("Advice")[0])
    assert "to.fit" not in text
    assert advice["fit_command"] in text
    assert "since_onset.parquet --probs risk --method shift" in text
    assert advice["confirm_command"] in text
    assert "later.parquet --probs risk --out recalibrated.parquet" in text


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "arrow"])
def test_times_are_read_from_every_format(
    run: Run, frame: pd.DataFrame, tmp_path: Path, state: Path, suffix: str
) -> None:
    path = tmp_path / f"preds.{suffix}"
    if suffix == "csv":
        frame.to_csv(path, index=False)
    elif suffix == "jsonl":
        frame.to_json(path, orient="records", lines=True, date_format="iso", double_precision=15)
    else:
        frame.to_feather(path)
    result = run("monitor", path, "--state", state, *FIRST, "--as-of", AS_OF, "--json", "-")
    assert json.loads(result.stdout)["log_evidence"] == pytest.approx(from_python(frame).log_evidence, rel=1e-9)


def test_later_calls_need_the_files_and_the_state_only(
    run: Run, frame: pd.DataFrame, tmp_path: Path, state: Path
) -> None:
    days = [("2026-03-01", "2026-03-10"), ("2026-03-11", "2026-03-20"), ("2026-03-21", "2026-04-30")]
    files = [part(frame, tmp_path / f"part{i}.csv", *ends) for i, ends in enumerate(days)]
    assert run("monitor", files[0], "--state", state, *FIRST).exit_code == 0
    assert run("monitor", files[1], "--state", state).exit_code == 0
    result = run("monitor", files[2], "--state", state, "--as-of", AS_OF, "--json", "-")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["log_evidence"] == pytest.approx(from_python(frame).log_evidence, abs=1e-9)


@pytest.mark.parametrize("is_pattern", [False, True])
def test_several_files_are_one_call_in_which_parts_of_a_cohort_are_joined(
    run: Run, frame: pd.DataFrame, tmp_path: Path, state: Path, is_pattern: bool
) -> None:
    frame[::2].to_parquet(tmp_path / "a-1.parquet")
    frame[1::2].to_parquet(tmp_path / "a-2.parquet")
    files = [tmp_path / "a-*.parquet"] if is_pattern else [tmp_path / "a-1.parquet", tmp_path / "a-2.parquet"]
    result = run("monitor", *files, "--state", state, *FIRST, "--as-of", AS_OF, "--json", "-")
    assert json.loads(result.stdout)["log_evidence"] == pytest.approx(from_python(frame).log_evidence, abs=1e-9)


def test_integers_are_times_of_an_integer_unit(run: Run, frame: pd.DataFrame, tmp_path: Path, state: Path) -> None:
    path = tmp_path / "preds.csv"
    frame.assign(at=(frame["at"] - frame["at"].min()).dt.days).to_csv(path, index=False)
    words = ("--time", "at", "--probs", "risk", "--unit", "integer", "--horizon", 5, "--as-of", 60, "--center", 0.25)
    result = run("monitor", path, "--state", state, *words, "--json", "-")
    assert result.exit_code == 1, result.stderr
    assert json.loads(result.stdout)["log_evidence"] == pytest.approx(from_python(frame).log_evidence, abs=1e-9)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_without_a_label_wait_for_it(
    run: Run, frame: pd.DataFrame, tmp_path: Path, state: Path, suffix: str
) -> None:
    path = tmp_path / f"preds.{suffix}"
    is_late = frame["at"] > "2026-04-06"
    unlabeled = frame.assign(label=frame["label"].astype(float).where(~is_late))
    unlabeled.to_csv(path, index=False) if suffix == "csv" else unlabeled.to_parquet(path)
    words = ("monitor", path, "--state", state, *FIRST)
    document = json.loads(run(*words, "--as-of", "2026-04-10", "--json", "-").stdout)
    assert document["status"]["open_unlabeled"] == int(is_late.sum())
    before = state.read_bytes()
    refused = run("monitor", path, "--state", state, "--as-of", "2026-04-20")
    assert refused.exit_code == 2
    assert "TO907" in refused.stderr
    assert "--missing least" in refused.stderr
    assert state.read_bytes() == before


def test_nothing_judged_yet_is_said_and_can_be_required(run: Run, table: Path, state: Path) -> None:
    words = ("monitor", table, "--state", state, "--probs", "risk", "--time", "at", "--horizon", "90d")
    refused = run(*words, "--require-judged")
    assert refused.exit_code == 2
    assert "TO911" in refused.stderr
    result = run("monitor", "--state", state)  # the rows are kept
    assert result.exit_code == 0
    assert result.stdout.startswith("Nothing judged yet: 40 open cohorts; the first counts from 2026-05-31 on.")
    document = json.loads(run("monitor", "--state", state, "--json", "-").stdout)
    assert (document["alarm"], document["status"]["judged"]) == (False, 0)
    assert "TN905" in [note["code"] for note in document["notes"]]


def test_an_alarm_lasts_until_it_is_reset(run: Run, table: Path, state: Path) -> None:
    assert run("monitor", table, "--state", state, *FIRST, "--as-of", AS_OF).exit_code == 1
    assert run("monitor", table, "--state", state, "--as-of", AS_OF).exit_code == 1
    assert run("monitor", "--state", state).exit_code == 1
    assert run("monitor", "--state", state, "--reset", "recalibrated").exit_code == 0
    document = json.loads(run("monitor", "--state", state, "--json", "-").stdout)
    assert document["status"]["reset_reason"] == "recalibrated"
    assert document["status"]["epoch"] == 1


def test_rows_that_are_given_with_a_reset_are_of_the_old_model_unless_it_says_since_when(
    run: Run, table: Path, state: Path
) -> None:
    """40 days from 2026-03-01, of which 10 begin on 2026-03-31 or later."""
    words = ("monitor", table, "--state", state, *FIRST, "--as-of", AS_OF, "--reset", "recalibrated", "--json", "-")
    document = json.loads(run(*words).stdout)
    assert (document["alarm"], document["status"]["judged"]) == (False, 0)
    state.unlink()
    document = json.loads(run(*words, "--since", "2026-03-31").stdout)
    assert document["status"]["judged"] == 10
    assert "TO603" in run("monitor", "--state", state, "--since", "2026-03-31").stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--alpha", "0.01"), "TO904"),
        (("--horizon", "6d"), "TO904"),
        (("--missing", "least"), "TO904"),
        (("--complete",), "TO904"),
        (("--group", "region"), "TO904"),
        (("--time", "day"), "TO904"),
        (("--label", "outcome"), "TO904"),
        (("--as-of", "2026-01-01"), "TO903"),
        (("--as-of", "2026-03-20"), "TO903"),
        (("--as-of", "yesterday"), "TO901"),
        (("--as-of", AS_OF, "--reset", " "), "TO203"),
        (("--fdr", "0.1"), "TO603"),
        (("--row-id", "region"), "TO904"),
        (("--openmetrics", "STATE"), "TO603"),
    ],
)
def test_an_error_leaves_the_state_as_it_was(
    run: Run, table: Path, state: Path, words: tuple[str, ...], code: str
) -> None:
    run("monitor", table, "--state", state, *FIRST, "--as-of", AS_OF)
    before = state.read_bytes()
    result = run("monitor", table, "--state", state, *(word.replace("STATE", str(state)) for word in words))
    assert result.exit_code == 2
    assert code in result.stderr
    assert state.read_bytes() == before
    assert sorted(path.name for path in state.parent.iterdir()) == ["monitor.json", "preds.parquet"]


@pytest.mark.slow
def test_a_backward_moment_fewer_rows_and_repeated_ids_are_refused(
    run: Run, frame: pd.DataFrame, tmp_path: Path, table: Path, state: Path
) -> None:
    run("monitor", table, "--state", state, *FIRST, "--row-id", "key")
    before = state.read_bytes()
    fewer = part(frame, tmp_path / "fewer.csv", "2026-03-01", "2026-04-08")
    assert "TO903" in run("monitor", fewer, "--state", state, "--as-of", "2026-04-08").stderr
    frame[:-5].to_csv(fewer, index=False)
    refused = run("monitor", fewer, "--state", state)
    assert refused.exit_code == 2
    assert "TO906" in refused.stderr
    assert "pass --allow-fewer." in refused.stderr
    pd.concat([frame, frame[:1]]).to_csv(fewer, index=False)
    assert "TO909" in run("monitor", fewer, "--state", state).stderr
    assert state.read_bytes() == before
    frame[:-5].to_csv(fewer, index=False)
    assert run("monitor", fewer, "--state", state, "--allow-fewer").exit_code in (0, 1)
    assert state.read_bytes() != before


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("monitor", "TABLE"), "TO601"),
        (("monitor", "--state", "STATE"), "TO301"),
        (("monitor", "TABLE", "--state", "STATE"), "TO601"),
        (("monitor", "TABLE", "--state", "TABLE", "--time", "at"), "TO603"),
        (("monitor", "TABLE", "--state", "STATE", "--time", "when", "--probs", "risk"), "TO304"),
        (("monitor", "TABLE", "--state", "STATE", "--time", "at", "--probs", "risk", "--horizon", "soon"), "TO203"),
        (("monitor", "TABLE", "--state", "STATE", "--time", "key", "--probs", "risk"), "TO901"),
        (("monitor", "--fleet"), "TO601"),
        (("monitor", "--fleet", "TABLE"), "TO905"),
        (("monitor", "--fleet", "TABLE", "--state", "STATE"), "TO603"),
    ],
)
def test_calls_that_cannot_be_made_have_a_code(
    run: Run, table: Path, state: Path, words: tuple[str, ...], code: str
) -> None:
    result = run(*({"TABLE": str(table), "STATE": str(state)}.get(word, word) for word in words))
    assert result.exit_code == 2
    assert code in result.stderr
    assert not state.exists()


@pytest.mark.parametrize(
    ("words", "got", "fix"),
    [
        (("--time", "att"), "got: --time att", "Select it with --time."),
        (("--time", "at", "--cluster", "kei"), "got: --cluster kei", "Select it with --cluster."),
        (("--time", "at", "--as-of", "1.5.2026"), "--as-of must be one moment.", "--as-of 2026-11-28"),
    ],
)
def test_an_error_names_the_option_that_was_given(
    run: Run, table: Path, state: Path, words: tuple[str, ...], got: str, fix: str
) -> None:
    result = run("monitor", table, "--state", state, "--probs", "risk", *words)
    assert result.exit_code == 2
    assert got in result.stderr
    assert fix in result.stderr


def test_the_moment_of_the_first_judgment_is_that_of_a_cohort_after_the_reset(
    run: Run, table: Path, state: Path
) -> None:
    run("monitor", table, "--state", state, *FIRST, "--as-of", "2026-04-09")
    result = run("monitor", "--state", state, "--reset", "recalibrated")
    words = "Nothing judged yet: 6 open cohorts; those that began before the reset do not count."
    assert result.stdout.splitlines()[0] == words


def test_a_state_without_files_takes_no_options_of_rows(run: Run, table: Path, state: Path) -> None:
    run("monitor", table, "--state", state, *FIRST)
    for words in (("--as-of", AS_OF), ("--label", "y"), ("--time", "at"), ("--allow-fewer",)):
        result = run("monitor", "--state", state, *words)
        assert result.exit_code == 2
        assert "Without files no rows are read." in result.stderr


SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (-?[0-9.e+-]+|NaN|[+-]Inf)')
LABEL = re.compile(r'([a-z]+)="((?:[^"\\\n]|\\["\\n])*)"')


def parse_metrics(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """The samples by metric; every line must follow the rules of OpenMetrics 1.0."""
    assert text.endswith("\n# EOF\n")
    metrics: dict[str, list[tuple[dict[str, str], float]]] = {}
    described: dict[str, list[str]] = {}
    unescaped = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
    for line in text.removesuffix("# EOF\n").splitlines():
        if line.startswith("# "):
            _, kind, name, rest = line.split(" ", 3)
            assert kind in ("TYPE", "UNIT", "HELP")
            assert name not in metrics  # metadata come before the samples, once
            assert kind not in described.setdefault(name, [])
            described[name].append(kind)
            assert kind != "TYPE" or rest == "gauge"
            assert kind != "UNIT" or name.endswith(f"_{rest}")
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        labels = {
            key: re.sub(r'\\["\\n]', lambda found: unescaped[found[0]], value) for key, value in LABEL.findall(match[2])
        }
        assert list(described)[-1] == match[1]  # samples of a metric are together
        metrics.setdefault(match[1], []).append((labels, float(match[3])))
    assert metrics.keys() == described.keys()
    for samples in metrics.values():
        assert len({tuple(labels.items()) for labels, _ in samples}) == len(samples)
    return metrics


def test_the_metrics_follow_the_rules_of_openmetrics(run: Run, table: Path, state: Path, tmp_path: Path) -> None:
    path = tmp_path / "metrics.prom"
    words = ("--as-of", AS_OF, "--group", "region", "--openmetrics", path, "--json", "-")
    report = json.loads(run("monitor", table, "--state", state, *FIRST, *words).stdout)
    metrics = parse_metrics(path.read_text(encoding="utf-8"))
    values = {name.removeprefix("trueodds_monitor_"): samples[0][1] for name, samples in metrics.items()}
    assert values["alarm"] == 1
    assert values["log_evidence"] == report["log_evidence"]
    assert values["alarm_log_evidence"] == pytest.approx(np.log(20))
    assert (values["observed_events"], values["expected_events"]) == (
        report["error"]["observed"], report["error"]["expected"],
    )  # fmt: skip
    interval = report["error"]["interval"]
    assert (values["error_low"], values["error"], values["error_high"]) == (
        interval["low"], report["error"]["value"], interval["high"],
    )  # fmt: skip
    assert values["open_cohorts"] == report["status"]["open"]
    assert values["judged_rows"] == sum(row["rows"] for row in report["cohorts"])
    assert values["last_judged_timestamp_seconds"] == np.datetime64("2026-04-09T00:00", "s").astype(int)
    assert metrics["trueodds_monitor_alarm"][0][0] == {"model": "monitor"}
    shares = metrics["trueodds_monitor_evidence_share"]
    assert {labels["group"] for labels, _ in shares} == {"", "region=north", "region=south"}


def test_labels_of_metrics_are_escaped_and_missing_numbers_have_no_sample() -> None:
    name = 'a "quoted"\\path\nline'
    metrics = parse_metrics(open_metrics({name: to.Monitor().report()}))
    assert metrics["trueodds_monitor_alarm"] == [({"model": name}, 0.0)]
    assert "trueodds_monitor_error" not in metrics
    assert "trueodds_monitor_last_judged_timestamp_seconds" not in metrics


def test_the_metrics_of_a_fleet_have_the_samples_of_each_model(
    run: Run, frame: pd.DataFrame, table: Path, tmp_path: Path
) -> None:
    quiet = part(frame, tmp_path / "quiet.csv", "2026-03-01", "2026-03-14")
    paths = {name: tmp_path / f"{name}.{suffix}" for name, suffix in (("both", "prom"), ("drifting", "json"))}
    paths["quiet"] = tmp_path / "quiet.json"
    alone = {}
    for name, rows in (("drifting", table), ("quiet", quiet)):
        words = ("--state", paths[name], *FIRST, "--as-of", AS_OF, "--openmetrics", tmp_path / f"{name}.prom")
        run("monitor", rows, *words)
        alone[name] = parse_metrics((tmp_path / f"{name}.prom").read_text(encoding="utf-8"))
    result = run("monitor", "--fleet", paths["drifting"], paths["quiet"], "--openmetrics", paths["both"])
    assert result.exit_code == 1
    both = parse_metrics(paths["both"].read_text(encoding="utf-8"))
    assert both.pop("trueodds_monitor_needs_attention") == [({"model": "drifting"}, 1.0), ({"model": "quiet"}, 0.0)]
    assert both == {
        name: alone["drifting"].get(name, []) + alone["quiet"].get(name, [])
        for name in alone["drifting"] | alone["quiet"]
    }


def test_a_fleet_names_the_models_that_need_attention(
    run: Run, frame: pd.DataFrame, table: Path, tmp_path: Path
) -> None:
    quiet = part(frame, tmp_path / "quiet.csv", "2026-03-01", "2026-03-14")
    names = ["drifting", "quiet"]
    for name, rows in zip(names, (table, quiet), strict=True):
        run("monitor", rows, "--state", tmp_path / f"{name}.json", *FIRST, "--as-of", AS_OF)
    states = [tmp_path / f"{name}.json" for name in names]
    result = run("monitor", "--fleet", *states, "--json", "-")
    assert result.exit_code == 1
    document = assert_valid(json.loads(result.stdout), "fleet")
    assert [(member["name"], member["needs_attention"]) for member in document["members"]] == [
        ("drifting", True), ("quiet", False),
    ]  # fmt: skip
    result = run("monitor", "--fleet", *states)
    assert result.stdout.startswith("1 of 2 models needs attention (at most 5 % false discoveries on average).")
    assert run("monitor", "--fleet", states[1], "--fdr", "0.1").exit_code == 0
    assert "TN908" not in result.stdout
    assert "got: --html" in run("monitor", "--fleet", *states, "--html", tmp_path / "a.html").stderr
    assert "no file that matches" in run("monitor", "--fleet", tmp_path / "none-*.json").stderr


def test_the_page_is_that_of_the_report_with_options(run: Run, table: Path, state: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert run("monitor", table, "--state", state, *FIRST, "--as-of", AS_OF, "--html", path).exit_code == 1
    assert "trueodds fit since_onset.parquet" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_rows_in_batches_of_any_order_give_the_state_of_all_rows_at_once(
    run: Run, frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    shuffled = frame.sample(frac=1, random_state=0)
    path = tmp_path / f"shuffled.{suffix}"
    shuffled.to_parquet(path) if suffix == "parquet" else shuffled.to_csv(path, index=False)
    states = []
    for n_rows in (2**19, 300):
        monkeypatch.setattr(sys.modules["trueodds.cli.monitor"], "ROWS_PER_BATCH", n_rows)
        state = tmp_path / f"{n_rows}.json"
        options = ("--probs", "risk", "--time", "at", "--horizon", "60d", "--group", "region", "--row-id", "key")
        assert run("monitor", path, "--state", state, *options).exit_code == 0
        states.append(json.loads(state.read_text(encoding="utf-8")))
    whole, parts = states
    for key in ("model", "as_of", "columns", "epochs"):
        assert parts[key] == whole[key]
    assert parts["open"].keys() == whole["open"].keys()
    for number, cohort in whole["open"].items():
        other = parts["open"][number]
        for key in ("rows", "unlabeled", "labels", "fingerprint", "sample", "as_of"):
            assert other[key] == cohort[key]
        for name, views in cohort["sums"].items():
            for cell, sums in views[0]["cells"].items():
                assert other["sums"][name][0]["cells"][cell] == pytest.approx(sums, abs=1e-9)


def test_repeated_ids_and_clusters_are_found_across_batches(
    run: Run, frame: pd.DataFrame, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["trueodds.cli.monitor"], "ROWS_PER_BATCH", 500)
    path = tmp_path / "twice.csv"
    pd.concat([frame, frame.iloc[[0]]]).to_csv(path, index=False)
    for option, code in (("--row-id", "TO909"), ("--cluster", "TO910")):
        result = run("monitor", path, "--state", state, *FIRST, option, "key")
        assert (result.exit_code, code in result.stderr) == (2, True), result.stderr
        assert not state.exists()
    frame.to_csv(path, index=False)
    assert run("monitor", path, "--state", state, *FIRST, "--cluster", "key").exit_code == 1  # an alarm


def test_a_copy_of_a_file_is_refused_because_its_rows_would_count_twice(run: Run, table: Path, state: Path) -> None:
    copy = table.with_name("copy.parquet")
    shutil.copy(table, copy)
    done = run("monitor", table, copy, "--state", state, *FIRST, "--as-of", AS_OF)
    assert done.exit_code == 2
    assert "error TO603" in done.stderr
    assert "have the same content" in done.stderr
    assert not state.exists()
