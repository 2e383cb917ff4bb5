"""Does the script of the GitHub Action write report, picture and comment, and pass on the status of the gates?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

ROOT = Path(__file__).parents[2]
yaml = pytest.importorskip("yaml")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the script needs bash"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder, rng = tmp_path_factory.mktemp("action"), np.random.default_rng(0)
    z = rng.normal(size=2000)
    y = (rng.random(2000) < expit(z)).astype(int)
    for name, factor in (("good", 1.0), ("bad", 2.5)):
        pd.DataFrame({"outcome": y, "score": expit(factor * z)}).to_csv(folder / f"{name}.csv", index=False)
    return folder


def run(folder: Path, name: str, **environment: str) -> tuple[int, str, str]:
    """Run the script; returns its exit status, the status that it reports, and the comment."""
    variables = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "OPTIONS": "--label outcome --probs 'score'",
        "GITHUB_OUTPUT": str(folder / f"{name}.output"),
        "GITHUB_RUN_ID": "7",
        "GITHUB_REPOSITORY": "owner/model",
        **environment,
    }
    script = ROOT / ".ci" / "pull_request.sh"
    ran = subprocess.run(
        ["bash", script, folder / name], env=variables, capture_output=True, encoding="utf-8", check=False
    )
    code = (folder / f"{name}.output").read_text(encoding="utf-8").strip()
    return ran.returncode, code, (folder / name / "comment.md").read_text(encoding="utf-8")


def test_an_audit_that_fails_a_gate_has_report_picture_and_status_1(folder):
    status, code, comment = run(folder, "audit", PREDICTIONS=str(folder / "bad.csv"), GATES="ece.low>0.02\nbrier>0.9")
    assert (status, code) == (0, "code=1")
    assert comment.startswith("### Calibration: a gate failed")
    assert "gate failed: ece.low" in comment
    chart = re.search(r"```mermaid\n(.*?)```", comment, re.DOTALL)[1]
    bars, line = (re.search(rf"{kind} \[(.*?)\]", chart)[1].split(", ") for kind in ("bar", "line"))
    assert len(bars) == len(line) == 10
    assert "https://github.com/owner/model/actions/runs/7" in comment
    names = {file.name for file in (folder / "audit").iterdir()}
    assert {"report.html", "report.json", "reliability.png", "comment.md"} <= names


def test_a_comparison_passes_if_the_new_model_is_better(folder):
    paths = {"PREDICTIONS": str(folder / "good.csv"), "BASELINE": str(folder / "bad.csv")}
    options = "--label outcome --probs score --estimator log_loss"
    status, code, comment = run(folder, "compare", **paths, OPTIONS=options, GATES="difference.low>0")
    assert (status, code) == (0, "code=0")
    assert "log_loss good − bad" in comment
    assert (folder / "compare" / "report.html").exists()


def test_a_missing_file_is_status_2_with_the_error_in_the_comment(folder):
    _, code, comment = run(folder, "missing", PREDICTIONS=str(folder / "none.csv"))
    assert code == "code=2"
    assert "could not be made" in comment
    assert "TO301" in comment


def test_the_action_calls_the_script_with_inputs_in_the_environment_only():
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    steps = action["runs"]["steps"]
    assert all("${{ inputs" not in step.get("run", "") for step in steps)  # else a title could run as code
    used = set(re.findall(r"inputs\.(\w+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert used == set(action["inputs"])
    assert any("pull_request.sh" in step.get("run", "") for step in steps)
