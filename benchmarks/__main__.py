"""How is a benchmark asked for? `python -m benchmarks [peers|startup|audit|tally|scaling|coverage|diagrams|fixes]`, from the project's root."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

PARTS = "peers, startup and audit run if no part is named."


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the parts that were asked for."""
    given = parser().parse_args(arguments)
    if given.part:
        given.run(given)
        return
    for part in ("peers", "startup", "audit"):
        once = parser().parse_args([part])
        once.run(once)


def parser() -> argparse.ArgumentParser:
    """One subcommand per part, each with its own options."""
    asked = argparse.ArgumentParser(prog="python -m benchmarks", description=f"What trueodds costs. {PARTS}")
    parts = asked.add_subparsers(dest="part", metavar="part")

    each = parts.add_parser("peers", help="the same jobs with every tool that can be imported, side by side")
    each.set_defaults(run=peers)
    each.add_argument(
        "--peers",
        action="append",
        metavar="PYTHON",
        help="an interpreter that has the peers; may be given again, the first that has one is used (default: this one)",
    )
    each.add_argument("--jobs", nargs="+", metavar="JOB", help="some of the jobs")
    each.add_argument("--tools", nargs="+", metavar="TOOL", help="ours and some of the peers")
    each.add_argument("--repeats", type=int, default=7, help="turns of each tool at each job")
    each.add_argument(
        "--patience", type=float, default=8.0, help="seconds of one tool at one job, after which it stops"
    )
    each.add_argument("--scale", type=float, default=1.0, help="the share of the rows; 0.01 to try the command")
    each.add_argument("--out", type=Path, metavar="FOLDER", help="write speed.md, speed.json, speed.svg and speed.png")

    each = parts.add_parser("startup", help="CPU seconds until the first answer")
    each.set_defaults(run=startup)
    each.add_argument("--repeats", type=int, default=5)

    each = parts.add_parser("audit", help="from a file to the written page")
    each.set_defaults(run=audit)
    each.add_argument("--repeats", type=int, default=5)
    each.add_argument("--folder", type=Path, help="where the generated file goes while it runs")

    each = parts.add_parser("tally", help="one pass over a large file against merely reading it")
    each.set_defaults(run=tally)
    each.add_argument("--rows", type=int, default=10_000_000, help="of the large file, which takes 1 GB at full size")
    each.add_argument("--dtype", default="float64", choices=["float32", "float64"], help="of its probabilities")
    each.add_argument("--repeats", type=int, default=2)
    each.add_argument("--audit", action="store_true", help="an audit of so many rows: a file of 10⁶, again and again")
    each.add_argument("--folder", type=Path, help="where the generated files go while it runs")

    each = parts.add_parser("scaling", help="how every estimator and test grows with n, beside what it states")
    each.set_defaults(run=scaling)
    each.add_argument("--most", type=int, default=10_000_000, help="rows")
    each.add_argument("--member", action="append", metavar="NAME", help="one estimator or test; may be given again")
    each.add_argument("--patience", type=float, default=2.0, help="seconds: a slower member gets no more rows")

    each = parts.add_parser("coverage", help="how often the default intervals hold the truth, by simulation")
    each.set_defaults(run=coverage)
    each.add_argument("--sets", type=int, default=400, help="simulated data sets per line")

    each = parts.add_parser("diagrams", help="every diagram of 10⁴ rows and of a tally of 10⁷")
    each.set_defaults(run=diagrams)
    each.add_argument("--repeats", type=int, default=3)

    each = parts.add_parser(
        "fixes", help="every calibrator on real predictions, fitted on some rows and judged on others"
    )
    each.set_defaults(run=fixes)
    each.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="where the files of predictions are")
    each.add_argument("--sets", nargs="+", metavar="SET", help="some of the data sets")
    each.add_argument("--out", type=Path, metavar="FOLDER", help="write fixes.md")
    return asked


# Each part loads what it needs itself: what this process holds counts into the peak memory of its children.


def peers(given: argparse.Namespace) -> None:
    """The race, its table, and with `--out` the page, the numbers and the picture."""
    from benchmarks import page, race, table

    found = race.run(given)
    print(table.text(found))
    if given.out:
        page.write(found, given.out)


def startup(given: argparse.Namespace) -> None:
    """CPU seconds before and at the first answer."""
    from benchmarks import startup

    show(startup.figures(given.repeats))


def audit(given: argparse.Namespace) -> None:
    """File to page."""
    from benchmarks import audit

    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        show(audit.figures(Path(name), given.repeats))


def tally(given: argparse.Namespace) -> None:
    """Tallying against reading."""
    from benchmarks import tally

    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        if given.audit:
            show(tally.audited(folder, given.rows, given.dtype))
        else:
            show(tally.figures(folder, given.rows, given.dtype, given.repeats))


def scaling(given: argparse.Namespace) -> None:
    """Growth with n."""
    from benchmarks import scaling

    scaling.show(given.most, given.member, given.patience)


def coverage(given: argparse.Namespace) -> None:
    """Coverage of intervals."""
    from benchmarks import coverage

    coverage.show(given.sets)


def diagrams(given: argparse.Namespace) -> None:
    """Seconds of a picture."""
    from benchmarks import diagrams

    diagrams.show(given.repeats)


def fixes(given: argparse.Namespace) -> None:
    """Calibrators on real predictions."""
    from benchmarks.fixes import lines
    from benchmarks.fixes_page import markdown, table
    from benchmarks.real_data import SETS

    if unknown := set(given.sets or ()) - set(SETS):
        raise SystemExit(f"There is no set {', '.join(unknown)}. Known: {', '.join(SETS)}.")
    found = []
    for name in given.sets or SETS:
        split = SETS[name](given.data)
        print(f"{split.name}: {split.how}", flush=True)
        found.append((split, lines(split)))
        print("\n".join(table(found[-1][1])), flush=True)
    if given.out:
        (given.out / "fixes.md").write_text(markdown(found))


def show(figures: Sequence[tuple[str, str]]) -> None:
    """An aligned list."""
    for what, figure in figures:
        print(f"{what:<44}{figure:>14}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
