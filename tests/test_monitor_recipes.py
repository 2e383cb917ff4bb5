"""Do the recipes of the page on monitoring run: the command, cron, GitHub Actions, Airflow and Dask?"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import trueodds as to

PAGE = Path(__file__).parents[1] / "docs" / "how_to" / "monitor_a_model.md"
SECTION = PAGE.read_text(encoding="utf-8").partition("## Run it every night\n")[2].partition("\n## ")[0]
AS_OF = "2026-05-01T02:15:00"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt" or shutil.which("sh") is None, reason="the recipes are for a POSIX shell"),
]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)


@pytest.fixture(params=["drift", "calm"])
def case(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder with the table of predictions, which it leaves empty of labels after April 16."""
    rng = np.random.default_rng(1)
    day = np.repeat(np.arange("2026-01-01", "2026-05-01", dtype="datetime64[D]"), 300)
    risk = rng.beta(2, 18, day.size)
    factor = np.where(day < np.datetime64("2026-03-01"), 1, 1.4 if request.param == "drift" else 1)
    event = np.where(day + 14 < np.datetime64("2026-05-01"), rng.random(day.size) < factor * risk, None)
    moment = day.astype("datetime64[s]") + rng.integers(0, 86_400, day.size).astype("timedelta64[s]")
    table = pd.DataFrame({"event": pd.array(event, dtype="boolean"), "risk": risk, "predicted_at": moment})
    table.to_parquet(tmp_path / "predictions.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return str(request.param)


def shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", command], capture_output=True, encoding="utf-8", check=False)


def test_the_script_for_cron_prints_on_an_alarm_or_error_only(case: str) -> None:
    Path("nightly.sh").write_text(next(block for block in blocks("sh") if "nightly.sh" in block), encoding="utf-8")
    is_alarm = case == "drift"
    ran = shell(f"sh ./nightly.sh {AS_OF}")
    assert ran.returncode == int(is_alarm), ran.stdout
    assert ("Alarm at cohort 2026-03-" in ran.stdout) is is_alarm
    assert bool(ran.stdout) is is_alarm
    assert to.load("monitor.json").report().alarm is is_alarm
    late = shell("sh ./nightly.sh 2026-06-01")  # labels are missing, whose horizon has passed
    assert (late.returncode, "TO907" in late.stdout) == (2, True)


def test_the_command_runs(case: str) -> None:
    command = shell(blocks("sh")[0])
    assert command.returncode == (case == "drift"), command.stderr
    assert Path("monitor.html").exists()


def test_the_commands_of_the_workflow_run_and_its_cache_has_the_state(case: str) -> None:
    """All but the installation and the query of the user, which are not part of the package."""
    workflow = pytest.importorskip("yaml").safe_load(blocks("yaml")[0])
    assert re.fullmatch(r"\d+ \d+ \* \* \*", workflow[True]["schedule"][0]["cron"])  # YAML 1.1 reads `on` as true
    steps = workflow["jobs"]["monitor"]["steps"]
    install, moment, query, command = (step["run"] for step in steps if "run" in step)
    assert install == "pip install './trueodds[files,report]'"
    assert query.startswith("python export.py predictions.parquet")
    assert shell(moment).returncode == 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\n", Path("as_of.txt").read_text(encoding="utf-8"))
    Path("as_of.txt").write_text(f"{AS_OF}\n", encoding="utf-8")
    ran = shell(command)
    assert ran.returncode == (case == "drift"), ran.stderr
    cached = [step["with"]["path"] for step in steps if step.get("uses", "").startswith("actions/cache/")]
    assert cached == ["monitor.json", "monitor.json"]
    uploaded = [step["with"]["path"] for step in steps if step.get("uses", "").startswith("actions/upload-artifact")]
    assert all(Path(path).exists() for path in (*cached, *uploaded))
    saves = [step for step in steps if step.get("if") == "always()"]  # also after an alarm, which fails the step
    assert [step["uses"].split("@")[0] for step in saves] == ["actions/cache/save", "actions/upload-artifact"]


def test_the_commands_after_an_alarm_recalibrate_confirm_and_reset(case: str) -> None:
    shell(blocks("sh")[0])
    table = pd.read_parquet("predictions.parquet").dropna()
    is_later = table["predicted_at"] >= "2026-04-01"
    table[~is_later & (table["predicted_at"] >= "2026-03-01")].to_parquet("since_onset.parquet")
    table[is_later].to_parquet("later.parquet")
    page = PAGE.read_text(encoding="utf-8").partition("## How to react\n")[2]
    commands = re.findall(r"^trueodds .*$", page.partition("```sh\n")[2].partition("```")[0], re.MULTILINE)
    codes = [shell(command).returncode for command in commands]
    assert codes == [0, 0, int(case == "calm"), 0]  # a calm model is not improved
    assert not to.load("monitor.json").report().alarm


def test_the_task_for_airflow_fails_on_an_alarm(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decorators of Airflow stand aside, and the task gets the moment of the extraction."""

    class AirflowFailException(Exception):
        """The exception of Airflow that is not retried."""

    def run_task(function: object) -> object:
        return lambda: function(as_of=AS_OF)  # type: ignore[operator]

    sdk, exceptions = types.ModuleType("airflow.sdk"), types.ModuleType("airflow.exceptions")
    vars(sdk).update(dag=lambda **_: lambda function: function, task=run_task)
    vars(exceptions).update(AirflowFailException=AirflowFailException)
    for module in (types.ModuleType("airflow"), sdk, exceptions):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    code = compile(next(block for block in blocks("py") if "airflow" in block), "dag", "exec", dont_inherit=True)
    for _ in range(2):  # the second night continues from the state
        if case == "drift":
            with pytest.raises(AirflowFailException, match="Alarm at cohort 2026-03"):
                exec(code, {})
        else:
            exec(code, {})
    assert to.load("monitor.json").n_judged == 106


def test_the_monitors_of_partitions_add_up(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("dask.dataframe")
    table = pd.read_parquet("predictions.parquet")
    Path("predictions").mkdir()
    for part in range(3):  # every day is in each part
        table[part::3].to_parquet(f"predictions/{part}.parquet")
    exec(compile(next(block for block in blocks("py") if "dask" in block), "parts", "exec", dont_inherit=True), {})
    assert capsys.readouterr().out.startswith("Alarm at cohort 2026-03-" if case == "drift" else "No alarm")
