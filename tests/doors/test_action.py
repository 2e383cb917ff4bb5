"""Does the script of the GitHub Action write report, picture and comment, and pass on the status of the gates?"""

from __future__ import annotations

import json
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
SCRIPT = ROOT / ".ci" / "pull_request.sh"
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
    ran = subprocess.run(
        ["bash", SCRIPT, "report", folder / name], env=variables, capture_output=True, encoding="utf-8", check=False
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
    assert "artifact `audit` of [this run](https://github.com/owner/model/actions/runs/7)" in comment
    assert comment.endswith("\n<!-- trueodds: audit -->\n")
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


# Stands for GitHub: prints the comments of a file as `gh api --jq` does, and notes what is written.
GH = """#!/usr/bin/env python
import json, os, sys
arguments = sys.argv[1:]
if arguments[:2] == ["api", "graphql"]:
    print(os.environ["LOGIN"])
    sys.exit()
if "--paginate" in arguments:
    sys.stdout.write(open(os.environ["COMMENTS"], encoding="utf-8").read())
else:
    with open(os.environ["CALLS"], "a", encoding="utf-8") as file:
        file.write(json.dumps(arguments) + "\\n")
"""
BOT = "github-actions[bot]"


@pytest.mark.parametrize(
    ("comments", "login", "written"),
    [
        ([], BOT, ["POST", "repos/owner/model/issues/5/comments"]),
        # The last comment of the bot is another one's, and a person quotes ours.
        (
            [
                (1, BOT, "lint"),
                (2, "ann", "> <!-- trueodds: r -->"),
                (3, BOT, "a\n<!-- trueodds: r -->"),
                (4, BOT, "coverage"),
            ],
            BOT,
            ["PATCH", "repos/owner/model/issues/comments/3"],
        ),
        ([(3, BOT, "<!-- trueodds: other -->")], BOT, ["POST", "repos/owner/model/issues/5/comments"]),
        ([(2, "ann", "<!-- trueodds: r -->")], BOT, ["POST", "repos/owner/model/issues/5/comments"]),
        ([(2, "an-app[bot]", "<!-- trueodds: r -->")], "an-app", ["PATCH", "repos/owner/model/issues/comments/2"]),
        ([(2, "ann", "<!-- trueodds: r -->")], "ann", ["PATCH", "repos/owner/model/issues/comments/2"]),
    ],
)
def test_only_our_comment_of_the_same_report_is_edited(comments, login, written, tmp_path):
    (tmp_path / "gh").write_text(GH.replace("/usr/bin/env python", sys.executable), encoding="utf-8")
    (tmp_path / "gh").chmod(0o755)
    lines = [json.dumps({"id": i, "author": author, "body": body}) + "\n" for i, author, body in comments]
    (tmp_path / "comments").write_text("".join(lines), encoding="utf-8")
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "COMMENTS": str(tmp_path / "comments"),
        "CALLS": str(tmp_path / "calls"),
        "LOGIN": login,
        "GITHUB_REPOSITORY": "owner/model",
        "NUMBER": "5",
    }
    subprocess.run(["bash", SCRIPT, "comment", "r"], env=environment, check=True, cwd=tmp_path)
    (call,) = [json.loads(line) for line in (tmp_path / "calls").read_text(encoding="utf-8").splitlines()]
    assert call == ["api", "--silent", "--method", *written, "--field", "body=@r/comment.md"]


def test_arrays_that_may_be_empty_are_expanded_as_bash_3_needs_it():
    script = SCRIPT.read_text(encoding="utf-8")
    for name in re.findall(r"^(\w+)=\(\)$", script, re.MULTILINE):
        guarded = f'${{{name}[@]+"${{{name}[@]}}"}}'
        assert guarded in script
        commands = re.sub(r"^ *#.*$", "", script, flags=re.MULTILINE)
        assert f"{{{name}[@]}}" not in commands.replace(guarded, "")


def test_two_uses_of_the_action_in_a_run_can_have_different_artifacts():
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    (upload,) = [step for step in action["runs"]["steps"] if "upload-artifact" in step.get("uses", "")]
    assert upload["with"]["name"] == "${{ inputs.name }}"
    assert upload["with"]["path"] == "${{ runner.temp }}/trueodds/${{ inputs.name }}"  # no folder of the checkout
    for step in action["runs"]["steps"]:
        if "pull_request.sh" in step.get("run", ""):
            assert step["env"]["FOLDER"] == upload["with"]["path"]
            assert step["run"].endswith(' "$FOLDER"')


def test_the_action_calls_the_script_with_inputs_in_the_environment_only():
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    steps = action["runs"]["steps"]
    assert all("${{ inputs" not in step.get("run", "") for step in steps)  # else a title could run as code
    used = set(re.findall(r"inputs\.(\w+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert used == set(action["inputs"])
    assert any("pull_request.sh" in step.get("run", "") for step in steps)
