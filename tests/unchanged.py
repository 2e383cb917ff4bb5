"""Store what every method answers on the reference data, and compare two such files number by number.

A change that is not meant to change results runs, before and after it::

    python -m tests.unchanged write before.json
    python -m tests.unchanged compare before.json after.json --renamed old_key=new_key

Numbers must be equal bit by bit. Keys may differ only by the renamings given; sentences that differ are listed.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import io
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import trueodds as to
from tests.reference import ROOT
from trueodds.calibrators import CALIBRATORS
from trueodds.diagrams import DIAGRAMS, MONITOR_DIAGRAMS
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS

RESAMPLES = 60
LENSES = {
    "niamey": ("positive", "confidence", "canonical"),
    "hockey": ("positive", "groups"),
    "adult": ("positive", "classwise"),
    "ecology": ("positive",),
    "agnews": ("confidence", "classwise", "canonical", "class:1", "top-2"),
    "cifar": ("confidence", "canonical"),
    "votes": ("confidence", "canonical", "classwise"),
    "top1": ("confidence",),
}
FAMILIES = {
    "estimator": (ESTIMATORS, ("niamey", "adult", "ecology", "agnews", "votes", "top1")),
    "test": (TESTS, ("niamey", "adult", "agnews", "votes", "top1")),
    "calibrator": (CALIBRATORS, ("hockey", "agnews", "adult")),
    "diagram": (DIAGRAMS, ("niamey", "agnews", "votes")),
}
VERBS = [
    *(("audit", name) for name in LENSES),
    *(("compare", name) for name in ("hockey", "agnews")),
    *(("by_group", name) for name in ("hockey", "ecology")),
    ("power", "niamey"),
    *(("table", name) for name in ("hockey", "agnews")),
    *(("page", name) for name in LENSES),
]
COMMANDS = [
    *(f"{verb} {{vectors}}{json}" for verb in ("measure", "test", "audit") for json in ("", " --json -")),
    "measure {vectors} --estimator smece",
    "measure {vectors} --estimator log_loss --json -",
    "test {vectors} --test cox --json -",
    *(f"{verb} {{binary}} --group third{json}" for verb in ("groups", "audit") for json in ("", " --json -")),
    "compare {binary} {shifted} --json -",
    *(f"table {{binary}} {{shifted}}{form}" for form in ("", " --json -", " --format markdown", " --format latex")),
    "table {vectors} --measure brier --measure ece --lens classwise --json -",
    *(f"power {{binary}}{json}" for json in ("", " --json -")),
    *(f"answers {{records}} --confidence confidence --correct correct{json}" for json in ("", " --json -")),
    "answers {records} --confidence confidence --correct correct --out {out}.csv --curve {out}.json --max-risk 0.3",
    "fit {vectors} --method temperature --out {out}.json",
    "apply {calibrator} {vectors} --out {out}.csv",
    "tally {vectors} --out {out}.json",
    "measure {tally}",
    "merge {tally} {rest} --out {out}.json",
    "audit {binary} --brief",
    "audit {vectors} --html {out}.html --fail-on ece>0.001",
    "measure {vectors} --fail-on ece.low>0.9",
    "draw {binary} --diagram reliability --out {out}.json",
    "draw {vectors} --diagram confidence_histogram --out {out}.csv",
    *(f"list{family}" for family in ("", " estimators", " tests", " calibrators", " diagrams")),
    *(
        f"{verb} --help"
        for verb in (
            *("audit", "measure", "test", "compare", "fit", "draw", "tally", "power", "groups", "answers"),
            *("table", "apply", "merge", "explain", "list", "study"),
        )
    ),
    "explain TO102 TN105",
    "measure nothing.csv",
    "measure {vectors} --estimator brierr",
    "measure {vectors} --bins 0",
]


class Job(NamedTuple):
    """One question to the package."""

    kind: str
    name: str
    data: str = ""


def predictions(name: str) -> to.Predictions:
    """A part of one of the reference data sets, small enough for every method."""
    import pyarrow.parquet

    def columns(file: str) -> dict[str, Any]:
        table = pyarrow.parquet.read_table(ROOT / "data" / file)
        return {column: np.asarray(table[column].to_pylist()) for column in table.column_names}

    def arrays(file: str) -> Any:
        return np.load(ROOT / "data" / file, allow_pickle=False)

    if name == "niamey":
        table = columns("precip_niamey_2016.parquet")
        return to.Predictions(table["obs"].astype(int), table["Logistic"])
    if name == "hockey":
        table = columns("brcal_hockey.parquet")
        third = (np.arange(len(table["y"])) % 3).astype(str)
        return to.Predictions(table["y"].astype(int), table["x"], group={"third": third})
    if name == "adult":
        table = columns("adult_rf_predictions.parquet")
        return to.Predictions(table["y"].astype(int)[:1500], table["p"][:1500], weight=1 + np.arange(1500) % 3)
    if name == "ecology":
        table = {column: values[:800] for column, values in columns("ecology_tree_species.parquet").items()}
        species = {"species": table["SPECIES"]}
        return to.Predictions(table["OBSERVED"].astype(int), table["GAM"], cluster=np.arange(800) % 386, group=species)
    if name == "agnews":
        table = arrays("ferrer_agnews_gpt2.npz")
        return to.Predictions.from_logits(table["labels_test"][:600].astype(int), table["logits_test"][:600])
    if name == "cifar":
        table = arrays("plambda_cifar10_vgg16.npz")
        return to.Predictions(table["labels"][:500].astype(int), table["probs"][:500])
    if name == "votes":
        table = arrays("chaosnli_snli.npz")
        return to.Predictions.from_logits(table["label_count"][:300], table["logits_roberta_base_0"][:300])
    table = arrays("tcal_imagenet_top1.npz")
    return to.Predictions.from_confidence(table["conf_resnet152"][:700], table["correct_resnet152"][:700])


def plain(value: Any) -> Any:
    """A result as JSON holds it."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    if type(value).__name__ == "DataFrame":
        return plain(value.to_dict("list"))
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def answer(ask: Callable[[], Any]) -> Any:
    """What a call answers; of a refusal its code and text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(ask())
        except Exception as error:  # noqa: BLE001 -- a fault is an answer too: it must stay the same
            return {"error": getattr(error, "code", type(error).__name__), "text": str(error)}


def picture(diagram: Any) -> dict[str, Any]:
    """The shapes of a picture as a hash, and its words."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot

    with matplotlib.rc_context({"svg.hashsalt": "unchanged", "svg.fonttype": "none"}):
        drawn = np.ravel(np.asarray(diagram.draw(), dtype=object))[0]
        file = io.StringIO()
        getattr(drawn, "figure", drawn).savefig(file, format="svg", metadata={"Date": None, "Creator": None})
        matplotlib.pyplot.close("all")
    shapes = sorted(re.findall(r' d="([^"]*)"', file.getvalue()))
    return {
        "shapes": hashlib.sha256("|".join(shapes).encode()).hexdigest(),
        "words": re.findall(r"<text[^>]*>([^<]*)</text>", file.getvalue()),
    }


