"""Does everything in the documentation run? Every example in Python and on the command line, on the demo's own file."""

from __future__ import annotations

import contextlib
import doctest
import functools
import io
import re
import runpy
import shlex
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import trueodds as to

ROOT = Path(__file__).parents[1]
LIBRARIES = {  # that a page needs
    "torch.md": ("torch", "torchmetrics", "lightning", "transformers", "keras"),
    "torchmetrics.md": ("torch", "torchmetrics"),
}
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "studies" / "README.md", *(ROOT / "docs").rglob("*.md")]
)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def printed_blocks(page: Path) -> list[tuple[str, str]]:
    """Blocks of Python that a block of text follows, which is what they print."""
    pattern = r"^```python\n((?:(?!```).)*?)^```\n+```text\n(.*?)^```"
    return re.findall(pattern, page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where `make demo` has written its predictions."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "demo").mkdir()
    runpy.run_path(str(ROOT / "demo" / "digits.py"))["main"](str(folder / "demo" / "digits.parquet"))
    return folder


def with_marks(page: Path) -> Any:
    """The page as a parameter: slow, except the two pages that are read first.

    Warnings of the libraries of others are no errors where a page runs them.
    """
    marks = [] if page.name in ("README.md", "tutorial.md") else [pytest.mark.slow]
    marks += [pytest.mark.filterwarnings("default")] if page.name in LIBRARIES else []
    return pytest.param(page, marks=marks)


@pytest.mark.parametrize("page", [with_marks(p) for p in PAGES if blocks(p, "python")], ids=page_name)
def test_the_python_of_a_page_runs(page: Path, digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is one session: what stands behind `>>>` must be printed, in docstrings too; the rest must run."""
    for library in LIBRARIES.get(page.name, ()):
        pytest.importorskip(library)
    monkeypatch.chdir(digits)
    session = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", session)  # dataclasses look up the module they stand in
    names = vars(session)
    parsed, finder = doctest.DocTestParser(), doctest.DocTestFinder()
    for number, block in enumerate(blocks(page, "python"), 1):
        where = f"{page.name}, block {number}"
        if block.startswith(">>>"):
            printed(parsed.get_doctest(block, names, where, None, 0), names)
            continue
        exec(compile(block, where, "exec", dont_inherit=True), names)
        for made in [value for value in names.values() if getattr(value, "__module__", "") == "page"]:
            for example in finder.find(made, module=False, globs=names):
                printed(example, names)


def printed(example: doctest.DocTest, names: dict[str, object]) -> None:
    example.globs = names  # not a copy: a later block sees what an earlier one named
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(example, out=output.append, clear_globs=False).failed == 0, "".join(output)


def run(words: str) -> Any:
    """Run a command in this process. A power is simulated with 40 data sets, because its value is not compared."""
    from click.testing import CliRunner

    from trueodds.cli import main

    reduced = ["--set", "simulations=40"] if words.startswith("power ") and "--width" not in words else []
    return CliRunner().invoke(main, [*shlex.split(words), *reduced])


run_once = functools.cache(run)  # for commands that read no file; two pages have the same study


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "console")], ids=page_name)
def test_the_commands_of_a_page_run(page: Path, digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every `$ trueodds …` line ends with exit code 0, or with the one that `# exits N` behind it says.

    What the README shows as text is how the output of one of them begins.
    """
    monkeypatch.chdir(digits)
    outputs = []
    for line in re.findall(r"^\$ trueodds (.*)$", "\n".join(blocks(page, "console")), re.MULTILINE):
        words, _, exit_code = line.partition("# exits ")
        ran = run_once(words.strip()) if words.startswith(("list ", "study ", "selftest")) else run(words)
        assert ran.exit_code == int(exit_code or 0), f"trueodds {words}\n{ran.output}\n{ran.exception!r}"
        outputs.append(ran.stdout)
    printed = [text for _, text in printed_blocks(page)]
    for shown in blocks(page, "text") if page == ROOT / "README.md" else ():
        if shown in printed:
            continue
        assert [output[: len(shown)] for output in outputs if output[:20] == shown[:20]] == [shown]


def test_the_readme_shows_what_its_python_prints() -> None:
    (block,) = printed_blocks(ROOT / "README.md")
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(block[0], "README.md", "exec", dont_inherit=True), {})
    assert output.getvalue() == block[1]


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def functions_entered(call: Callable[[], object]) -> list[tuple[str, str]]:
    """Names and files of the functions of the package that a call enters, in this order, without comprehensions."""
    entered: dict[tuple[str, str], None] = {}

    def note_call(frame: types.FrameType, event: str, _: object) -> None:
        code = frame.f_code
        path = Path(code.co_filename)
        if event == "call" and path.is_relative_to(ROOT / "src") and not code.co_name.startswith("<"):
            entered[code.co_qualname.rpartition("<locals>.")[2], path.relative_to(ROOT).as_posix()] = None

    sys.setprofile(note_call)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(entered)


def predictions(seed: int) -> to.Predictions:
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 3, size=400)
    return to.Predictions((rng.random(400) < p).astype(int), p)


def links_to_functions(section: str) -> list[tuple[str, str]]:
    """Names and files of the functions to which a section of the page "How it works" links."""
    page = (ROOT / "docs" / "how_it_works.md").read_text(encoding="utf-8")
    (text,) = re.findall(rf"^## {section}.*?(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    return re.findall(r"\[`([\w.]+)`\]\(\.\./(src/[\w/]+\.py)\)", text)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="without compilation, a kernel enters its helpers")
def test_the_steps_of_how_it_works_are_all_functions_that_the_call_enters() -> None:
    to.measure(predictions(1), "ece", interval=None)
    preds = predictions(2)
    entered = functions_entered(lambda: to.measure(preds, "ece", interval=None))
    assert links_to_functions("What happens in") == entered


def test_the_functions_of_the_interval_are_entered() -> None:
    links = links_to_functions("What the interval adds")
    assert len(links) > 4
    preds = predictions(3)
    assert set(links) <= set(functions_entered(lambda: to.measure(preds, "ece", resamples=99)))
