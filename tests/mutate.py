"""Test the tests: change the code in places drawn by a seed, and count the changes that no test notices.

`make mutate MODULE=tallies` (or `python -m tests.mutate tallies --sample 300`) does so for a folder or file of the
package. The mutants are those of cosmic-ray. Each place of the code has the same probability of being drawn, and then
each of its mutants; changes of annotations, which nothing evaluates, are no mutants. A mutant runs only in the tests
that execute its statement, the fastest first, and is killed if one of them fails. A mutant whose tests take much longer
than without the change counts as killed too, but is listed. All these tests run once without a change, and those that
fail then are left out. Kernels run without the compiler.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scipy.stats import beta

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/trueodds")
# Operators that change what a formula or a condition says. The others remove decorators or rename exceptions.
OPERATORS = (
    "ReplaceBinaryOperator",
    "ReplaceComparisonOperator",
    "ReplaceUnaryOperator",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "AddNot",
    "NumberReplacer",
    "ZeroIterationForLoop",
)
# What a process of tests imports anyway; a fork has it already.
HEAVY_IMPORTS = (
    "numba",
    "scipy.stats",
    "scipy.optimize",
    "sklearn",
    "pandas",
    "polars",
    "pyarrow",
    "click",
)
# A mutant has timed out after so many seconds, or so many times what its tests take without a change.
LEAST_SECONDS = 90.0
TIMES_LONGER = 10.0
# The tests of numbers, which also test what is below their own layer.
FOLDERS = (
    "api",
    "binning",
    "calibrators",
    "data",
    "estimators",
    "hypotests",
    "laws",
    "lenses",
    "resampling",
    "tallies",
)


@dataclass(frozen=True)
class Place:
    """Part of a file that one or several mutants replace."""

    path: str
    start: tuple[int, int]
    end: tuple[int, int]


@dataclass
class Mutant:
    """A changed file, and what the tests say of it: killed, timed out, survived, or not covered."""

    place: Place
    operator: str
    before: str
    after: str
    outcome: str = ""
    seconds: float = 0.0
    tests: int = 0

    @property
    def location(self) -> str:
        """File and line."""
        return f"{self.place.path}:{self.place.start[0]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants of the modules that the arguments name, and print the share that is killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__.partition("\n")[0])
    parser.add_argument("module", help="folder or file in src/trueodds, such as tallies or data/weights.py")
    parser.add_argument("--sample", type=int, default=300, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0, help="of the places and mutants drawn")
    parser.add_argument(
        "--tests",
        nargs="+",
        metavar="PATH",
        help="tests and doctests (default: those of numbers, and the doctests of the folder)",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the mutants and their outcomes as JSON")
    args = parser.parse_args(arguments)
    tests = args.tests or [*(f"tests/{name}" for name in FOLDERS), f"src/trueodds/{args.module.split('/')[0]}"]
    with tempfile.TemporaryDirectory() as temporary:
        tree = Path(temporary) / "trueodds"
        copy_tree(tree)
        coverage = Coverage.of_tests(tree, args.module, tests)
        mutants = list(draw_mutants(tree, args.module, args.sample, args.seed))
        if not mutants:
            raise SystemExit(f"Nothing in {args.module} can be changed.")
        enter_tree(tree, args.module)
        check_unchanged(tree, mutants, coverage)
        for number, mutant in enumerate(mutants, 1):
            run_mutant(tree, mutant, coverage)
            print(f"{number}/{len(mutants)} {mutant.outcome} in {mutant.seconds:.1f} s: {mutant.location}", flush=True)
    print_summary(args.module, mutants)
    if args.out:
        args.out.write_text(json.dumps([asdict(mutant) for mutant in mutants], indent=1), encoding="utf-8")
    return 0


def copy_tree(tree: Path) -> None:
    """Copy what git tracks, so that the checkout is never changed."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    for cached in (ROOT / "src").rglob("*.nb[ci]"):  # machine code of kernels
        (tree / cached.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(cached, tree / cached.relative_to(ROOT))
    reference = Path(os.environ.get("TRUEODDS_REFERENCE", ROOT.parent / "shared")).resolve()
    os.environ["TRUEODDS_REFERENCE"] = str(reference)


def enter_tree(tree: Path, module: str) -> None:
    """Make forks of this process test the copy: import what is slow, but nothing of the package."""
    os.environ.update(environment_of(module))  # numba reads it when it is imported
    os.chdir(tree)
    sys.dont_write_bytecode = True  # of a mutant, which the next one of the same size and second would run
    sys.path[:0] = [str(tree / "src"), str(tree)]
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "trueodds")]:
        del sys.modules[name]
    for name in HEAVY_IMPORTS:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


