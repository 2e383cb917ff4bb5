"""Does the JSON of every kind of result, for classes and for one column, keep its published schema?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from referencing import Registry, Resource

import trueodds as to
from tests.reports.example import example, unremarkable

FOLDER = resources.files("trueodds") / "schema"  # as an installed package has them
NAMES = sorted(file.name.removesuffix(".json") for file in FOLDER.iterdir())


@cache
def schema(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))


def registry() -> Registry[Any]:
    return Registry().with_resources((schema(name)["$id"], Resource.from_contents(schema(name))) for name in NAMES)


def assert_valid(document: Any, name: str) -> Any:
    """What the schema allows, as strict JSON holds it: no NaN, no infinity, text keys."""
    document = json.loads(json.dumps(document, allow_nan=False))
    jsonschema.Draft202012Validator(schema(name), registry=registry()).validate(document)
    return document


def predictions(k: int, n: int = 400) -> to.Predictions:
    """Calibrated ones: each label is drawn with its stated probability."""
    rng = np.random.default_rng(k)
    P = rng.dirichlet(np.ones(k), n)
    y = (P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=k - 1)
    return to.Predictions(y, P if k > 2 else P[:, 1])


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_a_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_has_an_absolute_id_with_the_version_of_its_format(name: str) -> None:
    version = schema(name)["properties"]["schema"]["const"].removeprefix(f"trueodds.{name}/")
    assert schema(name)["$id"] == f"urn:trueodds:schema:{name}:{version}"
    references = re.findall(r'"\$ref": "([^"#]+)', json.dumps(schema(name)))
    assert set(references) <= {schema(other)["$id"] for other in NAMES}


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("lens", ["confidence", "classwise"])
def test_an_estimate_keeps_its_schema(k: int, lens: str) -> None:
    assert_valid(to.measure(predictions(k), "ece", lens=lens).to_dict(), "estimate")


def test_an_infinite_estimate_is_null_with_a_note() -> None:
    document = assert_valid(to.measure(to.Predictions([1, 1], [0.0, 0.5]), "log_loss").to_dict(), "estimate")
    assert document["value"] is None
    assert document["notes"] != []


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("lens", ["confidence", "classwise"])
def test_a_verdict_keeps_its_schema(k: int, lens: str) -> None:
    assert_valid(to.test(predictions(k), "consistency", lens=lens, resamples=19).to_dict(), "verdict")


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"effect": 0.1}, {"width": 0.1}], ids=str)
def test_a_plan_keeps_its_schema(options: dict[str, float]) -> None:
    settings = {} if "width" in options else {"simulations": 20}
    assert_valid(to.power(predictions(3), **options, **settings).to_dict(), "power")


@pytest.mark.parametrize("name", ["ece", "brier", "skce"])
@pytest.mark.parametrize("settings", [{}, {"interval": None}, {"null": "swap"}, {"paired": False}], ids=str)
def test_a_comparison_keeps_its_schema(name: str, settings: dict[str, Any]) -> None:
    a = predictions(3)
    b = to.Predictions(a.y, a.P**2, sum_tolerance=1)
    assert_valid(to.compare(a, b, name, resamples=19, **settings).to_dict(), "comparison")


def test_an_infinite_difference_is_null() -> None:
    a, b = to.Predictions([1, 1], [0.0, 0.5]), to.Predictions([1, 1], [0.5, 0.5])
    assert assert_valid(to.compare(a, b, "log_loss").to_dict(), "comparison")["difference"] is None


@pytest.mark.parametrize("settings", [{}, {"interval": None}, {"null": "swap"}], ids=str)
def test_a_ranking_keeps_its_schema(settings: dict[str, Any]) -> None:
    a = predictions(2)
    models = {"a": a, "flat": to.Predictions(a.y, [0.5] * a.n), "sure": to.Predictions(a.y, [0.99] * a.n)}
    document = assert_valid(to.compare(models, "brier", resamples=99, **settings).to_dict(), "ranking")
    assert len(document["pairs"]) == len(document["settled"]) + len(document["unsettled"]) == 3


@pytest.mark.parametrize("k", [2, 3])
def test_an_audit_keeps_its_schema(k: int) -> None:
    document = assert_valid(to.audit(predictions(k)).to_dict(), "audit")
    assert document["version"] == to.__version__


@pytest.mark.parametrize("made", [example, unremarkable])
def test_the_audit_that_the_pages_are_tested_on_keeps_the_schema(made: Callable[[], Any]) -> None:
    assert_valid(made(), "audit")


@pytest.mark.parametrize("k", [2, 3])
def test_a_tally_keeps_its_schema(k: int) -> None:
    assert_valid(to.tally(predictions(k)).to_dict(), "tally")


@pytest.mark.parametrize("method", ["temperature", "isotonic", "auto"])
def test_a_calibrator_keeps_its_schema(method: str) -> None:
    assert_valid(to.fit(predictions(3), method).to_dict(), "calibrator")


def resolved(node: Any, document: Any) -> list[tuple[Any, Any]]:
    """A schema and its alternatives without references, each with the document that its own references refer to."""
    while "$ref" in node:
        name, _, pointer = node["$ref"].partition("#")
        document = registry().contents(name) if name else document
        node = document
        for step in filter(None, pointer.split("/")):
            node = node[step]
    branches = (branch for group in ("oneOf", "anyOf", "allOf") for branch in node.get(group, ()))
    return [(node, document), *(pair for branch in branches for pair in resolved(branch, document))]


def undocumented(value: Any, node: Any, document: Any, path: str = "") -> set[str]:
    """The keys of a result, by their paths, that its schema does not describe although it lists the others."""
    branches = resolved(node, document)
    if isinstance(value, list):
        items = [(branch["items"], root) for branch, root in branches if isinstance(branch.get("items"), dict)]
        return {key for part in value for item, root in items for key in undocumented(part, item, root, f"{path}[]")}
    properties = {key: (part, root) for branch, root in branches for key, part in branch.get("properties", {}).items()}
    if not isinstance(value, dict) or not properties:
        return set()
    return {f"{path}.{key}" for key in value if key not in properties} | {
        key
        for name, part in value.items()
        if name in properties
        for key in undocumented(part, *properties[name], f"{path}.{name}")
    }


def voted() -> to.Predictions:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 300)
    return to.Predictions(rng.multinomial(5, P), P, group={"site": np.arange(300) % 3})


def test_every_key_of_a_result_is_in_its_schema() -> None:
    a = predictions(3)
    b = to.Predictions(a.y, a.P**1.5, sum_tolerance=1, group={"site": np.arange(a.n) % 2})
    results: dict[str, list[Any]] = {
        "audit": [to.audit(voted(), resamples=99), to.audit(b, resamples=99, crossings=False)],
        "estimate": [to.measure(a, "ece", lens="classwise")],
        "verdict": [to.test(a, resamples=99), to.test(a, "consistency", margin=0.1, resamples=99)],
        "comparison": [to.compare(a, b, "brier", resamples=99)],
        "ranking": [to.compare({"a": a, "b": b, "c": predictions(3)}, "brier", resamples=99)],
        "table": [to.table({"a": a, "b": b}, ["ece", "brier"])],
        "threshold": [to.threshold(a), to.threshold(to.Predictions([1], [0.5]), risk="fnr")],
        "expectation": [to.expect(a, "f1"), to.expect(to.Predictions(None, [0.2, 0.3]), "precision")],
        "judge": [
            to.prediction_powered_mean([1.0, 0.0, None, None], [0.9, 0.2, 0.5, 0.4], sampling="random"),
            to.prediction_powered_mean(None, [1, 1, 0], sensitivity=(90, 100), specificity=(75, 100)),
        ],
        "power": [to.power(a, width=0.1)],
        "groups": [to.by_group(b, resamples=99), to.by_group(b, "o_e", between=True, interval=None, resamples=99)],
        "tally": [to.tally(b)],
        "calibrator": [to.fit(a, "temperature")],
    }
    for name, objects in results.items():
        for result in objects:
            assert undocumented(assert_valid(result.to_dict(), name), schema(name), schema(name)) == set(), name


SECTION_OF_SCHEMA = {name: name.capitalize() for name in NAMES}
PAGE = Path(__file__).parents[1] / "docs" / "json.md"


@pytest.mark.parametrize("name", NAMES)
def test_every_key_of_a_schema_is_in_its_section_of_the_page(name: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    section = re.search(rf"^## {SECTION_OF_SCHEMA[name]}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None, name
    named = set(re.findall(r"`(\w+)`", section[1]))
    document = schema(name)
    keys = set(document["properties"])
    if name == "tally":
        keys |= set(document["$defs"]["sums"]["properties"])
    if name == "audit":
        parts = [document["properties"][key] for key in ("verdict", "recalibration", "data")]
        keys |= {key for part in parts for node in (part, *part.get("oneOf", ())) for key in node.get("properties", {})}
    assert keys - named - {"schema"} == set()
