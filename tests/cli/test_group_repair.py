"""Repairs by group on the command line: the columns of groups and features are found by their names."""

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import expit

import trueodds as to
from trueodds.cli import main


@pytest.fixture
def workdir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    site, age, log_odds = rng.choice(["a", "b"], 2000), rng.integers(20, 80, 2000), rng.normal(-1, 1, 2000)
    y = rng.random(2000) < expit(log_odds + np.where(site == "a", 0.7, -0.7) + (age > 60))
    lines = [f"{int(e)},{p!r},{s},{a}" for e, p, s, a in zip(y, expit(log_odds).tolist(), site, age, strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["event,risk,site,age", *lines]) + "\n", encoding="utf-8")
    (tmp_path / "plain.csv").write_text("event,risk\n1,0.5\n0,0.25\n", encoding="utf-8")
    return tmp_path


def ran(*words):
    return CliRunner().invoke(main, words)


FIT = ("fit", "rows.csv", "--label", "event", "--probs", "risk", "--group", "site", "--out", "cal.json")


@pytest.mark.parametrize(
    "method",
    [
        ("--method", "group_shift"),
        ("--method", "multicalibrated", "--group", "age", "--set", "features=age", "--set", "confirm=false"),
    ],
    ids=lambda words: words[1],
)
def test_apply_finds_the_columns_of_the_fit_by_their_names(workdir, method):
    fitted = ran(*FIT, *method)
    assert fitted.exit_code == 0, fitted.output
    applied = ran("apply", "cal.json", "rows.csv", "--probs", "risk", "--out", "new.csv")
    assert applied.exit_code == 0, applied.output
    before, after = (
        to.read(name, label="event", probs="risk", group=["site", "age"]) for name in ("rows.csv", "new.csv")
    )
    expected = to.load("cal.json").predict_proba(before.collect())[:, 1]
    assert after.collect().p == pytest.approx(expected, abs=1e-12)
    refused = ran("apply", "cal.json", "plain.csv", "--probs", "risk", "--out", "new.csv")
    assert refused.exit_code == 2
    assert "site" in refused.output


def test_rows_of_groups_that_the_fit_did_not_have_are_counted(workdir):
    assert ran(*FIT, "--method", "group_shift", "--set", "confirm=false").exit_code == 0
    (workdir / "new.csv").write_text("risk,site\n0.5,a\n0.5,c\n0.5,d\n", encoding="utf-8")
    applied = ran("apply", "cal.json", "new.csv", "--probs", "risk", "--out", "out.csv")
    assert "[TN550] 2 of 3 rows have a group or category that the fit did not have." in applied.output
    known = ran("apply", "cal.json", "rows.csv", "--probs", "risk", "--out", "out.csv")
    assert "TN550" not in known.output
