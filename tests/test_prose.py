"""Are texts written in the field's standard terms? Phrases of the project's former private language are refused."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("no_garbage_collection")

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "studies" / "README.md", *(ROOT / "docs").rglob("*.md")]
)
STUDIES = "studies/src/trueodds_studies"
PARTS = sorted({file.relative_to(ROOT / "src/trueodds").parts[0] for file in (ROOT / "src/trueodds").rglob("*.py")})

# A pattern in lower case, and what to write instead. "stated probability" is allowed.
PHRASES = {
    # what the model predicts, and what is observed
    r"\bit came\b": "observed event rate",
    r"\b(?:came|comes|come) (?:true|as stated|as said|as often as)\b": (
        "perfect calibration, observed as often as predicted"
    ),
    r"\bwhat (?:came|comes)\b": "the outcomes, the observed event rate",
    r"\bwhat (?:was|were|is) said\b": "the predictions, the predicted probability",
    r"\bas (?:was )?said\b": "as predicted",
    r"\bsaid (?:too (?:little|much|high|low|often|seldom|surely))\b": "underpredicted, overpredicted",
    r"\bsays? (?:too (?:little|much))\b": "underpredicts, overpredicts",
    r"\bsaid and seen\b|\bseen (?:and|from) (?:is )?said\b|\bseen is from said\b": "predicted and observed",
    r"\bit says\b(?! (?:yes|no)\b)": "the model predicts",
    r"\bclaims? of m\b": "events",
    r"\bcalled (?:it )?impossible\b": "had predicted probability 0",
    r"\btoo (?:sure|timid|modest)\b": "overconfident, underconfident",
    r"\b(?:how|so) sure\b": "confidence, uncertainty",
    r"\bsides? of 50\b": "cross the 0.5 threshold",
    # size of an error
    r"\b(?:is|are|was|were|be) (?:far )?off by\b": "the error is, differs by",
    r"\bhow far off\b": "how large the error is",
    r"\boff beyond chance\b|\bfar off\b": "significantly miscalibrated, large error",
    r"\bcalled off\b": "declared miscalibrated",
    r"\bis (?:that|it) chance\b": "calibration rejected, p-value",
    r"\bstrays? (?:beyond|outside)\b": "differs significantly",
    r"\bown expectation\b": "expected score if calibrated",
    r"\bthe least error that matters\b|\bsmallest error that matters\b": "equivalence margin",
    r"\btime(?:s)? (?:in|out of) (?:five|twenty)\b": "with 80 % power, with probability 5 %",
    r"\bwould have been found\b|\bwould have been seen\b": "detectable",
    r"\bno fix is justified\b": "no recalibration could be confirmed",
    r"\b(?:a|the|no) fix(?:es)?\b": "recalibration",
    r"\b(?:mends|mended|mending)\b": "recalibrates, corrects",
    # statistics
    r"\b(?:null|normal|asymptotic|binomial|uniform|limiting|dirichlet) laws?\b": (
        "null distribution, normal distribution"
    ),
    r"\b(?:of|by|from) the laws?\b|\bby other laws\b": "distribution",
    r"\bhangs? together\b": "are dependent",
    r"\bholds? together\b": "simultaneous",
    r"\b(?:holds|held) the truth\b": "covers the true value",
    r"\b(?:told|tells|tell) (?:\w+ ){0,2}apart\b": "distinguished, discrimination",
    r"\bthe least (?:and|to) the most\b|\bleast and most\b": "minimum and maximum",
    r"\bon endless rows\b|\bof endless rows\b": "for infinitely many rows, the limit",
    r"\bas many rows as\b.*\brest\b": "effective sample size",
    r"\bby chance alone gives\b": "expected by chance",
    # program
    r"\basked for\b": "requested, selected, the settings",
    r"\bis said elsewhere\b": "is not a setting of this call",
    r"\bwhere (?:none|nothing|that|it) is (?:said|asked)\b|\bif not said\b|\bif that is not said\b": "by default",
    r"\ba (?:estimator|outcome|event)\b": "an estimator (grammar)",
    r"\b(?:a|the|every|each|most|no|any) members?\b(?! of)": "estimator, test, calibrator, diagram; method",
    r"\banew\b": "again",
    r"\btaken off\b": "subtracted",
    r"\bgoes? on where\b|\bwent on where\b": "continues where",
    r"\bstudy that was stopped\b|\bstopped study\b": "interrupted study",
    r"\bas it is told\b|\bis told that\b": "is notified",
    r"\bthe façade\b": "the public functions",
    # English
    r"\bin place of\b": "instead of",
    r"\bthose of which\b": "name what is meant",
    r"\bthrough the same lens\b": "for the same lens",
    r"\bmixed likewise\b": "with the same mixture",
    r"\b(?:rows|clusters) in effect\b": "effective number of rows or clusters",
}
PATTERN = re.compile("|".join(f"(?P<p{i}>{phrase})" for i, phrase in enumerate(PHRASES)), re.IGNORECASE)


def prose(page: str) -> str:
    """A page without blocks of code, code within lines, and the alternative texts of images, which diagrams write.

    Line numbers stay as they are.
    """
    page = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), page, flags=re.MULTILINE | re.DOTALL)
    return without_code(re.sub(r"!\[[^\]]*\]", "![]", page))


def without_code(text: str) -> str:
    """A text without code between backticks and without the lines of doctests with their output.

    >>> without_code("The `asked for` value.").split()
    ['The', 'value.']
    """
    text = re.sub(r"^[ ]*>>>(?:.*\n?)(?:[ ]*\S.*\n?)*", lambda lines: "\n" * lines[0].count("\n"), text, flags=re.M)
    return re.sub(r"(`+).+?\1", "", text)


def hits(text: str, first_line: int = 1) -> Iterator[tuple[int, str, str]]:
    """Line, phrase, and replacement of every phrase in a text that is not allowed.

    >>> list(hits("Observed.\\nIt came 24 %."))
    [(2, 'It came', 'observed event rate')]
    """
    for match in PATTERN.finditer(re.sub(r"\n[ ]*", lambda gap: "\n" + " " * (len(gap[0]) - 1), text)):
        replacement = next(new for i, new in enumerate(PHRASES.values()) if match[f"p{i}"] is not None)
        yield first_line + text.count("\n", 0, match.start()), " ".join(match[0].split()), replacement


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The first line and the text of every string of a module: docstrings, messages, constant parts of f-strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def problems(file: Path) -> list[str]:
    where = file.relative_to(ROOT).as_posix()
    if file.suffix == ".md":
        matches = hits(prose(file.read_text(encoding="utf-8")))
    else:
        texts = strings(ast.parse(file.read_text(encoding="utf-8")))
        matches = (hit for line, text in texts for hit in hits(without_code(text), line))
    return [f"{where}:{line} {phrase!r} → {replacement}" for line, phrase, replacement in matches]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_has_no_private_phrase(page: Path) -> None:
    assert problems(page) == []


@pytest.mark.parametrize("part", PARTS)
def test_the_texts_of_a_part_of_the_library_have_no_private_phrase(part: str) -> None:
    place = ROOT / "src" / "trueodds" / part
    wrong = [line for file in ([place] if place.is_file() else sorted(place.rglob("*.py"))) for line in problems(file)]
    assert wrong == [], "\n".join(wrong)


def test_the_texts_of_the_studies_have_no_private_phrase() -> None:
    wrong = [line for file in sorted((ROOT / STUDIES).rglob("*.py")) for line in problems(file)]
    assert wrong == [], "\n".join(wrong)


def test_every_phrase_is_found_where_it_stands() -> None:
    """A pattern that matches nothing, not even its own example, would keep nothing out."""
    examples = {
        "It came 23.6 %": "it came", "is off by 4.7 points": "off by", "Is that chance?": "chance", "as said": "said",
        "No fix is justified": "fix", "own expectation": "expectation", "answers change sides of 50 %": "50",
        "said too little": "little", "A estimator is a name": "estimator", "asked for: ece": "asked",
        "what came": "came", "what was said": "said", "the null law": "law", "logits in place of log p": "place",
        "the test through the same lens": "lens", "fewer than 25 rows in effect": "effect",
    }  # fmt: skip
    assert [text for text, word in examples.items() if word not in " ".join(p for _, p, _ in hits(text)).lower()] == []
    assert list(hits("the stated probability of the event")) == []