def command(line: str) -> dict[str, Any]:
    """What a command prints, and its exit code."""
    import trueodds.cli

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vectors, binary = predictions("agnews"), predictions("hockey")
        assert vectors.y is not None
        assert binary.y is not None
        rows = [f"{y:.0f},{','.join(map(repr, row))}" for y, row in zip(vectors.y, vectors.P.tolist(), strict=True)]
        (folder / "vectors.csv").write_text("\n".join(["label,p_0,p_1,p_2,p_3", *rows]) + "\n", encoding="utf-8")
        rows = [
            f"{y:.0f},{row[1]!r},{i % 3}" for i, (y, row) in enumerate(zip(binary.y, binary.P.tolist(), strict=True))
        ]
        (folder / "binary.csv").write_text("\n".join(["label,p_1,third", *rows]) + "\n", encoding="utf-8")
        rows = [f"{y:.0f},{row[1] ** 1.5!r}" for y, row in zip(binary.y, binary.P.tolist(), strict=True)]
        (folder / "shifted.csv").write_text("\n".join(["label,p_1", *rows]) + "\n", encoding="utf-8")
        rows = [
            json.dumps({"confidence": row[1], "correct": bool(y)})
            for y, row in zip(binary.y, binary.P.tolist(), strict=True)
        ]
        (folder / "records.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
        if "{calibrator}" in line:
            to.fit(vectors, "temperature").save(folder / "calibrator.json")
        if "{tally}" in line:
            half = np.arange(vectors.n) < vectors.n // 2
            to.tally(vectors[half]).save(folder / "tally.json")
            to.tally(vectors[~half]).save(folder / "rest.json")
        input_files = {path.name for path in folder.iterdir()}
        places = {
            "records": folder / "records.jsonl",
            "calibrator": folder / "calibrator.json",
            "tally": folder / "tally.json",
            "rest": folder / "rest.json",
            "shifted": folder / "shifted.csv",
            "vectors": folder / "vectors.csv",
            "binary": folder / "binary.csv",
            "out": folder / "out",
        }
        printed, errors, code = io.StringIO(), io.StringIO(), 0
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
            try:
                trueodds.cli.main(line.format(**places).split())
            except SystemExit as stop:
                code = int(stop.code or 0)
        texts = [stream.getvalue().replace(name, "FOLDER") for stream in (printed, errors)]
        written = {
            path.name: parsed(path.read_text(encoding="utf-8").replace(name, "FOLDER"))
            for path in sorted(folder.iterdir())
            if path.name not in input_files
        }
    return {"code": code, "printed": parsed(texts[0]), "errors": texts[1], "written": written}


def parsed(text: str) -> Any:
    """The JSON that a text is, the lines of a page, or the text."""
    if text.startswith("<!doctype html>"):
        return page_texts(text)
    try:
        return json.loads(text)
    except ValueError:
        return text


def page_texts(page: str) -> list[str]:
    """The words of a page, without its styles, scripts and pictures, in order."""
    page = re.sub(r"<(style|script|svg)\b.*?</\1>", "", page, flags=re.S | re.I)
    return [text for part in re.sub(r"<[^>]+>", "\n", page).split("\n") if (text := part.strip())]


def done(job: Job) -> tuple[str, Any]:
    """The answers to one question, through all lenses of the data."""
    key, name = "/".join(filter(None, job)), job.name
    if job.kind == "command":
        return key, answer(lambda: command(name))
    preds, lenses = predictions(job.data), LENSES[job.data]
    sampled = {"resamples": RESAMPLES}
    if job.kind == "estimator":
        answers = {lens: answer(lambda lens=lens: to.measure(preds, name, lens=lens, interval=None)) for lens in lenses}
        answers["interval"] = answer(lambda: to.measure(preds, name, **sampled))
        answers["text"] = answer(lambda: str(to.measure(preds, name, **sampled)))
        answers["tally"] = answer(lambda: to.measure(to.tally(preds), name, **sampled))
    elif job.kind == "test":
        answers = {lens: answer(lambda lens=lens: to.test(preds, name, lens=lens, **sampled)) for lens in lenses}
        answers["text"] = answer(lambda: str(to.test(preds, name, **sampled)))
        answers["tally"] = answer(lambda: to.test(to.tally(preds), name, **sampled))
    elif job.kind == "calibrator":
        answers = {
            "summary": answer(lambda: to.fit(preds, name).summary()),
            "applied": answer(lambda: to.fit(preds, name).predict_proba(preds.P)[:40]),
            "saved": answer(lambda: to.fit(preds, name).to_dict()),
        }
    elif job.kind == "diagram":
        answers = {lens: answer(lambda lens=lens: to.draw(preds, name, lens=lens).to_dict()) for lens in lenses[:2]}
        answers["picture"] = answer(lambda: picture(to.draw(preds, name)))
    elif name == "audit":
        answers = {
            "rows": answer(lambda: to.audit(preds, **sampled)),
            "text": answer(lambda: str(to.audit(preds, **sampled))),
            "tally": answer(lambda: to.audit(to.tally(preds), **sampled)),
        }
    elif name == "compare":
        half = np.arange(preds.n) < preds.n // 2
        answers = {"halves": answer(lambda: to.compare(preds[half], preds[~half], **sampled))}
    elif name == "table":
        half = np.arange(preds.n) < preds.n // 2
        models = {"first": preds[half], "second": preds[~half], "all": preds}
        table = answer(lambda: to.table(models, bold=False, **sampled))
        answers = {"rows": table, "text": answer(lambda: str(to.table(models, bold=False, **sampled)))}
    elif name == "page":
        answers = {"texts": answer(lambda: page_texts(to.audit(preds, **sampled).to_html()))}
    else:
        answers = {"rows": answer(lambda: getattr(to, name)(preds, **sampled))}
    return key, answers


def jobs() -> list[Job]:
    """Every method of the four families on its data, every verb, every command and the page."""
    methods = [
        Job(kind, name, data)
        for kind, (table, sets) in FAMILIES.items()
        for name in table.names()
        if name not in MONITOR_DIAGRAMS
        for data in sets
    ]
    return [*(Job("verb", *pair) for pair in VERBS), *(Job("command", line) for line in COMMANDS), *methods]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every single value with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}/{key}")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from leaves(item, f"{path}[{i}]")
    else:
        yield path, value


