"""Command line of the benchmarks, to be run from the root of the project.

`python -m benchmarks [peers|startup|audit|page|tally|tensors|scaling|coverage|diagrams|fixes]` runs one of them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

DEFAULT_BENCHMARKS = ("peers", "startup", "audit")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark that the arguments name, or the default ones."""
    args = make_parser().parse_args(arguments)
    if args.benchmark:
        args.run(args)
        return
    for name in DEFAULT_BENCHMARKS:
        default_args = make_parser().parse_args([name])
        default_args.run(default_args)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser, with a subcommand per benchmark; `run` of the parsed arguments is its function below."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="What trueodds costs. peers, startup and audit run if no part is named.",
    )
    subparsers = parser.add_subparsers(dest="benchmark", metavar="part")

    subparser = subparsers.add_parser("peers", help="the same jobs with every tool that can be imported, side by side")
    subparser.set_defaults(run=run_peers)
    subparser.add_argument(
        "--peers",
        dest="interpreters",
        action="append",
        metavar="PYTHON",
        help=(
            "an interpreter that has the peers; may be given again, the first one that has a package is used (default:"
            " this one)"
        ),
    )
    subparser.add_argument("--jobs", nargs="+", metavar="JOB", help="some of the jobs")
    subparser.add_argument("--tools", nargs="+", metavar="TOOL", help="ours and some of the peers")
    subparser.add_argument("--repeats", type=int, default=7, help="turns of each tool at each job")
    subparser.add_argument(
        "--patience", type=float, default=8.0, help="seconds of one tool at one job, after which it stops"
    )
    subparser.add_argument("--scale", type=float, default=1.0, help="the share of the rows; 0.01 to try the command")
    subparser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help=(
            "write speed.md, speed.json, speed.svg and speed.png; results in speed.json of other processors and jobs"
            " are kept"
        ),
    )

    subparser = subparsers.add_parser("startup", help="CPU seconds until the first result")
    subparser.set_defaults(run=run_startup)
    subparser.add_argument("--repeats", type=int, default=5)

    subparser = subparsers.add_parser("audit", help="from a file to the written page, or of rows in memory")
    subparser.set_defaults(run=run_audit)
    subparser.add_argument("--rows", type=int, help="audit this many simulated rows in memory instead of the file")
    subparser.add_argument("--classes", type=int, default=10, metavar="K", help="of the simulated rows")
    subparser.add_argument("--repeats", type=int, default=5)
    subparser.add_argument("--folder", type=Path, help="where the generated file goes while it runs")

    subparser = subparsers.add_parser(
        "page", help="size of the page of an audit, and the time in which Chromium opens it"
    )
    subparser.set_defaults(run=run_page)
    subparser.add_argument("--classes", type=int, nargs="+", default=[10, 1000], metavar="K")
    subparser.add_argument("--repeats", type=int, default=7, help="windows in which the page is opened")
    subparser.add_argument("--folder", type=Path, help="where the pages go while it runs")

    subparser = subparsers.add_parser("tally", help="one pass over a large file compared with only reading it")
    subparser.set_defaults(run=run_tally)
    subparser.add_argument(
        "--rows", type=int, default=10_000_000, help="of the large file, which takes 1 GB at full size"
    )
    subparser.add_argument("--dtype", default="float64", choices=["float32", "float64"], help="of its probabilities")
    subparser.add_argument("--repeats", type=int, default=2)
    subparser.add_argument(
        "--audit", action="store_true", help="an audit of this many rows: a file of 10⁶ rows, read repeatedly"
    )
    subparser.add_argument("--folder", type=Path, help="where the generated files go while it runs")

    subparser = subparsers.add_parser("tensors", help="the metric of tensors compared with that of torchmetrics")
    subparser.set_defaults(run=run_tensors)
    subparser.add_argument("--rows", type=int, default=1_000_000)
    subparser.add_argument("--repeats", type=int, default=7, help="turns of each metric")

    subparser = subparsers.add_parser(
        "scaling", help="how the run time of every estimator and test grows with n, compared with its docstring"
    )
    subparser.set_defaults(run=run_scaling)
    subparser.add_argument("--most", dest="max_rows", type=int, default=10_000_000, help="rows")
    subparser.add_argument(
        "--member", dest="methods", action="append", metavar="NAME", help="one estimator or test; may be given again"
    )
    subparser.add_argument(
        "--patience", type=float, default=2.0, help="seconds: a slower method is not run with more rows"
    )

    subparser = subparsers.add_parser("coverage", help="coverage of the default intervals, by simulation")
    subparser.set_defaults(run=run_coverage)
    subparser.add_argument("--sets", type=int, default=400, help="simulated data sets per line")

    subparser = subparsers.add_parser("diagrams", help="every diagram of 10⁴ rows and of a tally of 10⁷")
    subparser.set_defaults(run=run_diagrams)
    subparser.add_argument("--repeats", type=int, default=3)

    subparser = subparsers.add_parser(
        "fixes", help="every calibrator on real predictions, fitted on some rows and evaluated on others"
    )
    subparser.set_defaults(run=run_fixes)
    subparser.add_argument(
        "--data", type=Path, required=True, metavar="FOLDER", help="where the files of predictions are"
    )
    subparser.add_argument("--sets", nargs="+", metavar="SET", help="some of the data sets")
    subparser.add_argument("--out", type=Path, metavar="FOLDER", help="write fixes.md")
    return parser


