"""Can no name of a column, class, group, model or file steer the terminal, and does the JSON keep the real names?"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.cli.conftest import Run

# Escapes (color, title, clearing), C1 controls, directions and isolates, separators, and a byte that is no UTF-8.
CLASSES = ["a\x1b[31mred", "b\x9b2J\x85", "c\u202e\u2066\u200f\u061cx"]
GROUP, VALUES = "g\x1b]0;t\x07\u202d", ["v\x1b[2J\u2067", "w\x90\x7f\n[TO000] x"]
# In a locale without UTF-8 the system decodes these bytes to other characters, as it does the arguments of a command.
FILE, PICTURE = (os.fsdecode(name) for name in (b"f\x1b[8m\xe2\x80\xae\xff.csv", b"p\xe2\x80\xae.csv"))
PRINTED_FILE, PRINTED_PICTURE = (name.encode("unicode_escape").decode() for name in (FILE, PICTURE))
UNSAFE = re.compile("(?!\n)[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.fixture
def hostile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with rows whose every name is hostile, in two files, one of them of a hostile name."""
    monkeypatch.chdir(folder)
    rng = np.random.default_rng(5)
    P = rng.dirichlet(np.ones(3), 240)
    y = (P.cumsum(axis=1) < rng.random((240, 1))).sum(axis=1)
    P = P**2 / (P**2).sum(axis=1, keepdims=True)
    for name in ("x.csv", FILE):
        with Path(name).open("w", newline="", encoding="utf-8") as file:
            lines = csv.writer(file)
            lines.writerow(["label", *(f"p_{name}" for name in CLASSES), GROUP])
            for i, (c, p) in enumerate(zip(y, P, strict=True)):
                lines.writerow([CLASSES[c], *map(float, p), VALUES[i % 2]])
    return folder


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["measure", FILE, "--lens", f"class:{CLASSES[0]}", "--interval", "none"], r"class:a\x1b[31mred"),
        (["test", "x.csv", "--lens", f"class:{CLASSES[1]}", "--resamples", 99], r"class:b\x9b2J\x85"),
        (["groups", "x.csv", "--group", GROUP, "--resamples", 99], r"g\x1b]0;t\x07\u202d=w\x90\x7f\n[TO000] x"),
        (["compare", "x.csv", FILE, "--resamples", 99], PRINTED_FILE.removesuffix(".csv")),
        (["fit", "x.csv", "--method", "mcllo", "--out", "c.json"], r"a\x1b[31mred"),
        (["tally", "x.csv", "--group", GROUP, "--out", "f\x1b.tally.json"], r"f\x1b.tally.json"),
        (["draw", FILE, "--lens", "classwise", "--out", PICTURE], PRINTED_PICTURE),
        (["measure", FILE, "--label", "no\x1b"], r"no\x1b"),  # the columns that there are, too
        (["measure", FILE, "--lens", "class:no"], r"a\x1b[31mred"),
        (["measure", FILE, "--probs", "x_*"], PRINTED_FILE),
        (["measure", FILE, "--bins", "\x1b[31m"], r"\x1b[31m"),
        (["measure", FILE, "--no\x1b"], r"--no\x1b"),
        (["me\x1bsure", FILE], r"me\x1bsure"),
        (["audit", "x.csv", "--fail-on", "ec\x1be>1"], r"ec\x1be"),
    ],
)
def test_what_is_printed_shows_controls_as_text(run: Run, hostile: Path, words: list[object], shown: str) -> None:
    done = run(*words)
    printed = done.stdout + done.stderr
    assert UNSAFE.findall(printed) == []
    assert shown in printed
    assert not re.search(r"^\[TO000\]", printed, re.MULTILINE)  # no name makes a line of its own


def test_an_audit_shows_controls_as_text_and_its_json_keeps_the_names(run: Run, hostile: Path) -> None:
    words = ["audit", FILE, "--group", GROUP, "--resamples", 99, "--html", "a.html", "--json"]
    done = run(*words, "a.json")
    assert done.exit_code == 0, done.stderr
    assert UNSAFE.findall(done.stdout + done.stderr) == []
    for name in (r"a\x1b[31mred", r"b\x9b2J\x85", r"c\u202e\u2066\u200f\u061cx", PRINTED_FILE):
        assert name in done.stdout
    page = (hostile / "a.html").read_text(encoding="utf-8")
    assert UNSAFE.findall(page) == []
    assert r"w\x90\x7f\n[TO000] x" in page
    text = (hostile / "a.json").read_text(encoding="utf-8")
    assert UNSAFE.findall(text) == []
    document = json.loads(text)
    assert document["data"]["classes"] == CLASSES
    assert {group["value"] for group in document["groups"]} == set(VALUES)
    # A lone surrogate is no text for other readers.
    assert document["data"]["source"] == re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):x}", FILE)


@pytest.mark.slow
def test_pictures_show_controls_as_text(run: Run, hostile: Path) -> None:
    done = run("draw", FILE, "--lens", "classwise", "--out", "d.svg")
    assert done.exit_code == 0, done.stderr
    picture = (hostile / "d.svg").read_text(encoding="utf-8")
    assert UNSAFE.findall(picture) == []
    ElementTree.fromstring(picture)  # XML knows no control character
    result = run("draw", FILE, "--lens", f"class:{CLASSES[2]}", "--out", "d.json")
    assert result.exit_code == 0
    assert json.loads((hostile / "d.json").read_text(encoding="utf-8"))["lens"] == f"class:{CLASSES[2]}"


def test_an_applied_calibrator_keeps_the_names_and_jsonl_is_safe_to_look_at(run: Run, hostile: Path) -> None:
    assert run("fit", "x.csv", "--method", "temperature", "--out", "c.json").exit_code == 0
    assert run("apply", "c.json", "x.csv", "--out", "y.jsonl").exit_code == 0
    text = (hostile / "y.jsonl").read_text(encoding="utf-8")
    assert UNSAFE.findall(text) == []
    first = json.loads(text.splitlines()[0])
    assert first[GROUP] == VALUES[0]
    assert list(first) == ["label", *(f"p_{name}" for name in CLASSES), GROUP]
    assert run("apply", "c.json", "y.jsonl", "--out", "z.csv").exit_code == 0
    header = next(csv.reader(io.StringIO((hostile / "z.csv").read_text(encoding="utf-8"), newline="")))
    assert header == ["label", *(f"p_{name}" for name in CLASSES), GROUP]


def test_progress_shows_controls_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    from trueodds.core import progress

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "SECONDS_BEFORE_SHOWN", 0.0)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with progress.ProgressBar() as report:
        report(0.5, "reading a\x1b[2J")
    assert r"reading a\x1b[2J" in stream.getvalue()


def test_text_that_cannot_be_encoded_is_refused_where_it_is_data(run: Run, folder: Path) -> None:
    rows = '{"label": %s, "p_a": 0.5, %s: 0.5}\n'
    for label, column, code in (('"\\ud800"', '"p_b"', "TO"), ('"a"', '"p_\\ud800"', "TO313")):
        (folder / "x.jsonl").write_text(rows % (label, column) * 3, encoding="utf-8")
        done = run("measure", folder / "x.jsonl")
        assert done.exit_code == 2
        assert done.stderr.startswith(f"error {code}")
        assert "TO699" not in done.stderr
        assert r"\ud800" in done.stderr
