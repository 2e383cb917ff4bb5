"""Do the files of a release agree with each other: versions, requirements, addresses, workflows, contents?"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
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
    assert requirements["run"][1:] == [conda(line) for line in project["dependencies"]]
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


def test_someone_with_an_installed_package_can_run_the_readme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    monkeypatch.delitem(sys.modules, "release_check", raising=False)
    from release_check import installed_steps  # type: ignore[import-not-found] # noqa: PLC0415, RUF100

    steps = installed_steps(ROOT / "README.md")
    assert any(step.startswith("python -c") and "import trueodds" in step for step in steps)
    assert "trueodds audit demo/digits.parquet --brief" in steps
    assert [step for step in steps if "make" in step.split("\n")[0]] == []


def test_every_line_of_the_list_of_contents_is_a_rule() -> None:
    lines = [line for line in read(".ci/contents.txt").splitlines() if not line.startswith("#")]
    for line in lines:
        kinds, rule, pattern = line.split()
        assert set(kinds.split(",")) <= {"pure", "compiled", "sdist"}
        assert rule in {"has", "not"}
        if rule == "has" and kinds == "sdist":
            assert (ROOT / pattern).exists(), pattern
        if rule == "has" and pattern.startswith("trueodds/") and "precompiled" not in pattern:
            assert (ROOT / "src" / pattern).exists(), pattern


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