# Each function imports its benchmark itself: a child process starts with the peak memory of this one, which therefore
# has to stay small.


def run_peers(args: argparse.Namespace) -> None:
    """Compare run times with other packages: print the table and, with `--out`, write page, numbers and figure."""
    from benchmarks.peers import page, run, table

    if args.out and args.scale != 1:
        raise SystemExit("--out needs jobs of full size: leave out --scale")
    results = run.run_jobs(args.jobs, args.tools, args.interpreters, args.repeats, args.patience, args.scale)
    print(table.format_results(results))
    if args.out:
        page.write_page(results, args.out)


def run_startup(args: argparse.Namespace) -> None:
    """Print the CPU time of imports and of first results."""
    from benchmarks.startup import measure_startup

    print_lines(measure_startup(args.repeats))


def run_audit(args: argparse.Namespace) -> None:
    """Print the cost of an audit, from the file to the HTML page, or with `--rows` of rows in memory."""
    from benchmarks.audit import measure_audit, measure_audit_in_memory

    if args.rows:
        print_lines(measure_audit_in_memory(args.rows, args.classes, args.repeats))
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        print_lines(measure_audit(Path(name), args.repeats))


def run_page(args: argparse.Namespace) -> None:
    """Print the size of the HTML page, and the time to open it."""
    from benchmarks.report_page import measure_pages

    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        print_lines(measure_pages(Path(name), args.classes, args.repeats))


def run_tally(args: argparse.Namespace) -> None:
    """Print the cost of a tally, or with `--audit` of an audit, compared with reading the file."""
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        if args.audit:
            from benchmarks.audit import measure_large_audit

            print_lines(measure_large_audit(Path(name), args.rows, args.dtype))
        else:
            from benchmarks.tally import measure_tally

            print_lines(measure_tally(Path(name), args.rows, args.dtype, args.repeats))


def run_tensors(args: argparse.Namespace) -> None:
    """Print the cost of the metric for tensors, compared with that of torchmetrics."""
    from benchmarks.tensors import measure_metrics

    print_lines(measure_metrics(args.rows, args.repeats))


def run_scaling(args: argparse.Namespace) -> None:
    """Print how the run time of each method grows with n."""
    from benchmarks.scaling import print_scaling

    print_scaling(args.max_rows, args.methods, args.patience)


def run_coverage(args: argparse.Namespace) -> None:
    """Print the coverage of the default intervals."""
    from benchmarks.interval_coverage import print_coverage

    print_coverage(args.sets)


def run_diagrams(args: argparse.Namespace) -> None:
    """Print the time to compute and to draw each diagram."""
    from benchmarks.diagrams import print_drawing_times

    print_drawing_times(args.repeats)


def run_fixes(args: argparse.Namespace) -> None:
    """Print the evaluation of the calibrators on real predictions; with `--out`, write the page fixes.md."""
    from benchmarks.calibrators import evaluate_calibrators
    from benchmarks.calibrators_page import format_page, format_table
    from benchmarks.real_data import DATA_SETS

    if unknown := set(args.sets or ()) - set(DATA_SETS):
        raise SystemExit(f"There is no set {', '.join(unknown)}. Known: {', '.join(DATA_SETS)}.")
    results = []
    for name in args.sets or DATA_SETS:
        split = DATA_SETS[name](args.data)
        print(f"{split.name}: {split.description}", flush=True)
        evaluations = evaluate_calibrators(split)
        results.append((split, evaluations))
        print("\n".join(format_table(evaluations)), flush=True)
    if args.out:
        (args.out / "fixes.md").write_text(format_page(results), encoding="utf-8")


def print_lines(lines: Iterable[tuple[str, str]]) -> None:
    """Print what was measured and the result in two aligned columns, each line as soon as it is known."""
    for name, result in lines:
        print(f"{name:<48} {result:>16}", flush=True)


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):  # tables have signs that not every terminal can show
        stream.reconfigure(errors="backslashreplace")
    sys.exit(main())
