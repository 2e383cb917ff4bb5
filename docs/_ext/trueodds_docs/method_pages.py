"""One reference page per estimator, test, calibrator, and diagram, made from the registries."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .code_pages import CODE, SUFFIX
from .gallery_uses import examples_by_use
from .markdown_tables import write_table
from .measurements import measured_sections, overview_sentence


@dataclass(frozen=True)
class Family:
    """Methods of one kind: where they are in the library, and how the pages call them."""

    name: str  # folder of the pages and attribute of the library
    registry: str  # "module:CONSTANT"
    noun: str
    title: str
    function: str
    guide: str  # page that describes the family

    def registered(self) -> Any:
        """Return the registry."""
        module, _, constant = self.registry.partition(":")
        return getattr(importlib.import_module(module), constant)

    def names(self) -> tuple[str, ...]:
        """Return the names of all methods."""
        return tuple(self.registered().names())

    def public_class(self, name: str) -> Any:
        """Return the class that the library has under the name of the method."""
        return getattr(getattr(importlib.import_module("trueodds"), self.name), name)


FAMILIES = (
    Family("estimators", "trueodds.estimators:ESTIMATORS", "estimator", "Estimators", "measure", "estimators.md"),
    Family("tests", "trueodds.hypotests:TESTS", "test", "Hypothesis tests", "test", "tests.md"),
    Family("calibrators", "trueodds.calibrators:CALIBRATORS", "calibrator", "Calibrators", "fit", "calibrators.md"),
    Family("diagrams", "trueodds.diagrams:DIAGRAMS", "diagram", "Diagrams", "draw", "diagrams.md"),
)


def summary_of(obj: Any) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(obj) or "").split("\n")[0]


def names_by_family() -> dict[str, tuple[str, ...]]:
    """Return the names of all methods by family."""
    return {family.name: family.names() for family in FAMILIES}


def method_page(docs: Path, family: Family, name: str, examples: list[str]) -> str:
    """Return the reference page of a method."""
    cls = family.public_class(name)
    qualified = f"trueodds.{family.name}.{cls.__name__}"
    summary = json.dumps(summary_of(cls), ensure_ascii=False)  # in quotation marks, as YAML reads it
    blocks = [f"---\nmyst:\n  html_meta:\n    description: {summary}\n---", f"# {name} ({family.noun})"]
    overview = overview_sentence(docs, family.name, name)
    guide = f"All {family.title.lower()} are compared on the page [{family.title}](../../{family.guide})."
    blocks.append(f"{family.noun.capitalize()}. {overview[:1].upper()}{overview[1:]}. {guide}" if overview else guide)
    if family.name == "diagrams":
        blocks.append(f"![Example of the diagram {name}, drawn with synthetic predictions]({name}.png)")
    blocks.append(f"```{{eval-rst}}\n.. autoclass:: {qualified}\n```")
    sections = measured_sections(docs, family.name, name)
    if sections:
        blocks += ["## Measured properties", *sections]
    if examples:
        blocks += ["## Examples that use it", minigallery(examples)]
    return "\n\n".join(blocks) + "\n"


def minigallery(examples: list[str]) -> str:
    """Return the directive that shows examples of the gallery."""
    lines = "\n".join(f"   examples/{name}" for name in examples)
    return f"```{{eval-rst}}\n.. minigallery::\n\n{lines}\n```"


def method_table(family: Family, folder: str = "") -> str:
    """Return a table of the methods of a family, whose pages are in a folder."""
    rows = [(f"[{name}]({folder}{name}{SUFFIX})", summary_of(family.public_class(name))) for name in family.names()]
    return write_table(("name", "summary"), rows)


def list_methods() -> str:
    """Return the tables of all families, with links that are valid in the folder of the reference."""
    return "\n".join(f"## {family.title}\n\n{method_table(family, f'{family.name}/')}\n" for family in FAMILIES)


def family_page(family: Family) -> str:
    """Return the list of the methods of a family."""
    entries = "\n".join(f"{name} <{name}>" for name in family.names())  # in the navigation, without the noun
    if family.name == "diagrams":
        call = f'`to.{family.function}(preds, "reliability")`'
    else:
        call = f'`to.{family.function}(preds, "{family.names()[1]}")`'
    text = (
        f"{call} uses a {family.noun} by its name; keyword arguments are its settings. The page "
        f"[{family.title}](../../{family.guide}) helps to choose one."
    ).replace("a estimator", "an estimator")
    table = method_table(family)
    return f"# {family.title} by name\n\n{text}\n\n{table}\n\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"


def method_pages(docs: Path) -> dict[str, str]:
    """Map the path of each page, relative to the documentation, to its content."""
    uses = examples_by_use(docs / "examples", names_by_family())
    pages = {}
    for family in FAMILIES:
        pages[f"reference/{family.name}/index{SUFFIX}"] = family_page(family)
        for name in family.names():
            examples = uses.get((family.name, name), [])
            pages[f"reference/{family.name}/{name}{SUFFIX}"] = method_page(docs, family, name, examples)
    return pages


def methods_by_code() -> dict[str, list[str]]:
    """Map each code to links to the methods whose docstring mentions it, relative to the pages of the codes."""
    links: dict[str, list[str]] = {}
    for family in FAMILIES:
        for name in family.names():
            for code in sorted(set(CODE.findall(inspect.getdoc(family.public_class(name)) or ""))):
                link = f"[{name}](../reference/{family.name}/{name}{SUFFIX}) ({family.noun})"
                links.setdefault(code, []).append(link)
    return links


def pages_of_names() -> Mapping[str, list[str]]:
    """Map the name and the class name of each method to the documents about it."""
    pages: dict[str, list[str]] = {}
    for family in FAMILIES:
        for name in family.names():
            for word in {name, family.public_class(name).__name__}:
                pages.setdefault(word, []).append(f"reference/{family.name}/{name}")
    return pages
