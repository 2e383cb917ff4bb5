"""Are the generated pages of the documentation site complete, and do they repeat the tables of the documentation?"""

from __future__ import annotations

import doctest
import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MODULES = ("markdown_tables", "measurements", "code_pages", "gallery_uses", "method_pages", "public_pages")
MODULES += ("accessibility", "docstrings", "formulas", "versions", "check_links", "check_search", "index_entries")


@pytest.fixture(scope="module")
def site() -> Iterator[dict[str, Any]]:
    """The modules of the extension that need no Sphinx."""
    path = str(DOCS / "_ext")
    sys.path.insert(0, path)
    try:
        yield {name: importlib.import_module(f"trueodds_docs.{name}") for name in MODULES}
    finally:
        sys.path.remove(path)


@pytest.fixture(scope="module")
def pages(site: dict[str, Any]) -> dict[str, str]:
    """All generated pages by their path."""
    codes = site["code_pages"].code_pages(DOCS, site["method_pages"].methods_by_code())
    return codes | site["method_pages"].method_pages(DOCS) | site["public_pages"].public_pages(DOCS)


@pytest.mark.parametrize(
    "module",
    [
        "accessibility",
        "markdown_tables",
        "measurements",
        "gallery_uses",
        "docstrings",
        "formulas",
        "versions",
        "check_links",
        "check_search",
        "index_entries",
    ],
)
def test_the_examples_of_the_extension_print_what_they_show(site: dict[str, Any], module: str) -> None:
    result = doctest.testmod(site[module])
    assert result.attempted > 0
    assert result.failed == 0


