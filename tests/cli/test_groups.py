"""trueodds groups, and the groups of trueodds audit: the same answer, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import trueodds as to
from tests.cli.conftest import Run
from tests.test_schemas import assert_valid
from trueodds.api.by_group import by_group


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two columns of groups, of which one value has a single row."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 300)
    rows = zip(
        rng.random(300) < p, 1 - p, p, rng.choice(["f", "m"], 300), ["one"] + ["a", "b", "c"] * 100, strict=False
    )
    path = tmp_path_factory.mktemp("people") / "people.csv"
    lines = ["label,p_0,p_1,sex,site", *(f"{int(y)},{q!r},{x!r},{sex},{site}" for y, q, x, sex, site in rows)]
    path.write_text("\n".join(lines).replace("np.float64(", "").replace(")", "") + "\n", encoding="utf-8")
    return str(path)


TWO = ("--group", "sex", "--group", "site")


@pytest.mark.slow
def test_it_prints_what_by_group_prints(run: Run, people: str) -> None:
    done = run("groups", people, *TWO, "--crossings", "--resamples", 99)
    assert done.exit_code == 0
    groups = by_group(to.read(people, group=["sex", "site"]), crossings=2, resamples=99)
    assert done.stdout.startswith(groups.describe().replace("in `.gaps` and in the JSON", "with --json"))
    assert " more with --json\n" in done.stdout
    assert "[TN150]" in done.stdout


def test_json_on_stdout_is_one_object_of_the_schema(run: Run, people: str) -> None:
    done = run("groups", people, *TWO, "--resamples", 99, "--against", "rest", "--min-effect", 0.2, "--json", "-")
    document = assert_valid(json.loads(done.stdout), "groups")
    assert document["settings"]["min_effect"] == 0.2
    assert {gap["second"] for gap in document["gaps"]} == {"rest"}
    assert [group["n"] for group in document["groups"] if group["value"] == "one"] == [1]


@pytest.mark.slow
def test_an_audit_has_crossings_too(run: Run, people: str, folder: Path) -> None:
    words = ("--crossings", "--min-effect", 0.3, "--resamples", 99, "--json", folder / "a.json")
    done = run("audit", people, *TWO, *words)
    assert done.exit_code == 0
    document = json.loads((folder / "a.json").read_text(encoding="utf-8"))
    assert {group["column"] for group in document["groups"]} == {"sex", "site", "sex × site"}
    assert document["among_groups"]["min_effect"] == document["settings"]["min_effect"] == 0.3
    assert "widest gap of sex × site" in done.stdout


@pytest.mark.slow
def test_another_estimator_lens_and_level_are_taken(run: Run, people: str) -> None:
    words = ("--estimator", "smece", "--lens", "class:1", "--level", 0.9, "--resamples", 99, "--seed", 3)
    done = run("groups", people, "--group", "sex", *words)
    assert done.exit_code == 0
    assert done.stdout.startswith("smece by group")
    assert "at the 10 % level" in done.stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("groups", "{}"), "TO601"),
        (("groups", "{}", "--group", "sex", "--crossings"), "TO324"),
        (("audit", "{}", "--group", "sex", "--crossings"), "TO324"),
        (("audit", "{}", "--crossings"), "TO324"),
        # Without its number, --crossings hid that another option was given twice.
        (("groups", "{}", *TWO, "--seed", "1", "--seed", "2", "--crossings"), "TO603"),
        (("audit", "{}", *TWO, "--crossings", "--seed", "1", "--seed", "2"), "TO603"),
        (("groups", "{}", "--group", "sex", "--min-effect", "-1"), "TO601"),
        (("groups", "{}", "--group", "sex", "--against", "all"), "TO601"),
        (("groups", "{}", "--group", "sex", "--margin", "1"), "TO601"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(run: Run, people: str, words: tuple[str, ...], code: str) -> None:
    done = run(*(word.format(people) for word in words))
    assert (done.exit_code, done.stderr.splitlines()[0]) == (2, f"error {code}")


def test_a_tally_has_no_crossings_and_no_command_of_groups(run: Run, people: str, folder: Path) -> None:
    part = folder / "a.tally.json"
    assert run("tally", people, *TWO, "--out", part).exit_code == 0
    assert run("audit", part, "--crossings").stderr.startswith("error TO323")
    assert run("groups", part, "--group", "sex").stderr.startswith("error TO403")
    assert "TN166" in run("audit", part, "--resamples", 99).stdout


@pytest.mark.slow
def test_crossings_take_an_order_and_may_precede_the_file(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(2)
    columns = {name: rng.integers(0, 2, 400) for name in "abc"}
    path = folder / "three.csv"
    pd.DataFrame({"label": rng.integers(0, 2, 400), "p": 0.5} | columns).to_csv(path, index=False)
    words = [word for name in "abc" for word in ("--group", name)]

    def n_columns(*args: object) -> int:
        done = run("groups", *args, *words, "--probs", "p", "--resamples", 49, "--interval", "none", "--json", "-")
        assert done.exit_code == 0, done.stderr
        return max(group["column"].count("×") + 1 for group in json.loads(done.stdout)["groups"])

    assert n_columns(path) == 1
    assert n_columns("--crossings", path) == n_columns(path, "--crossings") == n_columns(path, "--crossings", 2) == 2
    assert n_columns("--crossings", 3, path) == n_columns(path, "--crossings=3") == 3
    done = run("audit", path, *words, "--probs", "p", "--crossings", 4)
    assert (done.exit_code, done.stderr.split()[1].strip(":")) == (2, "TO203")
