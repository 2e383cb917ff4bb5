"""Command line of the benchmarks, to be run from the project's root.

`python -m benchmarks [peers|startup|audit|page|tally|tensors|scaling|coverage|diagrams|fixes]` runs one of them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

PARTS = "peers, startup and audit run if no part is named."


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the selected benchmarks."""
    args = parser().parse_args(arguments)
    if args.part:
        args.run(args)
        return
    for part in ("peers", "startup", "audit"):
        once = parser().parse_args([part])
        once.run(once)


def parser() -> argparse.ArgumentParser:
    """One subcommand per benchmark, each with its own options."""
    root_parser = argparse.ArgumentParser(prog="python -m benchmarks", description=f"What trueodds costs. {PARTS}")
    parts = root_parser.add_subparsers(dest="part", metavar="part")

    subparser = parts.add_parser("peers", help="the same jobs with every tool that can be imported, side by side")
    subparser.set_defaults(run=peers)
    subparser.add_argument(
        "--peers",
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
        "--out", type=Path, metavar="FOLDER", help="write speed.md, speed.json, speed.svg and speed.png"
    )

    subparser = parts.add_parser("startup", help="CPU seconds until the first result")
    subparser.set_defaults(run=startup)
    subparser.add_argument("--repeats", type=int, default=5)

    subparser = parts.add_parser("audit", help="from a file to the written page")
    subparser.set_defaults(run=audit)
    subparser.add_argument("--repeats", type=int, default=5)
    subparser.add_argument("--folder", type=Path, help="where the generated file goes while it runs")

    subparser = parts.add_parser("page", help="size of the page of an audit, and the time in which Chromium opens it")
    subparser.set_defaults(run=page)
    subparser.add_argument("--classes", type=int, nargs="+", default=[10, 1000], metavar="K")
    subparser.add_argument("--repeats", type=int, default=7, help="windows in which the page is opened")
    subparser.add_argument("--folder", type=Path, help="where the pages go while it runs")

    subparser = parts.add_parser("tally", help="one pass over a large file compared with only reading it")
    subparser.set_defaults(run=tally)
    subparser.add_argument(
        "--rows", type=int, default=10_000_000, help="of the large file, which takes 1 GB at full size"
    )
    subparser.add_argument("--dtype", default="float64", choices=["float32", "float64"], help="of its probabilities")
    subparser.add_argument("--repeats", type=int, default=2)
    subparser.add_argument(
        "--audit", action="store_true", help="an audit of this many rows: a file of 10⁶ rows, read repeatedly"
    )
    subparser.add_argument("--folder", type=Path, help="where the generated files go while it runs")

    subparser = parts.add_parser("tensors", help="the metric of tensors compared with that of torchmetrics")
    subparser.set_defaults(run=tensors)
    subparser.add_argument("--rows", type=int, default=1_000_000)
    subparser.add_argument("--repeats", type=int, default=7, help="turns of each metric")

    subparser = parts.add_parser(
        "scaling", help="how the run time of every estimator and test grows with n, compared with its docstring"
    )
    subparser.set_defaults(run=scaling)
    subparser.add_argument("--most", type=int, default=10_000_000, help="rows")
    subparser.add_argument(
        "--member", action="append", metavar="NAME", help="one estimator or test; may be given again"
    )
    subparser.add_argument(
        "--patience", type=float, default=2.0, help="seconds: a slower method is not run with more rows"
    )

    subparser = parts.add_parser("coverage", help="coverage of the default intervals, by simulation")
    subparser.set_defaults(run=coverage)
    subparser.add_argument("--sets", type=int, default=400, help="simulated data sets per line")

    subparser = parts.add_parser("diagrams", help="every diagram of 10⁴ rows and of a tally of 10⁷")
    subparser.set_defaults(run=diagrams)
    subparser.add_argument("--repeats", type=int, default=3)

    subparser = parts.add_parser(
        "fixes", help="every calibrator on real predictions, fitted on some rows and evaluated on others"
    )
    subparser.set_defaults(run=fixes)
    subparser.add_argument(
        "--data", type=Path, required=True, metavar="FOLDER", help="where the files of predictions are"
    )
    subparser.add_argument("--sets", nargs="+", metavar="SET", help="some of the data sets")
    subparser.add_argument("--out", type=Path, metavar="FOLDER", help="write fixes.md")
    return root_parser


# Each benchmark imports what it needs: the memory of this process counts toward the peak of its children.


def peers(args: argparse.Namespace) -> None:
    """Run time compared with other packages: the table and, with `--out`, the page, the numbers, and the figure."""
    from benchmarks import page, race, table

    results = race.run(args)
    print(table.text(results))
    if args.out:
        page.write(results, args.out)


def startup(args: argparse.Namespace) -> None:
    """CPU time of the import and of the first result."""
    from benchmarks import startup

    show(startup.figures(args.repeats))


def audit(args: argparse.Namespace) -> None:
    """Cost of an audit from the file to the HTML page."""
    from benchmarks import audit

    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        show(audit.figures(Path(name), args.repeats))


def page(args: argparse.Namespace) -> None:
    """Size of the HTML page and time to open it."""
    from benchmarks import report_page

    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        show(report_page.figures(Path(name), args.classes, args.repeats))


def tally(args: argparse.Namespace) -> None:
    """Cost of a tally compared with reading the file."""
    from benchmarks import tally

    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        if args.audit:
            show(tally.audited(folder, args.rows, args.dtype))
        else:
            show(tally.figures(folder, args.rows, args.dtype, args.repeats))


def tensors(args: argparse.Namespace) -> None:
    """Cost of the metric of tensors, compared with that of torchmetrics."""
    from benchmarks import tensors

    show(tensors.figures(args.rows, args.repeats))


def scaling(args: argparse.Namespace) -> None:
    """Growth of the run time with n."""
    from benchmarks import scaling

    scaling.show(args.most, args.member, args.patience)


def coverage(args: argparse.Namespace) -> None:
    """Coverage of intervals."""
    from benchmarks import coverage

    coverage.show(args.sets)


def diagrams(args: argparse.Namespace) -> None:
    """Time to draw each diagram."""
    from benchmarks import diagrams

    diagrams.show(args.repeats)


def fixes(args: argparse.Namespace) -> None:
    """Calibrators on real predictions."""
    from benchmarks.fixes import lines
    from benchmarks.fixes_page import markdown, table
    from benchmarks.real_data import SETS

    if unknown := set(args.sets or ()) - set(SETS):
        raise SystemExit(f"There is no set {', '.join(unknown)}. Known: {', '.join(SETS)}.")
    results = []
    for name in args.sets or SETS:
        split = SETS[name](args.data)
        print(f"{split.name}: {split.how}", flush=True)
        results.append((split, lines(split)))
        print("\n".join(table(results[-1][1])), flush=True)
    if args.out:
        (args.out / "fixes.md").write_text(markdown(results))


def show(figures: Iterable[tuple[str, str]]) -> None:
    """Format an aligned list."""
    for what, figure in figures:
        print(f"{what:<44}{figure:>14}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