class Coverage:
    """Which tests execute a line, and how long each of them takes."""

    def __init__(self, lines: dict[str, dict[int, set[str]]], seconds: dict[str, float]) -> None:
        self.lines = lines
        self.seconds = seconds

    @classmethod
    def of_tests(cls, tree: Path, module: str, tests: Sequence[str]) -> Coverage:
        """Run the tests once, unchanged; they must pass."""
        source = PACKAGE / module
        environment = environment_of(module) | {
            "COVERAGE_FILE": str(tree / ".coverage"),
            "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}",
        }
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "not slow",
            "--durations=0",
            "--durations-min=0",
        ]
        command += [
            "-o",
            "addopts=--doctest-modules",
            f"--cov={source.parent if source.suffix else source}",
            "--cov-context=test",
            "--cov-report=",
        ]
        process = subprocess.run([*command, *tests], cwd=tree, env=environment, capture_output=True, text=True)
        print(process.stdout.strip().splitlines()[-1], flush=True)
        if process.returncode:
            raise SystemExit(f"The tests fail without a change:\n{process.stdout[-3000:]}")
        return cls(covered_lines(tree), read_durations(process.stdout))

    def tests_of(self, path: str, first: int, last: int) -> list[str]:
        """Return the tests that execute one of the lines, the fastest first; those of the file if it runs at import."""
        lines = self.lines.get(path, {})
        found = {test for line in range(first, last + 1) for test in lines.get(line, ())}
        if found == {""}:
            found = {test for tests in lines.values() for test in tests}
        return self.by_duration(found - {""})

    def by_duration(self, tests: Iterable[str]) -> list[str]:
        """Return the tests, the fastest first."""
        return sorted(tests, key=lambda test: (self.seconds.get(test, 0.0), test))

    def seconds_of(self, tests: Iterable[str]) -> float:
        """Return how long the tests take without a change."""
        return sum(self.seconds.get(test, 0.0) for test in tests)

    def leave_out(self, tests: set[str]) -> None:
        """Forget these tests."""
        for lines in self.lines.values():
            for line in lines:
                lines[line] -= tests


def covered_lines(tree: Path) -> dict[str, dict[int, set[str]]]:
    """Return for each file and line the tests that execute it; "" stands for the import."""
    from coverage import CoverageData

    data = CoverageData(str(tree / ".coverage"))
    data.read()
    lines = {}
    for path in data.measured_files():
        lines[str(Path(path).relative_to(tree.resolve()))] = {
            line: {name_of_test(context) for context in contexts}
            for line, contexts in data.contexts_by_lineno(path).items()
        }
    return lines


def name_of_test(context: str) -> str:
    """Return the test of a context such as "tests/test_a.py::test_or[a|b]|setup"."""
    return context.rpartition("|")[0]


def read_durations(output: str) -> dict[str, float]:
    """Return the seconds of each test, with its setup, from what pytest prints."""
    seconds: dict[str, float] = {}
    for line in output.splitlines():
        words = line.split(maxsplit=2)
        if len(words) == 3 and words[0].endswith("s") and words[1] in ("call", "setup", "teardown"):
            with contextlib.suppress(ValueError):
                seconds[words[2]] = seconds.get(words[2], 0.0) + float(words[0][:-1])
    return seconds


