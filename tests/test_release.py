"""Do the files of a release agree with each other: versions, requirements, addresses, workflows, contents?"""

from __future__ import annotations

import importlib
import math
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

import trueodds as to

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
STUDIES: dict[str, Any] = tomllib.loads((ROOT / "studies" / "pyproject.toml").read_text(encoding="utf-8"))
CONDA_NAMES = {"matplotlib": "matplotlib-base"}  # without its graphical backends


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def conda(requirement: str) -> str:
    """A requirement of pyproject.toml as the recipe writes it."""
    name, bound = re.fullmatch(r"([\w-]+)(.*)", requirement).groups()  # type: ignore[union-attr]
    return f"{CONDA_NAMES.get(name, name)} {bound}".strip()


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    return yaml.safe_load(read("conda/recipe.yaml"))


def test_every_file_states_the_same_version(recipe: dict[str, Any]) -> None:
    citation = yaml.safe_load(read("CITATION.cff"))
    stated = {
        PROJECT["project"]["version"],
        STUDIES["project"]["version"],
        citation["version"],
        recipe["context"]["version"],
    }
    assert stated == {to.__version__}
    assert f"## {to.__version__}" in read("CHANGELOG.md")


def test_the_recipe_requires_what_the_package_requires(recipe: dict[str, Any]) -> None:
    project, requirements = PROJECT["project"], recipe["requirements"]
    assert requirements["run"][1:] == [conda(line) for line in project["dependencies"] if ";" not in line]
    assert requirements["host"][2:] == [conda(line) for line in PROJECT["build-system"]["requires"]]
    optional = [conda(line) for name in ("files", "onnx", "report") for line in project["optional-dependencies"][name]]
    assert requirements["run_constraints"] == optional
    assert f">={recipe['context']['python_min']}" == project["requires-python"]
    assert recipe["build"]["python"]["entry_points"] == [f"{k} = {v}" for k, v in project["scripts"].items()]
    assert recipe["about"]["summary"] == project["description"]
    assert recipe["about"]["license"] == project["license"]


def test_the_studies_allow_no_older_version_than_the_package() -> None:
    bounds = [line for line in STUDIES["project"]["dependencies"] if not line.startswith("trueodds")]
    assert set(bounds) <= set(PROJECT["project"]["dependencies"])


