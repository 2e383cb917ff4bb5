"""Check that the search of the built site finds the right pages among the first three."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

FIRST = 3
# What readers type, and the pages that they should find.
QUERIES = {
    "calibration slope": ("how_to/clinical_validation", "reference/tests/cox"),
    "reliability diagram": ("reference/diagrams/reliability", "diagrams"),
    "temperature": ("reference/calibrators/temperature",),
    "Hosmer Lemeshow": ("reference/tests/hosmer_lemeshow",),
    "brier": ("reference/estimators/brier",),
    "ece gate": ("how_to/gate_in_ci",),
    "hosmer-lemeshow test": ("reference/tests/hosmer_lemeshow",),
    "expected calibration error": ("reference/estimators/ece",),
    "platt scaling": ("reference/calibrators/platt",),
    "decision curve": ("reference/diagrams/decision_curve",),
    "sklearn": ("how_to/scikit_learn",),
    "GridSearchCV": ("how_to/scikit_learn",),
    "CalibratedClassifierCV": ("how_to/scikit_learn", "reference/classes/RecalibratedClassifier"),
    "sample size": ("reference/functions/power",),
    "annotator disagreement": ("people",),
}
# Scores of searchtools.js.
TITLE, PARTIAL_TITLE, TERM, PARTIAL_TERM, INDEX = 15, 7, 5, 2, 100
OBJECT_NAME, OBJECT_PART = 11, 6
OBJECT_PRIORITY = {0: 15, 1: 5, 2: -5}

Result = tuple[float, str, int]  # score, title that is shown, number of the page


def find_pages(
    index: dict[str, Any], query: str, stem: Callable[[str], str] = str.lower, stopwords: Collection[str] = ()
) -> list[str]:
    """Return the pages in the order in which searchtools.js of Sphinx shows them, each one once.

    >>> index = {"docnames": ["a", "b"], "titles": ["Slope", "B"], "objects": {}, "objnames": {}}
    >>> index |= {"alltitles": {"Slope": [[0, None]], "B": [[1, None]]}}
    >>> index |= {"indexentries": {"slope of a curve": [[1, "", True]]}}
    >>> index |= {"terms": {"slope": [0, 1]}, "titleterms": {"slope": 0, "b": 1}}
    >>> find_pages(index, "slope"), find_pages(index, "slope of")
    (['a', 'b'], ['b', 'a'])
    """
    text = query.lower().strip()
    words = {stem(word) for word in _split(text) if word not in stopwords and not word.isdigit()}
    main = [*_titles(index, text), *_objects(index, set(_split(text))), *_texts(index, words)]
    other: list[Result] = []
    for entry, targets in index["indexentries"].items():
        if text in entry and len(text) >= len(entry) / 2:
            for page, _, is_main in targets:
                score = _round(INDEX * len(text) / len(entry))
                (main if is_main else other).append((score, index["titles"][page], page))
    ordered = [*sorted(main, key=_place), *sorted(other, key=_place)]
    return list(dict.fromkeys(index["docnames"][page] for _, _, page in ordered))


def _split(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def _round(score: float) -> int:
    return int(score + 0.5)


def _place(result: Result) -> tuple[float, str]:
    return -result[0], result[1].lower()


def _titles(index: dict[str, Any], text: str) -> Iterator[Result]:
    for title, targets in index["alltitles"].items():
        if text in title.lower() and len(text) >= len(title) / 2:
            for page, _ in targets:
                own = index["titles"][page]
                shown = title if own == title else f"{own} > {title}"
                yield _round(TITLE * len(text) / len(title)) + (own == title), shown, page


def _objects(index: dict[str, Any], words: set[str]) -> Iterator[Result]:
    for prefix, objects in index["objects"].items():
        for page, kind, priority, _, name in objects:
            full = f"{prefix}.{name}".lstrip(".")
            last = full.lower().rpartition(".")[2]
            context = f"{prefix} {name} {index['objnames'][str(kind)][2]} {index['titles'][page]}".lower()
            for word in words:
                if word in full.lower() and all(each in context for each in words - {word}):
                    is_exact = word in (full.lower(), last)
                    match = OBJECT_NAME if is_exact else OBJECT_PART if word in last else 0
                    yield match + OBJECT_PRIORITY.get(priority, 0), full, page


def _texts(index: dict[str, Any], words: set[str]) -> Iterator[Result]:
    scores: dict[int, dict[str, int]] = {}
    for word in words:
        for score, terms in ((TERM, index["terms"]), (TITLE, index["titleterms"])):
            for page in _pages(terms.get(word, [])):
                scores.setdefault(page, {})[word] = score
        for score, terms in ((PARTIAL_TERM, index["terms"]), (PARTIAL_TITLE, index["titleterms"])):
            if len(word) > 2 and word not in terms:
                for page in {page for term, pages in terms.items() if word in term for page in _pages(pages)}:
                    scores.setdefault(page, {})[word] = score
    enough = {len(words), len([word for word in words if len(word) > 2])}
    for page, found in scores.items():
        if len(found) in enough:
            yield max(found.values()), index["titles"][page], page


def _pages(pages: int | list[int]) -> list[int]:
    return [pages] if isinstance(pages, int) else pages


def read_index(site: Path) -> dict[str, Any]:
    """Return the index that the search of a built site reads."""
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index: dict[str, Any] = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    return index


if __name__ == "__main__":
    from sphinx.search.en import SearchEnglish

    english = SearchEnglish({})
    index = read_index(Path(sys.argv[1]))
    failed = 0
    for query, right in QUERIES.items():
        found = find_pages(index, query, english.stem, english.stopwords)[:FIRST]
        is_found = set(right) <= set(found)
        failed += not is_found
        print(f"{query}: {', '.join(found)}" + ("" if is_found else f"; not among them: {', '.join(right)}"))
    print(f"{len(QUERIES)} searches, {failed} without the right page among the first {FIRST}.")
    sys.exit(bool(failed))