def environment_of(module: str) -> dict[str, str]:
    """Return the environment in which the tests of the module run."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return environment | {"NUMBA_DISABLE_JIT": "1"} if module.split("/")[0] == "kernels" else environment


def draw_mutants(tree: Path, module: str, number: int, seed: int) -> Iterator[Mutant]:
    """Yield mutants at places that the seed draws without replacement."""
    source = tree / PACKAGE / module
    mutations: dict[Place, list[tuple[str, int]]] = {}
    for path in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
        for place, operator, occurrence in list_mutations(path, str(path.relative_to(tree))):
            mutations.setdefault(place, []).append((operator, occurrence))
    rng = random.Random(seed)
    places = sorted(mutations, key=lambda place: (place.path, place.start, place.end))
    rng.shuffle(places)
    drawn = 0
    for place in places:
        before = (tree / place.path).read_text(encoding="utf-8")
        operator, occurrence = rng.choice(sorted(mutations[place]))
        after = mutate(before, operator, occurrence)
        if after is None or not changes_something(before, after):
            continue
        yield Mutant(place, operator, before, after)
        drawn += 1
        if drawn == number:
            return


def list_mutations(path: Path, name: str) -> Iterator[tuple[Place, str, int]]:
    """Yield every place of a file with an operator of cosmic-ray and the number of the occurrence."""
    import cosmic_ray.plugins
    from cosmic_ray.ast import ast_nodes, get_ast

    nodes = list(ast_nodes(get_ast(path.read_text(encoding="utf-8"))))
    for operator_name in cosmic_ray.plugins.operator_names():
        if not operator_name.partition("/")[2].startswith(OPERATORS):
            continue
        operator = cosmic_ray.plugins.get_operator(operator_name)()
        positions = (position for node in nodes for position in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(positions):
            yield Place(name, start, end), operator_name, occurrence


def mutate(code: str, operator_name: str, occurrence: int) -> str | None:
    """Return the code with one occurrence changed."""
    import cosmic_ray.plugins
    from cosmic_ray.mutating import mutate_code

    return mutate_code(code, cosmic_ray.plugins.get_operator(operator_name)(), occurrence)


def changes_something(before: str, after: str) -> bool:
    """Return whether the codes differ beyond their annotations; code that does not compile is no mutant."""
    try:
        return dump_without_annotations(before) != dump_without_annotations(after)
    except SyntaxError:
        return False


def dump_without_annotations(code: str) -> str:
    """Return the syntax tree as text, without the annotations of arguments, results and variables."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        for field in ("annotation", "returns"):
            if getattr(node, field, None) is not None:
                setattr(node, field, ast.Constant(None))
    return ast.dump(tree)


def check_unchanged(tree: Path, mutants: Sequence[Mutant], coverage: Coverage) -> None:
    """Run the tests of all mutants without a change, in the same way, and leave out those that do not pass."""
    tests = coverage.by_duration({test for mutant in mutants for test in tests_of(mutant, coverage)})
    passed = tree / ".passed.json"
    if tests:
        run_tests(tests, seconds=None, passed=passed)
    failed = set(tests) - set(json.loads(passed.read_text(encoding="utf-8")) if passed.exists() else [])
    if failed == set(tests) and tests:
        raise SystemExit("No test of the mutants passes in a fork without a change.")
    for test in sorted(failed):
        print(f"left out, because it does not pass in a fork without a change: {test}", flush=True)
    coverage.leave_out(failed)


def tests_of(mutant: Mutant, coverage: Coverage) -> list[str]:
    """Return the tests that execute the changed statement, the fastest first."""
    return coverage.tests_of(mutant.place.path, *statement_lines(mutant.before, mutant.place.start[0]))


