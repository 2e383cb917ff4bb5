"""How are the fixes of real predictions shown? A table per data set, and what they say together."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.fixes import Line, against, lowest_loss, z
from benchmarks.real_data import Split

HEAD = """# What fixes real predictions

Every calibrator with its defaults, fitted on some rows and judged on others. Made by `python -m benchmarks fixes`; the data
are other people's and are not part of this project.

- **log loss** in nats, after mixing 1/(n + 1) of the uniform into both sides (n rows fitted), so that an exact zero costs much
  but not infinitely much; ∞ marks where without it the loss is infinite.
- **± to identity** is the paired difference to doing nothing with its standard error; below 0 is a gain.
- **debiased** is the debiased L2 error of the confidence: near 0 where nothing is left.
- **p** is that of the consistency test of the confidence (999 redraws, so that .001 is the least): a large one does not
  confirm a fix, a small one says that it left something.
- **flips** are the rows whose most probable class has changed, and **accuracy** is what that comes to.
"""


def markdown(results: Sequence[tuple[Split, list[Line]]]) -> str:
    """The page."""
    parts = [HEAD, "## Together", "", *overview(results)]
    for split, lines in results:
        parts += [
            "",
            f"## {split.name}",
            "",
            f"{split.how}: {split.fit.n:,} and {split.test.n:,} rows, {split.fit.k} classes.",
            "",
        ]
        parts += table(lines)
    return "\n".join(parts) + "\n"


def table(lines: list[Line]) -> list[str]:
    """One line per calibrator, the best in bold."""
    first, top = lines[0], lowest_loss(lines)
    rows = [
        "| method | log loss | ± to identity | Brier | debiased | p | accuracy | flips | fit, s | what was fitted |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for line in lines:
        mean, se = against(line, first)
        name = f"**{line.method}**" if line is top else line.method
        change = "" if line is first else f"{mean:+.4f} ± {se:.4f}"
        loss = f"{line.log_loss:.4f}{' ∞' if line.endless else ''}"
        rows.append(
            f"| {name} | {loss} | {change} | {line.brier:.4f} | {line.debiased:.4f} | {line.pvalue:.3f} | {line.accuracy:.4f}"
            f" | {line.flips:,} | {line.seconds:.2f} | {short(line.parameters)} |"
        )
    return rows


def overview(results: Sequence[tuple[Split, list[Line]]]) -> list[str]:
    """The best of each set, `auto` beside it, and temperature."""
    rows = [
        "| data | kind | best single method | its gain | `auto` applies | `auto` above the best, in standard errors | temperature's share of that gain | accuracy: before, best, `auto` |",
        "|---|---|---|--:|---|--:|--:|---|",
    ]
    distances: list[float] = []
    by_kind: dict[str, list[float]] = {}
    for split, lines in results:
        by_name = {line.method: line for line in lines}
        first, top, auto, warm = lines[0], lowest_loss(lines), by_name["auto"], by_name["temperature"]
        gain, se = against(first, top)
        if gain > 2 * se:
            by_kind.setdefault(split.kind, []).append(100 * against(first, warm)[0] / gain)
        share = f"{100 * against(first, warm)[0] / gain:.0f} %" if gain > 0 else ""
        distances.append(z(auto, top))
        right = f"{first.accuracy:.3f}, {top.accuracy:.3f}, {auto.accuracy:.3f}"
        rows.append(
            f"| {split.name} | {split.kind} | {top.method} | {gain:.4f} ± {se:.4f} | {short(auto.parameters)} | {distances[-1]:+.1f} | {share} | {right} |"
        )
    text = "The best single method is found with hindsight on the rows that judge, among all of them; `auto` saw none of these."
    shares = {kind: sorted(values) for kind, values in by_kind.items() if values}
    shares_text = ", ".join(
        f"{values[0]:.0f} to {values[-1]:.0f} % on {kind}" if len(values) > 1 else f"{values[0]:.0f} % on {kind}"
        for kind, values in shares.items()
    )
    return [
        *rows,
        "",
        f"{text} Over all sets it is at most {max(distances):.1f} standard errors above.",
        "",
        f"Guo et al. (2017) found one temperature the best fix of image networks and less of one for text. Here it is the best on none; of the best method's gain it gets {shares_text}.",
    ]


def short(text: str, max_length: int = 60) -> str:
    """Long parameters, cut."""
    return text if len(text) <= max_length else text[: max_length - 1] + "…"
