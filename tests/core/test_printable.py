"""Can text from data neither control a terminal nor reorder the text around it, and is all other text unchanged?"""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import numpy as np
import pandas as pd
import pytest

import trueodds as to
from trueodds.api.by_group import by_group
from trueodds.calibrators.fitted_calibrator import FittedCalibrator
from trueodds.calibrators.recalibration_report import Recalibration
from trueodds.cli.messages import spell_error, spell_options
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.printable import (
    END_OF_ISOLATE,
    ISOLATE,
    has_surrogates,
    isolate,
    isolate_tree,
    printable_json,
    printable_lines,
    printable_tree,
    to_printable,
    without_surrogates,
)
from trueodds.lenses.selective_risk import selective_risk

CONTROLS = [
    *map(chr, range(0x20)),
    *map(chr, range(0x7F, 0xA0)),
    *"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029",
    *"\ud800\udbff\udc00\udcff\udfff",
]


@pytest.mark.parametrize("control", CONTROLS, ids=lambda c: f"U+{ord(c):04X}")
def test_a_control_is_shown_as_python_writes_it(control: str) -> None:
    assert to_printable(f"a{control}b") == f"a{repr(control)[1:-1]}b"


def test_no_control_of_unicode_or_of_the_text_direction_is_left() -> None:
    # Every character that Unicode says controls a device or the direction of text (UAX 9, Bidi_Class of a formatting
    # character): the test goes over all of Unicode, the list above over what we know of.
    formatting = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    every = map(chr, range(0x110000))
    left = [
        c
        for c in every
        if (unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(c) in formatting)
        and c in to_printable(c)
    ]
    assert left == []


@pytest.mark.parametrize("name", ["Größe ≤ 3", "猫", "שלום", "سلام", "👩\u200d🔬", "a\\x1bb", "100 %"])
def test_other_text_stays_as_it_is(name: str) -> None:
    assert to_printable(name) == name


def test_what_is_escaped_already_is_not_escaped_again() -> None:
    assert to_printable(to_printable("a\x1b\u202e\udcff")) == to_printable("a\x1b\u202e\udcff")


def test_lines_keep_their_breaks() -> None:
    assert printable_lines("a\x1b\nb\r\n") == "a\\x1b\nb\\r\n"


def test_a_tree_is_printable_down_to_its_keys_and_keeps_its_types() -> None:
    tree = {"a\x1b": [1, None, ("b\x9b", 0.5)]}
    assert printable_tree(tree) == {"a\\x1b": [1, None, ("b\\x9b", 0.5)]}


def test_json_for_a_terminal_is_the_same_document() -> None:
    document = {"a\x9b": ["\u202e\x7f", "ü\n"]}
    text = printable_json(json.dumps(document, ensure_ascii=False))
    assert json.loads(text) == document
    assert "ü" in text
    assert not any(c in text for c in "\x9b\u202e\x7f")


def test_json_without_surrogates_can_be_encoded_and_keeps_all_other_text() -> None:
    document = ["a\udcffb", "\\udcff", "\U0001f600", "\\\udc80"]
    parsed = json.loads(without_surrogates(json.dumps(document)))
    assert parsed == ["a\\udcffb", "\\udcff", "\U0001f600", "\\\\udc80"]
    json.dumps(parsed, ensure_ascii=False).encode()


def test_surrogates_are_distinguished_from_pairs() -> None:
    assert has_surrogates("a\udcff")
    assert not has_surrogates("\U0001f600")


# Results

ESCAPE = "\x1b[31mZQ\u202e\n\x85"