def test_every_code_has_exactly_one_page_with_all_its_fields(pages: dict[str, str]) -> None:
    rows = re.findall(
        r"^\| (T[ON]\d{3}) \| (.*) \| (.*) \| (.*) \|$", (DOCS / "codes.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(rows) > 200
    assert sorted(path for path in pages if path.startswith("codes/")) == sorted(f"codes/{row[0]}.myst" for row in rows)
    for code, problem, remedy, used_by in rows:
        page = pages[f"codes/{code}.myst"]
        assert page.startswith(f"# {code}: ")
        assert f"\n\n{problem}\n\n" in page or "](" in problem
        assert f"\n\n{remedy}\n\n" in page or "](" in remedy
        assert used_by == "anywhere" or all(f"`{part}`" in page for part in used_by.split(", "))


def test_a_page_of_a_code_links_to_the_codes_of_its_group(pages: dict[str, str]) -> None:
    linked = set(re.findall(r"\]\((T[ON]\d{3})\.myst\)", pages["codes/TO102.myst"]))
    assert {"TO101", "TO103", "TO118"} <= linked
    assert all(code.startswith("TO1") for code in linked - {"TO102"})
    assert "TO102" not in linked


def test_every_method_has_a_page_and_every_page_of_a_method_is_listed(
    site: dict[str, Any], pages: dict[str, str]
) -> None:
    for family in site["method_pages"].FAMILIES:
        folder = f"reference/{family.name}"
        names = {path.removeprefix(f"{folder}/").removesuffix(".myst") for path in pages if path.startswith(folder)}
        assert names == {"index", *family.registered().names()}
        index = pages[f"{folder}/index.myst"]
        toctree = index.split(":hidden:\n\n")[1].split("\n```")[0].split("\n")
        assert toctree == [f"{name} <{name}>" for name in family.registered().names()]


def test_the_page_of_a_method_names_the_class_that_the_library_has_under_its_name(pages: dict[str, str]) -> None:
    import trueodds as to

    for path, page in pages.items():
        match = re.fullmatch(r"reference/(estimators|tests|calibrators|diagrams)/(\w+)\.myst", path)
        if match and match[2] != "index":
            (qualified,) = re.findall(r"autoclass:: trueodds\.(\w+)\.(\w+)", page)
            assert qualified[0] == match[1]
            assert getattr(getattr(to, match[1]), match[2]) is getattr(getattr(to, match[1]), qualified[1])


def test_every_method_is_in_the_table_of_its_family(site: dict[str, Any]) -> None:
    sentence = site["measurements"].overview_sentence
    missing = [
        f"{family.name}/{name}"
        for family in site["method_pages"].FAMILIES
        for name in family.registered().names()
        if not sentence(DOCS, family.name, name)
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("path", "page", "row"),
    [
        ("estimators/ece", "estimators.md", r"^\| `ece` classwise \| folded-normal .*$"),
        ("estimators/ecce_mad", "estimators.md", r"^\| `ecce_mad` \| .*$"),
        ("tests/cox", "level.md", r"^\| cox score \| asymptotic .*$"),
        ("tests/skce", "level.md", r"^\| skce \| dirichlet 3 \| 40 .*$"),
        ("calibrators/mcllo", "calibrators.md", r"^\| `mcllo`, `llo`, `platt`, `beta` \| 8 \|$"),
    ],
)
def test_a_page_repeats_the_measured_rows_of_its_method(pages: dict[str, str], path: str, page: str, row: str) -> None:
    (line,) = re.findall(row, (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert line in pages[f"reference/{path}.myst"].split("\n")


def test_a_page_has_no_row_of_another_method(pages: dict[str, str]) -> None:
    page = pages["reference/tests/ks.myst"]
    first = re.findall(r"^\| (\w+) \| (?:redraw|asymptotic|logit-normal|dirichlet 3) \|", page, re.MULTILINE)
    assert set(first) == {"ks"}


def test_a_calibrator_has_a_row_for_each_data_set(pages: dict[str, str]) -> None:
    page = pages["reference/calibrators/temperature.myst"]
    rows = re.findall(r"^\| \[([^\]]+)\]\(\.\./\.\./fixes\.md#[^)]+\) \| (\w+)", page, re.MULTILINE)
    assert {name for _, name in rows} == {"temperature"}
    headings = re.findall(r"^## (.+)$", (DOCS / "fixes.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {data for data, _ in rows} <= set(headings)
    assert len({data for data, _ in rows}) == 8


def test_every_job_whose_speed_is_shown_is_on_the_page_on_speed(site: dict[str, Any]) -> None:
    assert site["measurements"].missing_speed_jobs(DOCS) == []


def test_every_relative_link_of_a_generated_page_leads_to_a_page_and_an_anchor(
    site: dict[str, Any], pages: dict[str, str]
) -> None:
    anchors = site["measurements"].anchors_of_page
    broken = []
    for path, page in pages.items():
        for target in re.findall(r"\]\((?!\w+:)([^)#]*(?:#[^)]+)?)\)", page):
            file, _, anchor = target.partition("#")
            if file.endswith(".png"):
                continue
            linked = (DOCS / path).parent.joinpath(file).resolve().relative_to(DOCS).as_posix()
            exists = linked in pages or (DOCS / linked).exists()
            if not exists or (anchor and anchor not in anchors(DOCS, linked)):
                broken.append((path, target))
    assert broken == []


def test_an_example_is_listed_on_the_pages_of_the_methods_that_it_uses(pages: dict[str, str]) -> None:
    assert "examples/plot_08_simplex.py" in pages["reference/tests/skce.myst"]
    assert "examples/plot_08_simplex.py" in pages["reference/diagrams/simplex.myst"]
    assert "examples/plot_08_simplex.py" not in pages["reference/estimators/skce.myst"]
    assert "examples/plot_05_compare_models.py" in pages["reference/functions/compare.myst"]


@pytest.mark.parametrize("file", sorted((DOCS / "examples").glob("plot_*.py")), ids=lambda file: file.stem)
def test_an_example_asks_a_question_and_uses_the_library(site: dict[str, Any], file: Path) -> None:
    source = file.read_text(encoding="utf-8")
    title = source.split("\n")[1]
    assert title.endswith("?")
    uses = site["gallery_uses"].uses_of_example(source, site["method_pages"].names_by_family())
    assert {family for family, _ in uses} - {"functions"}


def test_every_public_function_and_class_has_a_page(pages: dict[str, str]) -> None:
    import trueodds as to

    packages = {"estimators", "tests", "calibrators", "diagrams", "metrics"}
    documented = {path.rpartition("/")[2].removesuffix(".myst") for path in pages if path.startswith("reference/")}
    assert {*to.__all__} - packages - documented == set()
    assert {f"reference/metrics/{name}.myst" for name in to.metrics.__all__} <= pages.keys()


def test_the_first_page_of_the_reference_lists_every_method_with_a_sentence(site: dict[str, Any]) -> None:
    rows = re.findall(
        r"^\| \[(\w+)\]\((\w+)/(\w+)\.myst\) \| (.+) \|$", site["method_pages"].list_methods(), re.MULTILINE
    )
    listed = [(family, name) for label, family, name, summary in rows if label == name and len(summary.split()) > 2]
    names = site["method_pages"].names_by_family()
    assert listed == [(family, name) for family in names for name in names[family]]


@pytest.fixture(scope="module")
def sources(pages: dict[str, str]) -> dict[str, str]:
    """The text of every document of the site by its name, except the examples."""
    renamed = {"site": "index", "index": "guide"}
    written = {file.relative_to(DOCS).as_posix(): file for file in DOCS.rglob("*.md")}
    documents = {renamed.get(path[:-3], path[:-3]): file.read_text(encoding="utf-8") for path, file in written.items()}
    return documents | {path.removesuffix(".myst"): text for path, text in pages.items()}


def headings_of(text: str) -> list[str]:
    """The headings of a page; the first one is its title."""
    without_code = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [heading.replace("`", "") for heading in re.findall(r"^#+ (.+)$", without_code, re.MULTILINE)]


def test_no_two_pages_have_the_same_title(sources: dict[str, str]) -> None:
    titles: dict[str, list[str]] = {}
    for document, text in sources.items():
        titles.setdefault(headings_of(text)[0].lower(), []).append(document)
    for file in [*(DOCS / "examples").glob("plot_*.py"), DOCS / "examples" / "GALLERY_HEADER.rst"]:
        (title,) = re.findall(r"^(.+)\n==", file.read_text(encoding="utf-8"), re.MULTILINE)
        titles.setdefault(title.lower(), []).append(file.stem)
    assert len(titles) > 400
    assert {title: documents for title, documents in titles.items() if len(documents) > 1} == {}


@pytest.fixture(scope="module")
def search_index(site: dict[str, Any], sources: dict[str, str]) -> dict[str, Any]:
    """An index like that of Sphinx, with words instead of stems and without the names of Python objects."""
    documents = list(sources)
    headings = [headings_of(sources[document]) for document in documents]
    every: dict[str, list[Any]] = {}
    terms: dict[str, list[int]] = {}
    title_terms: dict[str, list[int]] = {}
    entries: dict[str, list[Any]] = {}
    for number, document in enumerate(documents):
        for heading in headings[number]:
            every.setdefault(heading, []).append([number, None])
        for index, words in ((terms, sources[document]), (title_terms, " ".join(headings[number]))):
            for word in set(re.findall(r"\w+", words.lower())):
                index.setdefault(word, []).append(number)
        for name in site["index_entries"].index_entries().get(document, ()):
            entries.setdefault(name.lower(), []).append([number, "", True])
    return {
        "docnames": documents, "titles": [first for first, *_ in headings], "alltitles": every, "terms": terms,
        "titleterms": title_terms, "indexentries": entries, "objects": {}, "objnames": {},
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "right"),
    [
        ("calibration slope", ("how_to/clinical_validation", "reference/tests/cox")),
        ("reliability diagram", ("reference/diagrams/reliability", "diagrams")),
        ("temperature", ("reference/calibrators/temperature",)),
        ("Hosmer Lemeshow", ("reference/tests/hosmer_lemeshow",)),
        ("brier", ("reference/estimators/brier",)),
        ("ece gate", ("how_to/gate_in_ci",)),
        ("GridSearchCV", ("how_to/scikit_learn",)),
    ],
)
def test_a_search_finds_the_right_pages_among_the_first_three(
    site: dict[str, Any], search_index: dict[str, Any], query: str, right: tuple[str, ...]
) -> None:
    """`make linkcheck` searches for the same in the index of the built site."""
    assert site["check_search"].QUERIES[query] == right
    assert set(right) <= set(site["check_search"].find_pages(search_index, query)[:3])


def test_every_page_with_entries_in_the_index_exists(site: dict[str, Any], sources: dict[str, str]) -> None:
    assert set(site["index_entries"].index_entries()) - set(sources) == set()


def test_what_restructuredtext_would_read_as_markup_is_escaped(site: dict[str, Any]) -> None:
    escape = site["docstrings"].escape_docstring
    lines = ["The mean of |r| and :math:`|x|`.", "", ".. math:: |a|", "", "    |b|", "", "The classes_ |c|."]
    assert escape(lines) == [
        "The mean of \\|r\\| and :math:`|x|`.", "", ".. math:: |a|", "", "    |b|", "", "The classes\\_ \\|c\\|.",
    ]  # fmt: skip


def test_the_newest_release_is_the_stable_version(site: dict[str, Any], tmp_path: Path) -> None:
    for folder in ("dev", "0.9.1", "0.10.0", ".git"):
        (tmp_path / folder).mkdir()
    site["versions"].write_versions(tmp_path, "https://example.org/docs/")
    entries = json.loads((tmp_path / "switcher.json").read_text(encoding="utf-8"))
    assert [entry["version"] for entry in entries] == ["0.10.0", "0.9.1", "dev"]
    assert [entry["preferred"] for entry in entries] == [True, False, False]
    assert entries[0]["url"] == "https://example.org/docs/0.10.0/"
    assert "url=stable/index.html" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_a_folder_without_a_version_gets_no_page_that_leads_nowhere(site: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "0.1.0rc1").mkdir()
    site["versions"].write_versions(tmp_path, "https://example.org/docs/")
    assert json.loads((tmp_path / "switcher.json").read_text(encoding="utf-8")) == []
    assert not (tmp_path / "index.html").exists()