def differences(before: Any, after: Any, renamed: dict[str, str]) -> tuple[list[str], list[str], list[str]]:
    """Values that differ, keys that are in one file only, and sentences that differ.

    >>> differences({"a": {"n": 1, "text": "x"}}, {"a": {"m": 2, "text": "y"}}, {"n": "m"})
    (['/a/m: 1 → 2'], [], ['x → y'])
    """
    old, new = dict(leaves(before)), dict(leaves(after))
    for key, other in renamed.items():
        old = {re.sub(rf"(?<=/){re.escape(key)}(?=/|\[|$)", other, path): value for path, value in old.items()}
    values, texts = [], collections.Counter[str]()
    for path in old.keys() & new.keys():
        one, other = old[path], new[path]
        if one == other or (one != one and other != other):
            continue
        if isinstance(one, str) and isinstance(other, str) and not path.endswith("/shapes"):
            texts[f"{one} → {other}"] += 1
        else:
            values.append(f"{path}: {one} → {other}")
    keys = [f"- {path}" for path in old.keys() - new.keys()] + [f"+ {path}" for path in new.keys() - old.keys()]
    return sorted(values), sorted(keys), [text for text, _ in texts.most_common()]


def main(arguments: list[str]) -> int:
    """Write the answers to a file, or compare two such files; 1 if a value or a key differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.unchanged", description=__doc__.split("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    write = verbs.add_parser("write")
    write.add_argument("file", type=Path)
    write.add_argument("--only", default="", help="jobs whose name holds this text")
    compare = verbs.add_parser("compare")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    compare.add_argument("--renamed", nargs="*", default=[], metavar="OLD=NEW")
    compare.add_argument("--show", type=int, default=40, help="lines of each kind")
    args = parser.parse_args(arguments)
    if args.verb == "write":
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            answers = dict(pool.map(done, [job for job in jobs() if args.only in "/".join(job)], chunksize=2))
        args.file.write_text(json.dumps(answers, sort_keys=True), encoding="utf-8")
        return 0
    before, after = (json.loads(file.read_text(encoding="utf-8")) for file in (args.before, args.after))
    kinds = differences(before, after, dict(pair.split("=") for pair in args.renamed))
    for title, lines in zip(("values", "keys", "sentences"), kinds, strict=True):
        sys.stdout.write(f"{len(lines)} {title} differ\n" + "".join(f"  {line}\n" for line in lines[: args.show]))
    return int(bool(kinds[0] or kinds[1]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