def results() -> dict[str, Any]:
    """A result of every kind, whose classes, groups and models are named by controls."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 90)
    y = (P.cumsum(axis=1) < rng.random((90, 1))).sum(axis=1).clip(max=2)
    names, lens = [f"{ESCAPE}a", f"{ESCAPE}b", "c"], f"class:{ESCAPE}a"
    group = {ESCAPE: np.where(rng.random(90) < 0.5, f"{ESCAPE}x", f"{ESCAPE}y")}
    preds = to.Predictions(y, P, classes=names, group=group)
    other = to.Predictions(y, P**2 / (P**2).sum(axis=1, keepdims=True), classes=names)
    models = {f"{ESCAPE}m": preds, f"{ESCAPE}n": other}
    unseen = to.Predictions(np.where(y == 0, 1, y), P, classes=names)
    return {
        "Estimate": to.measure(preds, "ece", lens=lens, resamples=20),
        "Verdict": to.test(preds, "consistency", lens=lens, resamples=19),
        "Comparison": to.compare(preds, other, "ece", lens=lens, names=list(models), resamples=20),
        "Ranking": to.compare(models, "brier", resamples=20),
        "Power": to.power(preds, effect=0.1, lens=lens, simulations=20, resamples=19),
        "ByGroup": by_group(preds, "ece", resamples=19),
        "ByGroup of the rest": by_group(preds, "ece", against="rest", resamples=19),
        "SelectiveRisk": selective_risk(preds, resamples=19),
        "Recalibration": Recalibration(None, None, "identity", "", 9, 9, None, notes=(Note("TN501", ESCAPE),)),
        "Fitted": to.fit(unseen, "temperature"),  # notes the class of which no outcome came
        "Tally": to.tally(preds),
        "Predictions": preds,
    }


def test_every_result_shows_names_from_data_without_their_controls() -> None:
    shown = {}
    for kind, result in results().items():
        texts = [str(result)] if kind in ("Recalibration", "SelectiveRisk") else [str(result), repr(result)]
        methods = (getattr(result, name, None) for name in ("describe", "summary", "_repr_html_"))
        texts += [method() for method in methods if callable(method)]
        shown[kind] = any("\\x1b[31mZQ" in text for text in texts)
        for text in texts:
            assert printable_lines(text) == text, kind
            # A table of text shortens a long name in its middle.
            lines = [line for line in text.split("\n") if "ZQ" in line and "…" not in line]
            assert all("\\x1b[31mZQ\\u202e\\n\\x85" in line for line in lines), kind
    assert {kind for kind, has in shown.items() if not has} <= {"SelectiveRisk", "Tally"}  # these name nothing


def test_a_fitted_map_is_described_without_controls() -> None:
    class Named(type(to.fit(to.Predictions([0, 1] * 9, [0.4, 0.6] * 9), "identity").calibration_map)):
        def describe(self) -> str:
            return f"for {ESCAPE}"

    assert (
        FittedCalibrator(Named(), (0, 1), 18).describe()
        == "identity · for \\x1b[31mZQ\\u202e\\n\\x85 · n=18 · 2 classes"
    )


def test_names_from_the_data_are_not_taken_for_marked_code():
    frame = pd.DataFrame({"label": [0, 1], "p_1": [0.2, 0.3], "⟨bins=10⟩": [1, 2]})
    with pytest.raises(InputError) as error:
        to.read(frame, label="labels of rows")
    assert r"\u27e8bins=10\u27e9" in error.value.fix
    assert "--bins" not in spell_options(error.value.fix)
    assert describe("⟨bins=10⟩") == r"'\u27e8bins=10\u27e9'"


@pytest.mark.parametrize(
    ("columns", "settings", "in_python", "in_a_shell"),
    [
        (("⟨y⟩", "p_0", "p_1"), {"label": "⟨z"}, r"label='\u27e8z'", r"--label $'\u27e8z'"),
        (("label", "⟨p⟩_1", "⟨p⟩_2"), {}, r"probs='\u27e8p\u27e9_*'", r"--probs $'\u27e8p\u27e9_*'"),
        (
            ("label", "p_0", "⟨a⟩", "b"),
            {"group": "⟨a⟩,b"},
            r"group=['\u27e8a\u27e9', 'b']",
            r"--group $'\u27e8a\u27e9'",
        ),
    ],
)
def test_suggested_code_quotes_names_with_marks(
    columns: tuple[str, ...], settings: dict[str, str], in_python: str, in_a_shell: str
) -> None:
    """A Python string, and Bash's $'…', read the escapes."""
    with pytest.raises(InputError) as error:
        to.read({name: [0, 1] for name in columns}, **settings)
    assert in_python in f"{error.value.got} {error.value.fix}"
    spelled = spell_error(error.value)
    assert in_a_shell in f"{spelled.got} {spelled.fix}"


HEBREW, ARABIC = "חתול גדול", "كلب (2)"


def isolated(text: str) -> str:
    return f"{ISOLATE}{text}{END_OF_ISOLATE}"


def test_a_name_is_isolated_with_its_digits_and_brackets() -> None:
    assert isolate(f"class {ARABIC}: 3 of 15", [ARABIC]) == f"class {isolated(ARABIC)}: 3 of 15"


def test_words_that_are_no_names_are_isolated_up_to_their_last_letter() -> None:
    assert isolate(f"site={HEBREW} (12 rows)") == f"site={isolated(HEBREW)} (12 rows)"


def test_the_longest_name_is_taken_whole() -> None:
    assert isolate("כלב 2", ["כלב", "כלב 2"]) == isolated("כלב 2")


@pytest.mark.parametrize("text", ["", "cat: 3", "猫 (2)", "Größe ≤ 3", "Ωμέγα"])
def test_text_from_left_to_right_is_unchanged(text: str) -> None:
    assert isolate(text, [text]) == text


def test_all_text_in_a_tree_is_isolated_keys_included() -> None:
    tree = {HEBREW: [1, None, (f"class:{HEBREW}", 0.5)], "n": True}
    assert isolate_tree(tree, [HEBREW]) == {
        isolated(HEBREW): [1, None, (f"class:{isolated(HEBREW)}", 0.5)],
        "n": True,
    }
