"""Does every option do something where it is offered, and is none of them ignored in silence?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import trueodds as to
from tests.cli.conftest import Run
from tests.cli.test_faults import labelled
from trueodds.calibrators import CALIBRATORS
from trueodds.cli import main
from trueodds.cli.function_command import SETTINGS_OF_FAMILY
from trueodds.core.registry import Registry
from trueodds.diagrams import DIAGRAMS
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS

REGISTRIES = {"estimators": ESTIMATORS, "tests": TESTS, "diagrams": DIAGRAMS, "calibrators": CALIBRATORS}


def accepted_settings(registry: Registry) -> set[str]:
    methods = [registry.load(name) for name in registry.names()]
    return {key for method in methods for key in method.setting_names()}


@pytest.mark.parametrize("family", list(SETTINGS_OF_FAMILY))
def test_a_family_offers_only_settings_that_a_member_takes(family: str) -> None:
    assert set(SETTINGS_OF_FAMILY[family]) <= accepted_settings(REGISTRIES[family])


def test_votes_with_logits_are_measured_as_in_python(run: Run, folder: Path) -> None:
    draw = np.random.default_rng(0)
    votes, z = draw.multinomial(9, [0.2, 0.3, 0.5], 60), draw.normal(size=(60, 3)).round(3)
    lines = ["v_a,v_b,v_c,z_a,z_b,z_c", *(",".join(map(str, [*v, *s])) for v, s in zip(votes, z.tolist(), strict=True))]
    (folder / "a.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = run(
        "measure", folder / "a.csv", "--votes", "v_*", "--logits", "z_*", "--estimator", "brier", "--json", "-"
    )
    assert result.exit_code == 0, result.stderr
    expected = to.measure(to.Predictions.from_logits(votes, z), "brier", interval=None)
    assert json.loads(result.stdout)["value"] == float(expected)


def options(command: str) -> set[str]:
    return {option for param in main.commands[command].params for option in param.opts}


def test_each_command_lists_its_own_options_only() -> None:
    assert not options("fit") & {
        "--distance",
        "--statistic",
        "--interval",
        "--level",
        "--resamples",
        "--mode",
    }
    assert not options("test") & {"--interval", "--level", "--resample", "--between", "--group"}
    assert not options("draw") & {"--distance", "--statistic", "--interval", "--floor"}
    assert "--mode" not in options("tally")
    takes_groups = ["audit", "answers", "groups", "draw", "fit", "tally", "monitor"]
    assert [name for name in main.commands if "--group" in options(name)] == takes_groups
    assert [name for name in main.commands if "--weight-kind" in options(name)] == [
        "audit",
        "measure",
        "test",
        "groups",
        "compare",
        "table",
        "threshold",
        "power",
        "draw",
        "fit",
        "tally",
        "monitor",
    ]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("measure x.csv --group site", "TO601", "use audit or answers or groups or draw or fit or tally or monitor"),
        ("tally x.csv --out y --mode exact", "TO601", "use audit or measure or test or draw"),
        ("audit x.csv --label y --multilabel y_*", "TO603", "Leave --label out"),
        ("audit x.csv --label y --votes v_*", "TO603", "Leave --label out"),
        ("audit x.csv --logits z_* --probs p_*", "TO603", "Leave --probs out"),
        ("apply c.json x.csv --out y.csv --logits z_* --probs p_*", "TO603", "Leave --probs out"),
        ("audit x.csv --confidence c --correct o --probs p_*", "TO603", "Leave --probs out"),
        ("measure x.csv --set mode=exact", "TO603", "Use --mode"),
        ("fit x.csv --out y --set rng=3", "TO603", "Use --seed"),
        ("measure x.csv --bins 5 --set bins=10", "TO603", "Omit one"),
        ("measure x.csv --set progress=1", "TO202", "resamples"),
        ("measure x.csv --estimator spherical --bins 5", "TO202", "level"),
        ("measure x.csv --set intervall=none", "TO202", "interval"),
        ("test x.csv --set level=0.9", "TO202", ""),
        ("test x.csv --set redrw=both", "TO202", "redraw"),
        ("draw x.csv --out y.svg --set styl=deviation", "TO202", "style"),
        ("fit x.csv --out y --method temperature --bins 5", "TO202", "a setting of the calibrator 'histogram'"),
        ("fit x.csv --out y --method identity --bins 5", "TO202", "a setting of the calibrator 'histogram'"),
        ("fit x.csv --out y --set lens=confidence", "TO603", "Use --lens"),
    ],
)
def test_what_would_be_ignored_is_refused(run: Run, words: str, code: str, message: str) -> None:
    done = run(*words.split())
    assert done.exit_code == 2
    error = labelled(done.stderr)
    assert error["code"] == code
    assert message in error["fix"]


def test_a_frequency_weight_of_two_is_two_rows(run: Run, folder: Path) -> None:
    path = folder / "w.csv"
    path.write_text("label,p_0,p_1,w\n" + "0,0.7,0.3,2\n1,0.4,0.6,1\n" * 10, encoding="utf-8")
    words = ("measure", path, "--estimator", "brier", "--interval", "none", "--weight", "w")
    assert "n=20" in run(*words).stdout
    assert "n=30" in run(*words, "--weight-kind", "frequency").stdout
    done = run(
        "fit", path, "--weight", "w", "--weight-kind", "frequency", "--method", "temperature", "--out", folder / "c"
    )
    assert "n=30" in done.stdout


def test_a_tally_is_no_calibrator_and_cannot_be_fitted(run: Run, overconfident: str, folder: Path) -> None:
    part = folder / "m.tally.json"
    run("tally", overconfident, "--out", part)
    plain = folder / "plain.json"  # known by what it says, not by its name
    plain.write_bytes(part.read_bytes())
    for tally in (part, plain):
        error = labelled(run("apply", tally, overconfident, "--out", folder / "z.csv").stderr)
        assert (error["code"], error["problem"]) == ("TO503", "The file is a tally, not a calibrator.")
        assert labelled(run("fit", tally, "--out", folder / "c.json").stderr)["code"] == "TO403"


def test_settings_of_few_members_go_by_set(run: Run, overconfident: str, folder: Path) -> None:
    assert run("fit", overconfident, "--set", "folds=3", "--out", folder / "c.json").exit_code == 0
    assert (
        run("fit", overconfident, "--method", "isotonic", "--between", "step", "--out", folder / "c.json").exit_code
        == 0
    )
    assert '"between": "step"' in (folder / "c.json").read_text(encoding="utf-8")


def test_a_list_that_is_nested_too_deep_is_no_setting(run: Run, overconfident: str, folder: Path) -> None:
    error = labelled(run("fit", overconfident, "--set", "folds=" + "[" * 30_000, "--out", folder / "c.json").stderr)
    assert (error["code"], error["problem"]) == ("TO601", "This list cannot be read.")


@pytest.mark.parametrize("text", ["temperature", "temperature, beta", '["temperature", "beta"]'])
def test_candidates_are_separated_by_commas_or_a_json_list(
    run: Run, overconfident: str, folder: Path, text: str
) -> None:
    out = folder / "cal.json"
    result = run("fit", overconfident, "--method", "auto", "--set", f"candidates={text}", "--out", out)
    assert result.exit_code == 0, result.output
    names = "('temperature', 'beta')" if "beta" in text else "('temperature',)"
    assert f"candidates={names}" in result.output


def test_logits_without_a_value_are_those_of_an_npz_file_or_of_probs(run: Run, folder: Path) -> None:
    z, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 3
    np.savez(folder / "one.npz", label=y, scores=z)
    np.savez(folder / "two.npz", label=y, first=z, second=2 * z)
    expected = to.measure(to.Predictions.from_logits(y, z), "brier", interval=None).value
    for words in (
        ["one.npz", "--logits"],
        ["two.npz", "--logits", "first"],
        ["one.npz", "--probs", "scores", "--logits"],
    ):
        done = run(
            "measure", folder / words[0], *words[1:], "--estimator", "brier", "--interval", "none", "--json", "-"
        )
        assert json.loads(done.stdout)["value"] == pytest.approx(expected), done.output
    done = run("measure", folder / "two.npz", "--logits", "--estimator", "brier")
    assert done.exit_code == 2
    assert "--logits first" in done.output
