"""The typed result of an audit: the same JSON in both directions, and reports of versions that wrote fewer keys."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import pytest

import trueodds as to
from tests.reports.example import example, typed
from trueodds.reports.audit_result import AuditResult
from trueodds.reports.audit_sections import AuditInterval, Section
from trueodds.reports.html.audit_page import render_html
from trueodds.reports.text.terminal import render_brief, render_text


def optional_keys(section: Section, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all keys that a section may lack."""
    for field in dataclasses.fields(section):
        if field.default is not dataclasses.MISSING:
            yield (*path, field.name)
        value = getattr(section, field.name)
        if isinstance(value, Section):
            yield from optional_keys(value, (*path, field.name))
        elif isinstance(value, tuple) and value and isinstance(value[0], Section):
            yield from optional_keys(value[0], (*path, field.name, 0))


def without(entry: Any, path: tuple[Any, ...]) -> Any:
    """A copy without the key at a path."""
    key, *rest = path
    if isinstance(entry, list):
        return [without(entry[0], tuple(rest)), *entry[1:]]
    return {
        name: without(value, tuple(rest)) if name == key else value
        for name, value in entry.items()
        if rest or name != key
    }


def test_the_json_of_an_audit_is_the_same_after_it_was_read() -> None:
    facts = to.audit([0, 1] * 60, [0.2, 0.7] * 60, resamples=99).to_dict()
    assert json.dumps(AuditResult.from_dict(json.loads(json.dumps(facts))).to_dict()) == json.dumps(facts)


@pytest.mark.parametrize("path", sorted({".".join(map(str, path)) for path in optional_keys(typed(example()))}))
def test_a_report_without_a_key_that_an_earlier_version_did_not_write_has_text_and_page(path: str) -> None:
    facts = without(example(), tuple(int(key) if key.isdigit() else key for key in path.split(".")))
    assert render_text(facts)
    assert render_brief(facts)
    assert render_html(facts)


def test_the_json_of_a_section_has_its_fields_and_no_properties() -> None:
    data = typed(example()).data
    assert data.means == (0.7104, 0.9611)
    assert list(data.to_dict()) == [field.name for field in dataclasses.fields(data)]


def test_every_part_of_an_audit_with_named_keys_is_typed() -> None:
    audit = typed(example())
    parts = [audit.notes[0], audit.diagrams[0], audit.among_groups, audit.measures[0].interval, audit.groups[0]]
    assert all(dataclasses.is_dataclass(part) for part in parts)
    assert typed(audit) is audit


def test_an_infinite_limit_is_none_in_the_json_and_excludes_no_point_on_its_side() -> None:
    interval = AuditInterval(low=0.5, high=None, level=0.95)
    assert (interval.excludes(1e9), interval.excludes(0.4)) == (False, True)
