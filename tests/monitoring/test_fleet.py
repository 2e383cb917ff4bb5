"""Does the fleet follow the definition of e-BH?"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

import trueodds as to
from trueodds.monitoring.fleet import examine_fleet
from trueodds.monitoring.monitor_report import MonitorReport

QUIET = to.Monitor().report()


def with_evidence(*values: float) -> dict[str, MonitorReport]:
    return {f"model {i}": replace(QUIET, log_evidence=math.log(value)) for i, value in enumerate(values)}


def test_the_discoveries_are_those_that_the_definition_gives_by_hand() -> None:
    # Four models at 5 %: the k-th largest e-value must reach 80, 40, 26.7 and 20.
    assert examine_fleet(with_evidence(30, 1, 41, 90)).discoveries == ("model 3", "model 2", "model 0")
    assert examine_fleet(with_evidence(25, 26, 1, 39)).discoveries == ()
    assert examine_fleet(with_evidence(21, 22, 23, 24)).discoveries == ("model 3", "model 2", "model 1", "model 0")
    assert examine_fleet(with_evidence(79, 1, 1, 1)).discoveries == ()
    assert examine_fleet(with_evidence(81, 1, 1, 1)).discoveries == ("model 0",)
    assert examine_fleet(with_evidence(41, 1, 1, 1), 0.1).discoveries == ("model 0",)


def test_no_larger_set_of_models_is_self_consistent() -> None:
    values = (3.0, 12.0, 15.0, 17.0, 45.0, 200.0)
    found = examine_fleet(with_evidence(*values), 0.2).discoveries
    sizes = [
        len(chosen)
        for size in range(len(values) + 1)
        for chosen in itertools.combinations(values, size)
        if all(value >= len(values) / (0.2 * size) for value in chosen)
    ]
    assert len(found) == max(sizes)


def test_an_event_with_probability_zero_is_infinite_evidence() -> None:
    reports = with_evidence(1, 1, 1)
    reports["model 1"] = replace(reports["model 1"], status=replace(QUIET.status, impossible=1.0))
    report = examine_fleet(reports)
    assert report.discoveries == ("model 1",)
    assert "infinite" in report.describe()
    assert report.to_dict()["members"][0]["log_evidence"] is None


def test_labels_of_different_moments_are_noted() -> None:
    reports = with_evidence(1, 1)
    for name, moment in zip(reports, ("2026-11-28", "2026-11-30"), strict=True):
        reports[name] = replace(reports[name], status=replace(QUIET.status, as_of=moment))
    assert [note.code for note in examine_fleet(reports).notes] == ["TN908"]


def test_a_fleet_needs_models_and_a_share_between_0_and_1() -> None:
    with pytest.raises(to.InputError, match="TO108"):
        examine_fleet({})
    with pytest.raises(to.InputError, match="TO203"):
        examine_fleet(with_evidence(1), 1.5)