def run_mutant(tree: Path, mutant: Mutant, coverage: Coverage) -> None:
    """Write the changed file, run the tests that execute its statement, and put the file back."""
    tests = tests_of(mutant, coverage)
    mutant.tests = len(tests)
    if not tests:
        mutant.outcome = "not covered"
        return
    path = tree / mutant.place.path
    started = time.monotonic()
    path.write_text(mutant.after, encoding="utf-8")
    try:
        mutant.outcome = run_tests(tests, max(LEAST_SECONDS, TIMES_LONGER * coverage.seconds_of(tests)))
    finally:
        path.write_text(mutant.before, encoding="utf-8")
        mutant.seconds = time.monotonic() - started


def statement_lines(code: str, line: int) -> tuple[int, int]:
    """Return the first and last line of the smallest statement at a line; of a compound one only its head."""
    best = (line, line)
    size = float("inf")
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno or node.lineno
            if node.lineno <= line <= max(end, node.lineno) and end - node.lineno < size:
                best, size = (node.lineno, max(end, node.lineno)), end - node.lineno
    return best


class Selection:
    """Plugin of pytest that runs the tests of a list in its order, as far as they are found, and notes which passed."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.tests = tests
        self.passed: set[str] = set()
        self.failed: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keep the tests of the list."""
        found = {item.nodeid: item for item in items}
        items[:] = [found[test] for test in self.tests if test in found]

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note the outcome of the setup, the call, or the teardown of a test."""
        if report.failed:
            self.failed.add(report.nodeid)
        elif report.when == "call":
            self.passed.add(report.nodeid)


def run_tests(tests: Sequence[str], seconds: float | None, passed: Path | None = None) -> str:
    """Run the tests in a fork, and return killed, timed out, or survived.

    The fork stops at the first failure, unless the names of the tests that pass shall be written to a file. A mutant
    that renames all its tests survives them.
    """
    import pytest

    child = os.fork()
    if child == 0:
        os.setsid()
        code = 1
        with open(os.devnull, "w", encoding="utf-8") as nothing:
            os.dup2(nothing.fileno(), 1)
            os.dup2(nothing.fileno(), 2)
            try:
                selection = Selection(tests)
                # Files, because pytest ends when it misses a test, whose name may contain what the mutant changes.
                files = dict.fromkeys(test.partition("::")[0] for test in tests)
                options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=--doctest-modules"]
                options += [] if passed else ["-x"]
                code = int(pytest.main([*options, *files], plugins=[selection]))
                if passed:
                    passed.write_text(json.dumps(sorted(selection.passed - selection.failed)), encoding="utf-8")
            finally:
                os._exit(code)
    deadline = time.monotonic() + (float("inf") if seconds is None else seconds)
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            no_test_is_left = os.waitstatus_to_exitcode(status) == pytest.ExitCode.NO_TESTS_COLLECTED
            return "survived" if status == 0 or no_test_is_left else "killed"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timed out"


def print_summary(module: str, mutants: Sequence[Mutant]) -> None:
    """Print each mutant that no test killed, and the share of the others with its Clopper-Pearson interval of 95 %."""
    for mutant in mutants:
        if mutant.outcome != "killed":
            print(f"\n{mutant.outcome}: {mutant.location} ({mutant.operator}, {mutant.tests} tests)")
            print(changed_lines(mutant))
    timed_out, number = sum(mutant.outcome == "timed out" for mutant in mutants), len(mutants)
    killed = sum(mutant.outcome == "killed" for mutant in mutants) + timed_out
    low = beta.ppf(0.025, killed, number - killed + 1) if killed else 0.0
    high = beta.ppf(0.975, killed + 1, number - killed) if killed < number else 1.0
    print(
        f"\n{module}: {killed} of {number} mutants killed, {killed / number:.1%} [{low:.1%}, {high:.1%}]; "
        f"{timed_out} of them timed out"
    )


def changed_lines(mutant: Mutant) -> str:
    """Return the changed lines, before and after."""
    pairs = zip(mutant.before.splitlines(), mutant.after.splitlines(), strict=False)
    return "\n".join(f"  - {old.strip()}\n  + {new.strip()}" for old, new in pairs if old != new)


if __name__ == "__main__":
    sys.exit(main())
