"""Does an infinite log loss, and its difference from a finite one, lie above every bound of a gate?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Finite has a finite log loss; zeros and others each predicted 0 for three events."""
    rng = np.random.default_rng(0)
    folder, p = tmp_path_factory.mktemp("models"), rng.beta(2, 3, 600)
    y = (rng.random(600) < p).astype(int)
    events = np.flatnonzero(y)
    for name, zeros in (("finite", []), ("zeros", events[:3]), ("others", events[3:6])):
        q = p.copy()
        q[zeros] = 0.0
        lines = [f"{a},{b!r}" for a, b in zip(y.tolist(), q.tolist(), strict=True)]
        (folder / f"{name}.csv").write_text("\n".join(["label,p_1", *lines]), encoding="utf-8")
    return folder


@pytest.mark.parametrize("paired", [[], ["--unpaired"]], ids=str)
@pytest.mark.parametrize(
    ("first", "second", "gate", "code"),
    [
        ("zeros", "finite", "difference>0", 1),
        ("zeros", "finite", "difference.low>0", 1),
        ("zeros", "finite", "difference.high>0", 1),
        ("zeros", "finite", "difference.low<0", 0),
        ("finite", "zeros", "difference.high>0", 0),
        ("finite", "zeros", "difference.low<0", 1),
        ("zeros", "others", "difference>0", 2),  # infinity minus infinity is undefined
        ("zeros", "others", "difference.low>0", 2),
        ("zeros", "finite", "reject", 2),  # there is no p-value
    ],
)
def test_an_infinite_difference_is_above_or_below_every_bound(
    run: Run, models: Path, first: str, second: str, gate: str, code: int, paired: list[str]
) -> None:
    files = [models / f"{name}.csv" for name in (first, second)]
    done = run("compare", *files, "--estimator", "log_loss", *paired, "--fail-on", gate)
    assert done.exit_code == code, done.output


def test_the_ends_of_the_interval_of_an_infinite_log_loss_are_infinite(run: Run, models: Path) -> None:
    for command in (("measure", "--estimator", "log_loss"), ("audit", "--resamples", "99")):
        done = run(command[0], models / "zeros.csv", *command[1:], "--fail-on", "log_loss.low>9")
        assert done.exit_code == 1, done.output
        assert "= inf > 9" in done.stderr


def test_the_notes_on_an_infinite_log_loss_name_a_remedy_that_works(run: Run, models: Path) -> None:
    compared = ("compare", models / "zeros.csv", models / "finite.csv", "--estimator", "log_loss")
    notes = [line for line in run(*compared).stdout.split("[TN") if line[:3] in ("104", "201")]
    assert len(notes) == 2
    for note in notes:
        assert "--min-prob 1e-6" in " ".join(note.split())
        assert "percentile" not in note
    done = run(*compared, "--min-prob", "1e-6", "--fail-on", "difference.low>9")
    assert done.exit_code == 0, done.output
    assert "TN201" not in done.stdout


def test_the_remedy_of_the_page_of_codes_for_an_infinite_value_is_min_prob(run: Run) -> None:
    assert "min_prob" in run("explain", "TN201").stdout
