"""Does a gate fail when it should, and is what cannot be judged never a pass?"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.example import example
from tests.cli.conftest import Run
from trueodds import Predictions, audit
from trueodds.cli.gate import MEASURED, Gate
from trueodds.core.errors import InputError


def held(text: str, found: dict | None = None) -> bool:
    return Gate.of(text).judge(example() if found is None else found)[0]


# The example: ece confidence .2507 [.2391, .2625] floor .0318 debiased .2488, classwise .0418, canonical .2533.
@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("ece>0.25", False),
        ("ece>0.26", True),
        ("ece>0.2507", True),
        ("ece>=0.2507", False),
        ("ece<0.2507", True),
        ("ece<=0.2507", False),
        ("ece.low>0.24", True),
        ("ece.low>0.23", False),
        ("ece.high<0.27", False),
        ("ece.floor>0.03", False),
        ("ece.noise_floor>0.04", True),
        ("ece.debiased>0.2488", True),
        ("ece@classwise>0.04", False),
        ("ece@classwise>0.05", True),
        ("ece.low@canonical>0.2388", True),
        ("ece@class:8>0.07", False),
        ("ece@class:0>0.07", True),
        ("brier>0.18", False),
        (" ece > 25e-2 ", False),
    ],
)
def test_a_gate_compares_the_number_it_names(text: str, holds: bool) -> None:
    assert held(text) is holds


def test_reject_is_the_verdict_of_the_family() -> None:
    assert not held("reject")
    found = example()
    found["verdict"] |= {"rejected": False, "pvalue": 0.2, "reason": "family p 0.2 > 0.05"}
    assert held("reject", found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ece",
        "ece=0.1",
        "ece>",
        "ece>a",
        "ece>nan",
        "ece<inf",
        "ece.upper>0.1",
        "reject>0.1x",
        ">0.1",
        "ece>>0.1",
        "0.1<ece",
        "mce>0.1",  # not measured by the audit
        "foo>1",
        "ece>5",  # five percent is 0.05; this gate would always hold
        "ece@classwise>=1.01",
    ],
)
def test_what_is_no_condition_is_refused_before_the_work(text: str) -> None:
    with pytest.raises(InputError) as problem:
        Gate.of(text)
    assert problem.value.code == "TO610"


@pytest.mark.parametrize(
    "text",
    [
        "log_loss>0.1",  # infinite, which JSON holds as null
        "ece.low@classwise>0.01",  # has no interval
        "ece@top-2>0.1",
        "ece.low@class:0>0.1",
        "ece.debiased@canonical>0",
    ],
)
def test_what_cannot_be_judged_is_an_error_not_a_pass(text: str) -> None:
    with pytest.raises(InputError) as problem:
        held(text)
    assert problem.value.code == "TO611"


def test_reject_without_a_p_value_cannot_be_judged() -> None:
    found = example()
    found["verdict"] |= {"rejected": None, "pvalue": None}
    with pytest.raises(InputError, match="TO611"):
        held("reject", found)


def test_a_misspelt_estimator_is_told_those_that_are_measured() -> None:
    with pytest.raises(InputError, match="ece, brier, log_loss"):
        held("brie>0.1")


def test_a_bound_in_percent_is_told_as_a_share() -> None:
    with pytest.raises(InputError, match=r"ece>0\.05"):
        Gate.of("ece>5")
    assert Gate.of("brier>1.5").limit == 1.5  # a Brier score reaches 2


def test_the_gate_knows_what_every_audit_measures() -> None:
    audited = audit(Predictions([0, 1] * 20, [0.5] * 40), resamples=19).to_dict()
    assert {each["estimator"] for each in audited["measures"]} == set(MEASURED)


# On the command line, from the file to the exit code


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ("ece.low>0.02", 1),  # the whole interval lies above: the error is there for sure
        ("ece.high>0.02", 1),
        ("ece.low>0.9", 0),
        ("ece.high<0.01", 0),
        ("brier.low>0.01", 1),
    ],
)
def test_ends_of_intervals_decide_the_exit_code(run: Run, over: str, gate: str, code: int) -> None:
    done = run("audit", over, "--resamples", 99, "--fail-on", gate)
    assert done.exit_code == code
    assert f"gate '{gate}' {'failed' if code else 'held'}: " in done.stderr


def test_the_lower_end_passes_a_calibrated_model_whose_bare_error_is_above_the_bound(run: Run, honest: str) -> None:
    # 400 rows of a calibrated model have an ece of about .05 by chance: the value fails where the lower end does not
    assert run("audit", honest, "--resamples", 99, "--fail-on", "ece>0.02").exit_code == 1
    assert run("audit", honest, "--resamples", 99, "--fail-on", "ece.low>0.02").exit_code == 0


def test_an_end_of_an_interval_that_is_not_there_exits_with_2(run: Run, honest: str, folder: Path) -> None:
    part = folder / "a.tally.json"
    run("tally", honest, "--out", part)
    done = run("audit", part, "--resamples", 99, "--fail-on", "ece.low@classwise>0.02")
    assert done.exit_code == 2
    assert done.stderr.startswith("error TO611\n")