def test_all_files_name_one_repository_and_one_site() -> None:
    urls = PROJECT["project"]["urls"]
    names = ["SECURITY.md", "CODE_OF_CONDUCT.md", "CITATION.cff", "conda/recipe.yaml", "pyproject.toml", "RELEASING.md"]
    files = [*(ROOT / name for name in names), *(ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    assert set(re.findall(r"github(?:usercontent)?\.com/[\w-]+/trueodds\b", text)) == {
        "github.com/trueodds/trueodds",
        "githubusercontent.com/trueodds/trueodds",
    }
    assert set(re.findall(r"[\w-]+\.github\.io/trueodds\b", text)) == {"trueodds.github.io/trueodds"}
    assert urls["Source"] == "https://github.com/trueodds/trueodds"
    assert urls["Documentation"] == "https://trueodds.github.io/trueodds"


def test_no_link_of_the_page_on_the_index_is_relative() -> None:
    page = read("README.md")
    for rule in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        page = re.sub(rule["pattern"], rule["replacement"].replace("$HFPR_VERSION", to.__version__), page)
    targets = re.findall(r"\]\(([^)]*)\)", page)
    assert len(targets) > 20
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    for path in re.findall(rf"/trueodds/trueodds/(?:blob/)?v{re.escape(to.__version__)}/([^)#]*)", page):
        assert (ROOT / path).exists(), path


@pytest.fixture
def release_check(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    monkeypatch.delitem(sys.modules, "release_check", raising=False)
    return importlib.import_module("release_check")


def test_someone_with_an_installed_package_can_run_the_readme(release_check: ModuleType) -> None:
    steps = release_check.installed_steps(ROOT / "README.md")
    assert any(step.startswith("python -c") and "import trueodds" in step for step in steps)
    assert "trueodds audit demo/digits.parquet --brief" in steps
    assert [step for step in steps if "make" in step.split("\n")[0]] == []


def test_every_required_file_is_in_the_repository(release_check: ModuleType) -> None:
    required = {kind: [pattern for has, pattern in release_check.rules(kind) if has] for kind in release_check.KINDS}
    assert [pattern for pattern in required["sdist"] if not (ROOT / pattern).exists()] == []
    inside = [pattern for pattern in required["pure"] if pattern.startswith("trueodds/")]
    assert [pattern for pattern in inside if not (ROOT / "src" / pattern).exists()] == []
    assert "trueodds/kernels/precompiled/target.json" in required["compiled"]


@pytest.mark.parametrize("line", ["pure has", "wheel has a.py", "pure hsa a.py", "pure, sdist has a.py"])
def test_a_line_of_the_list_of_contents_that_is_no_rule_is_a_failure(release_check: ModuleType, line: str) -> None:
    with pytest.raises(SystemExit, match=re.escape(line)):
        release_check.rules("pure", f"# comment\n\npure has b.py\n{line}\n")


class Rehearsal:
    """Stands for an environment in which each archive passes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: ModuleType, folder: Path, *names: str) -> None:
        self.used: list[str] = []
        dist = folder / "dist"
        dist.mkdir()
        for name in names:
            (dist / name).touch()
        monkeypatch.setattr(module, "find_python", lambda version: None if version == "3.99" else Path(sys.executable))
        monkeypatch.setattr(module.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=0, stdout="0"))
        monkeypatch.setattr(module.Release, "use", lambda _, __, title, **___: self.used.append(title))
        self.main = lambda *options: self.call(monkeypatch, module, folder, options)

    @staticmethod
    def call(monkeypatch: pytest.MonkeyPatch, module: ModuleType, folder: Path, options: tuple[str, ...]) -> int:
        monkeypatch.setattr(sys, "argv", ["release_check", "--out", str(folder), "--only", "install", *options])
        return module.main()


def test_a_python_or_wheel_that_is_absent_fails_the_rehearsal_unless_that_is_allowed(
    release_check: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("a-1-py3-none-any.whl", "a-1.tar.gz", "a-1-cp311-cp311-linux_x86_64.whl")
    rehearsal = Rehearsal(monkeypatch, release_check, tmp_path, *names)
    assert rehearsal.main("--python", "3.11") == 0
    assert rehearsal.used == ["pure 3.11", "compiled 3.11", "sdist"]
    assert "NOT CHECKED" not in capsys.readouterr().out
    assert rehearsal.main("--python", "3.11", "3.99") == 1
    assert "NOT CHECKED: Python 3.99, which is not installed" in capsys.readouterr().out
    assert rehearsal.main("--python", "3.11", "3.12") == 1
    assert "NOT CHECKED: *-cp312-*.whl, which is not in" in capsys.readouterr().out
    assert rehearsal.main("--python", "3.11", "3.99", "--allow-unchecked") == 0
    assert "NOT CHECKED: Python 3.99" in capsys.readouterr().out


def test_a_rehearsal_that_checks_nothing_fails_whatever_is_allowed(
    release_check: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rehearsal = Rehearsal(monkeypatch, release_check, tmp_path)
    with pytest.raises(SystemExit, match="has no archive"):
        rehearsal.main("--python", "3.11", "--allow-unchecked")
    with pytest.raises(SystemExit, match=r"none of the versions 3\.99"):
        rehearsal.main("--python", "3.99", "--allow-unchecked")


def test_the_wheels_for_one_python_compute_one_audit(
    release_check: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    audit = {"n": 3, "values": [0.1, math.nan], "name": "ece"}
    assert list(release_check.differences(audit, audit | {"values": [0.1 * (1 + 1e-12), math.nan]})) == []
    for other, place in (
        ({"values": [0.1 * (1 + 1e-8), math.nan]}, "audit.values[0]"),
        ({"values": [0.1, 0.1]}, "audit.values[1]"),
        ({"values": [0.1]}, "audit.values"),
        ({"n": 4}, "audit.n"),
        ({"more": 1}, "audit"),
    ):
        assert [found.split(":")[0] for found in release_check.differences(audit, audit | other)] == [place]
    names = ("a-1-py3-none-any.whl", "a-1.tar.gz", "a-1-cp311-cp311-linux_x86_64.whl")
    rehearsal = Rehearsal(monkeypatch, release_check, tmp_path, *names)
    monkeypatch.setattr(release_check.Release, "use", lambda _, __, title, **___: {"n": len(title)})
    with pytest.raises(SystemExit, match=r"for 3\.11 compute different audits: \['audit.n: 9, 13'\]"):
        rehearsal.main("--python", "3.11")


# Workflows


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_job_has_no_permission_that_it_does_not_state(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        assert job["permissions"], name
        assert job["timeout-minutes"] <= 120, name


def test_only_the_jobs_that_publish_may_write() -> None:
    writers = {
        f"{file.stem}.{name}": sorted(scope for scope, level in job["permissions"].items() if level == "write")
        for file in WORKFLOWS
        for name, job in yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"].items()
    }
    assert {name: scopes for name, scopes in writers.items() if scopes} == {
        "docs.publish": ["contents"],
        "wheels.attest": ["attestations", "id-token"],
        "wheels.publish": ["id-token"],
    }


def test_a_job_runs_targets_of_make_that_exist() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*(?: [a-z-]+)*):", read("Makefile"), re.MULTILINE))
    targets = {name for line in targets for name in line.split()}
    used = {name for file in WORKFLOWS for name in re.findall(r"run: make ([\w-]+)", file.read_text(encoding="utf-8"))}
    assert {"test", "test-oldest", "dist", "compiled-wheel", "release-check", "linkcheck"} <= used
    assert used <= targets


def test_a_person_finds_every_action_to_pin() -> None:
    used = {name for file in WORKFLOWS for name in re.findall(r"uses: (\S+)", file.read_text(encoding="utf-8"))}
    unpinned = {name for name in used if not re.search(r"@[0-9a-f]{40}$", name)}
    assert set(re.findall(r"`([\w-]+/[\w-]+@[\w./]+)`", read("RELEASING.md"))) == unpinned


@pytest.mark.parametrize("job", ["pure", "compiled"])
def test_the_job_that_builds_an_archive_uses_it_before_others_may_publish_it(job: str) -> None:
    jobs = yaml.safe_load(read(".github/workflows/wheels.yml"))["jobs"]
    commands = [step.get("run", step.get("uses")) for step in jobs[job]["steps"]]
    built, used, uploaded = (
        next(i for i, command in enumerate(commands) if re.search(pattern, command))
        for pattern in (
            "make (dist|compiled-wheel)",
            r"make release-check.*--only.* install .*--archives dist",
            "upload",
        )
    )
    assert built < used < uploaded
    assert job in jobs["attest"]["needs"]
    assert jobs["publish"]["needs"] == "attest"


def test_the_documentation_and_the_action_use_actions_as_the_workflows_do() -> None:
    pattern = r"uses: (actions/[\w-]+)@(v\d+)"
    used = dict(match for file in WORKFLOWS for match in re.findall(pattern, file.read_text(encoding="utf-8")))
    shown = [
        (page, match)
        for page in (ROOT / "docs").rglob("*.md")
        for match in re.findall(pattern, page.read_text(encoding="utf-8"))
    ]
    shown += [(ROOT / "action.yml", match) for match in re.findall(pattern, read("action.yml"))]
    assert len(shown) > 4
    assert [(page.name, match) for page, match in shown if used.get(match[0]) != match[1]] == []


def test_every_supported_python_is_tested_and_gets_a_wheel() -> None:
    classifiers = " ".join(PROJECT["project"]["classifiers"])
    supported = re.findall(r"Python :: (3\.\d+)", classifiers)
    for name, job in (("tests", "newest"), ("wheels", "compiled")):
        workflow = yaml.safe_load(read(f".github/workflows/{name}.yml"))
        assert workflow["jobs"][job]["strategy"]["matrix"]["python"] == supported


def test_what_only_a_person_can_do_fits_on_a_page() -> None:
    assert read("RELEASING.md").count("\n") <= 40


@pytest.mark.parametrize("name", ["bug.yml", "method.yml"])
def test_an_issue_form_asks_with_distinct_fields(name: str) -> None:
    form = yaml.safe_load(read(f".github/ISSUE_TEMPLATE/{name}"))
    fields = [part["id"] for part in form["body"]]
    assert len(set(fields)) == len(fields) > 1
    assert all(part["attributes"]["label"] for part in form["body"])
    assert {"name", "description", "body"} <= set(form)
