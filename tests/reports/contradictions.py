"""Random worlds, and what in the forms of one audit (JSON, sentence, text, page, methods, gate) contradicts another."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import softmax

import trueodds as to
from trueodds.cli.gate import Gate
from trueodds.cli.gate_values import GatedAudit, evaluate_gate
from trueodds.core.errors import InputError
from trueodds.reports.audit_result import AuditResult
from trueodds.reports.html import figures
from trueodds.reports.html.audit_page import render_html, render_notebook_summary
from trueodds.reports.html.methods_paragraph import cite_audit, describe_methods
from trueodds.reports.text import group_tables, recalibration, result_tables
from trueodds.reports.text.summary import SummaryLine, summary_lines
from trueodds.reports.text.terminal import render_brief, render_text
from trueodds.reports.text.verdict_sentence import MAX_HEADLINE_LENGTH, judge

KINDS = ("binary", "binary", "binary", "classes", "classes", "confidence", "votes", "multilabel")
LEVELS = ("too high", "too low", "overconfident", "underconfident")
SPREADS = ("too extreme", "too moderate")
DIRECTIONS = ("reversed", *LEVELS, *SPREADS, "miscalibrated")
OPENINGS = {
    "no evidence": "No evidence of miscalibration:",
    "not tested": "Not tested:",
}


def audit_of_world(seed: int) -> to.Audit:
    """The audit of random predictions, wrong in one way or in none, of every kind, with and without extras."""
    rng = np.random.default_rng([seed, 23])
    kind, n = str(rng.choice(KINDS)), int(10 ** rng.uniform(0.3, 3))
    k = 2 if kind == "binary" else int(rng.choice([2, 3, 5]))
    z = rng.normal(0, rng.choice([0.3, 1.0, 2.5]), (n, k))
    how = rng.choice(["none", "none", "temperature", "shift", "noise", "reversed"])
    shift = rng.normal(0, 0.7, k)
    P = softmax(z, axis=1)
    Q = {
        "temperature": softmax(z * rng.choice([0.4, 0.7, 1.5, 2.5]), axis=1),
        "shift": softmax(z + shift, axis=1),
        "noise": 0.8 * P + 0.2 / k,
        "reversed": softmax(-z, axis=1),
    }.get(str(how), P)
    extra: dict[str, Any] = {}
    settings: dict[str, Any] = {"alpha": float(rng.choice([0.05, 0.05, 0.01, 0.1]))}
    if rng.random() < 0.4:
        extra["group"] = {"site": rng.choice(list("ABCDE")[: rng.integers(1, 6)], n)}
        if rng.random() < 0.3:
            settings["max_groups"] = int(rng.integers(1, 4))
        if rng.random() < 0.5:  # one group is wrong by itself
            Q = np.where((extra["group"]["site"] == "A")[:, None], softmax(np.log(Q + 1e-12) + shift, axis=1), Q)
    if rng.random() < 0.2:
        extra["weight"] = rng.uniform(0.5, 2, n)
    is_clustered, is_tallied = bool(rng.random() < 0.2), bool(rng.random() < 0.15)
    if is_clustered and not is_tallied:
        extra["cluster"] = rng.integers(0, max(1, n // 3), n)
    if rng.random() < 0.15:
        P = np.round(P, 1) + 1e-12 * (k > 2)
        P = P / P.sum(axis=1, keepdims=True)
    y = (Q.cumsum(axis=1)[:, :-1] <= rng.random((n, 1))).sum(axis=1)
    if kind == "confidence":
        preds = to.Predictions.from_confidence(P.max(axis=1), y == P.argmax(axis=1), **extra)
    elif kind == "multilabel":
        preds = to.Predictions.from_multilabel((rng.random((n, k)) < Q).astype(int), P, **extra)
    elif kind == "votes":
        preds = to.Predictions(np.array([rng.multinomial(rng.integers(1, 8), q / q.sum()) for q in Q]), P, **extra)
    else:
        preds = to.Predictions(y, P if k > 2 else P[:, 1], **extra)
        if not is_tallied and not is_clustered and n > 50 and rng.random() < 0.15:
            settings["cost"] = rng.uniform(0, 5, (2, k)).round(1)
    resamples = int(rng.choice([39, 199, 199, 999]))
    if 1 / (1 + resamples) <= settings["alpha"] * 0.95:
        settings["resamples"] = resamples
    return to.audit(to.tally(preds) if is_tallied else preds, rng=seed, **settings)


def plain(text: str) -> str:
    """A text or page with single blanks and without tags."""
    text = html.unescape(re.sub(r"<(script|style|svg)\b.*?</\1>|<[^>]+>", " ", text, flags=re.DOTALL))
    return re.sub(r"\s+", " ", text.replace("\u2068", "").replace("\u2069", ""))


class Forms:
    """All forms of an audit."""

    def __init__(self, audit: to.Audit) -> None:
        self.audit, self.facts = audit, audit.to_dict()
        self.data, self.verdict = self.facts["data"], self.facts["verdict"]
        self.result = AuditResult.from_dict(self.facts)
        self.lines: dict[str, SummaryLine] = {line.label: line for line in summary_lines(self.result)}
        self.headline: str = self.verdict["sentence"]
        self.sentence = f"{self.headline} {self.verdict['details']}"
        self.methods, self.citation = describe_methods(self.result), cite_audit(self.result)

    @cached_property
    def text(self) -> str:
        return plain(render_text(self.facts))

    @cached_property
    def brief(self) -> str:
        return plain(render_brief(self.facts))

    @cached_property
    def page(self) -> str:
        return render_html(self.facts)

    @cached_property
    def notebook(self) -> str:
        return plain(render_notebook_summary(self.facts))

    @property
    def role(self) -> str:
        """The color of the sentence in the terminal."""
        roles: list[str] = []
        render_text(self.facts, style=lambda piece, role: roles.append(role) or piece)  # type: ignore[func-returns-value]
        return roles[0]

    @property
    def exit_code(self) -> int:
        """That of `trueodds audit --fail-on reject`."""
        try:
            gated_audit = GatedAudit(result=self.result, measure=lambda _: self.audit)
            return int(evaluate_gate(Gate.parse("reject"), gated_audit)[0])
        except InputError:
            return 2


def shows(text: str, x: float | None, rtol: float = 0.06) -> bool:
    """Whether a printed number is x, up to half a unit of its last digit."""
    if x is None or text in ("–", "infinite"):
        return x is None
    digits = text.replace("−", "-").replace(",", "")
    places = len(digits.partition("e")[0].partition(".")[2])
    exponent = int(digits.partition("e")[2] or 0)
    return abs(float(digits) - x) <= 0.5000001 * 10.0 ** (exponent - places) + 1e-12


def contradictions(audit: to.Audit) -> list[str]:
    """What in one audit speaks against something else in it."""
    forms = Forms(audit)
    checks = (_verdict, _evidence, _means, _intervals, _groups, _classes, _recalibration, _methods, _pictures, _details)
    return [f"{check.__name__[1:]}: {problem} | {forms.sentence}" for check in checks for problem in check(forms)]


def _verdict(forms: Forms) -> Iterator[str]:
    """The verdict in one word: sentence, badge, colors, summary, citation, gate, and the JSON that it follows from."""
    facts, verdict, state = forms.facts, forms.verdict, forms.verdict["state"]
    if json.dumps(forms.result.to_dict()) != json.dumps(facts):
        yield "the typed result and the JSON"
    if judge(forms.result).to_dict()["verdict"] != verdict:
        yield "the verdict of the JSON's own numbers"
    p, alpha = verdict["pvalue"], verdict["alpha"]
    has_evidence = p <= alpha or forms.data["true_class_zeros"] > 0
    if (state in DIRECTIONS) != has_evidence or verdict["rejected"] is not {True: True}.get(
        has_evidence, None if state == "not tested" else False
    ):
        yield f"state {state}, rejected {verdict['rejected']} and p {p}"
    if p != facts["tests"][0]["pvalue"] or verdict["min_pvalue"] != facts["tests"][0]["min_pvalue"]:
        yield "the p-value of the verdict and that of the family"
    excluded = [
        measure["name"]
        for measure in facts["standard_measures"]
        if (ends := measure["interval"]) and measure["ideal"] is not None
        and not (-math.inf if ends["low"] is None else ends["low"]) <= measure["ideal"]
        <= (math.inf if ends["high"] is None else ends["high"])
    ]  # fmt: skip
    among = facts["among_groups"] or {"unexamined": [], "min_pvalue": 0.0, "alpha": 1.0}
    is_untestable = bool(facts["groups"]) and among["min_pvalue"] > among["alpha"] * (1 + 1e-9)
    has_doubts = bool(excluded or among["unexamined"] or is_untestable)
    if verdict["excludes_ideal"] != excluded or verdict["unexamined_groups"] != len(among["unexamined"]):
        yield "the doubts in the verdict and in the sections"
    if state in ("no evidence", "inconclusive") and (state == "inconclusive") != has_doubts:
        yield f"the state {state} with doubts: {has_doubts}"
    units = "clusters" if forms.data["clusters"] is not None else "rows"
    opening = OPENINGS.get(state, f"Too few {units} to judge:" if state == "too few rows" else f"{state.capitalize()}:")
    if verdict["rejected"] and state != "miscalibrated":
        opening = state if not re.search(f"slightly {state}", forms.headline, re.IGNORECASE) else f"slightly {state}"
        opening = opening.capitalize()
    directions = [word for name in LEVELS + SPREADS for word in (name.capitalize(), f"Slightly {name}")]
    openings = {"Inconclusive:", "Miscalibrated:", *OPENINGS.values(), "Reversed", *directions, opening}
    if [word for word in openings if word in forms.headline] != [opening]:
        yield f"the opening is not {opening}"
    if len(forms.headline) > MAX_HEADLINE_LENGTH:
        yield f"the headline has {len(forms.headline)} characters"
    spread = verdict["spread"]
    if (state in SPREADS or state == "reversed") and spread != state:
        yield f"the state {state} beside the spread {spread}"
    if spread and not verdict["rejected"]:
        yield f"a spread ({spread}) of predictions that are not rejected"
    line = forms.lines["Miscalibration"]
    value = "detected" if verdict["rejected"] else "not tested" if state == "not tested" else "not detected"
    value = "inconclusive" if has_doubts and value == "not detected" else value
    if not line.value.startswith(value):
        yield f"the summary says {line.value}, not {value}"
    is_good = state == "no evidence"
    tone = "bad" if verdict["rejected"] else "good" if is_good else "plain"
    if line.tone != tone or forms.role != {"plain": "sentence"}.get(tone, tone):
        yield f"the tones {line.tone} and {forms.role} are not {tone}"
    if f'<header class="{tone}">' not in forms.page or f'<span class="badge">{state}</span>' not in forms.page:
        yield f"the head of the page is not {tone}, {state}"
    if not forms.citation.endswith(f"; verdict: {state}."):
        yield f"the citation says {forms.citation}"
    if (forms.exit_code == 1) != (verdict["rejected"] is True) or (
        verdict["rejected"] is None and forms.exit_code != 2
    ):
        yield f"the gate exits with {forms.exit_code}"
    if (among["unexamined"] or is_untestable) and not verdict["rejected"] and forms.exit_code != 2:
        yield "a gate passes beside groups that were not examined or tested"
    for name in ("text", "brief", "notebook"):
        if plain(forms.headline) not in getattr(forms, name) or plain(verdict["details"]) not in getattr(forms, name):
            yield f"the sentences are not in the {name}"
    for text in (forms.headline, verdict["details"]):
        if plain(html.escape(text)) not in plain(forms.page):
            yield f"not on the page: {text}"


def _evidence(forms: Forms) -> Iterator[str]:
    """The p-value with its relation, what rejects, and what the forms say about it."""
    facts, verdict, sentence = forms.facts, forms.verdict, forms.sentence
    p, alpha, smallest = verdict["pvalue"], verdict["alpha"], verdict["min_pvalue"]
    is_significant = p <= alpha
    if ("Calibration rejected" in sentence) != is_significant:
        yield "the sentence on the test and p"
    if ("not rejected" in sentence) != (not is_significant and verdict["state"] != "not tested"):
        yield "the sentence that calibration is not rejected and p"
    printed = re.findall(r"family-wise p ([≤=<]) ([\d.e-]+\d)", f"{sentence} {forms.lines['Miscalibration'].remark}")
    if len(set(printed)) > 1:
        yield f"several family-wise p-values: {printed}"
    for relation, number in printed:
        is_bound = smallest is not None and p <= smallest * (1 + 1e-9)
        expected = "≤" if is_bound else "<" if p < 0.0001 else "="
        if relation != expected or not (shows(number, p) or (relation == "<" and p < float(number))):
            yield f"p {relation} {number} is printed for {p}"
    default = next((test for test in facts["tests"] if test["lens"] == forms.result.default_error.lens), None)  # type: ignore[union-attr]
    detected = forms.lines["Miscalibration"].value
    claims_others = ["other tests of the family" in sentence, *(f"detected {x}" in detected for x in ("in", "by"))]
    if any(claims_others) and default is not None and default["pvalue"] <= alpha:
        yield f"other tests are said to reject beside p {default['pvalue']} of the default lens"
    if "does not exceed its noise floor" in sentence:
        error = forms.facts["measures"][2]
        if default is None or default["pvalue"] > alpha or error["debiased"] > 0:
            yield f"a rejection without an error: {error['value']}, debiased {error['debiased']}"
    if is_significant and default is not None and default["pvalue"] > alpha and not any(claims_others[1:]):
        yield "the summary does not say that the default lens does not reject"
    if "detected in subgroups" in forms.lines["Miscalibration"].value and not any(
        group["status"] == "miscalibrated" for group in facts["groups"]
    ):
        yield "subgroups are said to be miscalibrated"
    n_zeros = forms.data["true_class_zeros"]
    zeros = re.findall(
        r"([\d,]+) (?:outcomes? occurred although|answers? (?:was|were) wrong at confidence 1)", sentence
    )
    if verdict["state"] != "not tested" and zeros != ([f"{n_zeros:,}"] if n_zeros else []):
        yield f"{n_zeros} impossible outcomes and {zeros} in the sentence"
    rows = dict(result_tables.data_table(forms.result).rows)
    if rows["of these, observed"] != f"{n_zeros:,}":
        yield "the impossible outcomes in the table"
    decisions = facts["decisions"]
    if decisions:
        (line,) = (line for line in summary_lines(forms.result) if line.label == "Decision regret")
        gain_p = decisions["test"]["pvalue"]
        if line is not None and ("not significant" in line.value) != (
            gain_p > alpha and decisions["regret"]["value"] > 0
        ):
            yield "the decision regret and its p"


def _means(forms: Forms) -> Iterator[str]:
    """Predicted and observed means, their order, and the words for it."""
    data, state, sentence = forms.data, forms.verdict["state"], forms.sentence
    is_binary = data["event_rate"] is not None
    predicted, observed = (
        (data["mean_prediction"], data["event_rate"]) if is_binary else (data["mean_confidence"], data["accuracy"])
    )
    if predicted is None:
        return
    level = forms.verdict["calibration_in_the_large"]
    if abs(level - (observed - predicted)) > 1e-6:
        yield f"calibration-in-the-large {level} and the means {predicted}, {observed}"
    pattern = (
        r"mean predicted ([\d.]+) %, (?:share of votes|observed) ([\d.]+) %"
        if is_binary
        else r"predicts ([\d.]+) % on average, (?:is right )?([\d.]+) % of the"
    )
    for low, high in re.findall(pattern, sentence.partition("worst group")[0]):
        if not (shows(low, 100 * predicted) and shows(high, 100 * observed)):
            yield f"the means {low}, {high} are printed for {predicted}, {observed}"
    rate = forms.lines.get("Observed event rate") or forms.lines.get("Observed vote share")
    if rate is not None:
        points = re.search(r"calibration-in-the-large ([+−]?[\d.]+) percentage points", rate.remark)
        if points is None or not shows(points[1].replace("+", ""), 100 * (observed - predicted)):
            yield f"{rate.remark} beside {observed - predicted}"
    slope = forms.result.standard.get("calibration_slope")
    if state in ("too high", "too low") and (predicted > observed) != (state == "too high"):
        yield f"{state} for the means {predicted}, {observed}"
    if state in ("overconfident", "underconfident") and (predicted > observed) != (state == "overconfident"):
        yield f"{state} for the means {predicted}, {observed}"
    words = re.findall(r"too (extreme|moderate)", forms.headline, re.IGNORECASE)
    for word in words:
        if (slope.value < 1) != (word.lower() == "extreme"):  # type: ignore[union-attr,operator]
            yield f"too {word} for the slope {slope and slope.value}"
    if words and forms.verdict["spread"] != f"too {words[0].lower()}":
        yield f"too {words[0]} beside the spread {forms.verdict['spread']}"
    pattern = r"\((O:E|slope) (\S+), (?:[\d.]+ % CI )?(\S+) to (\S+)\)"
    for label, value, low, high in re.findall(pattern, forms.headline):
        measure = forms.result.standard["observed_to_expected" if label == "O:E" else "calibration_slope"]
        printed = zip((value, low, high), (measure.value, measure.interval.low, measure.interval.high), strict=True)  # type: ignore[union-attr]
        if not all(shows(text, number) for text, number in printed):
            yield f"{label} {value}, {low} to {high} is printed for {measure}"
    is_slight = forms.result.is_level_slight or forms.result.is_spread_slight
    if "slightly" in forms.headline.lower() and not is_slight:
        yield "an error that is not slight is called slight"
    quoted = re.search(
        r"([\d,]+) rows (?:predicted at|with mean confidence) ([\d.]+) % "
        r"(?:on average have an event rate of|are right) ([\d.]+) %",
        sentence,
    )
    if quoted is not None:
        table = forms.facts["diagrams"][0]["table"]
        bins = zip(table["n"], table["mean_prediction"], table["outcome_rate"], table["outside"], strict=True)
        found = [
            (predicted_there, observed_there)
            for n, predicted_there, observed_there, outside in bins
            if f"{n:,}" == quoted[1] and shows(quoted[2], 100 * predicted_there) and outside
            and shows(quoted[3], 100 * observed_there)
        ]  # fmt: skip
        if not found:
            yield f"no bin outside its bar is that of {quoted[0]}"
        for predicted_there, observed_there in found:
            # Rows of two classes below the event rate are too extreme if they are predicted too low.
            is_below = state in SPREADS and is_binary and predicted_there < observed
            too_high = {True: ("too low", "too moderate"), False: ("too high", "overconfident", "too extreme")}
            too_low = {True: ("too high", "too extreme"), False: ("too low", "underconfident", "too moderate")}
            if state in (too_high if predicted_there < observed_there else too_low)[is_below]:
                yield f"{state} and {quoted[0]}"
    if state == "reversed" and slope.value >= 0:  # type: ignore[union-attr,operator]
        yield f"reversed for the slope {slope and slope.value}"


def _intervals(forms: Forms) -> Iterator[str]:
    """Errors, intervals, noise floors and standard measures as printed and in the JSON."""
    facts, verdict = forms.facts, forms.verdict
    errors = [measure for measure in facts["measures"] if measure["estimator"] == "ece"]
    default, line = errors[0], forms.lines["Expected calibration error"]
    if not shows(line.value, default["value"]) and not math.isclose(float(line.value), default["value"], abs_tol=5e-4):
        yield f"the error {line.value} is printed for {default['value']}"
    pattern = r"confidence interval (?:of the expected calibration error )?([\d.e-]+) to ([\d.e-]*\d)"
    sources = (forms.sentence[forms.sentence.find("Calibration not rejected") :], line.remark)
    for text in sources:
        for low, high in re.findall(pattern, text if "Calibration not" in text or text is line.remark else ""):
            if not (shows(low, default["interval"]["low"]) and shows(high, default["interval"]["high"])):
                yield f"the interval {low} to {high} is printed for {default['interval']}"
    tests = {test["lens"]: test for test in facts["tests"]}
    for measure in facts["measures"]:
        ends, value = measure["interval"], measure["value"]
        if ends is None or value is None:
            continue
        if not ends["low"] - 1e-9 <= value <= ends["high"] + 1e-9:
            yield f"{measure['estimator']} {measure['lens']} {value} outside {ends}"
        own = tests.get(measure["lens"])
        # The mean gap bounds the error. Its interval may exclude 0 although no test rejects; the verdict says so.
        alpha = max(
            verdict["alpha"], 1 - ends["level"]
        )  # a test at 1 % may not reject where a 95 % interval excludes 0
        is_rejected = measure["estimator"] != "ece" or own is None or own["pvalue"] <= alpha
        if ends["low"] > 0 and not is_rejected and not verdict["excludes_ideal"]:
            yield f"an interval above 0 ({measure['lens']} {ends}) beside p = {own['pvalue']}"
    by_lens = {measure["lens"]: measure for measure in errors if measure["interval"]}
    if {"confidence", "canonical"} <= set(by_lens):
        coarse, fine = (by_lens[lens]["interval"] for lens in ("confidence", "canonical"))
        rejected = tests["canonical"]["pvalue"] <= verdict["alpha"]
        lower = min(coarse["low"], by_lens["canonical"]["value"]) if rejected else 0.0
        if fine["low"] < lower - 1e-12 or fine["high"] < coarse["high"] - 1e-12:
            yield "the canonical error below the coarser one"
    labels = {
        measure["name"]: result_tables.standard_measure_label(measure["name"]) for measure in facts["standard_measures"]
    }
    named = [name for name in verdict["excludes_ideal"] if labels[name] in forms.lines["Miscalibration"].remark]
    if verdict["rejected"] is False and named != verdict["excludes_ideal"]:
        yield f"the summary names {named} of {verdict['excludes_ideal']}"
    if not verdict["rejected"] and bool(verdict["excludes_ideal"]) != ("excludes " in forms.sentence):
        yield "a standard measure excludes its ideal value, and the sentence"
    for measure, row in zip(
        facts["standard_measures"], result_tables.standard_measure_table(forms.result).rows, strict=True
    ):
        if row[0] != labels[measure["name"]] or not (row[1] == "see TN268" or shows(row[1], measure["value"])):
            yield f"{row} is printed for {measure}"
    for label, low, high in re.findall(r"of the ([\w:-]+(?: \w+)?), (\S+) to (\S+), excludes", forms.sentence):
        ends = next(measure["interval"] for measure in facts["standard_measures"] if labels[measure["name"]] == label)
        if not (shows(low, ends["low"]) and shows(high, ends["high"])):
            yield f"the {label} is from {low} to {high}, not {ends}"
        low_limit, high_limit = (float(text.replace("−", "-")) for text in (low, high))
        if low_limit <= (1 if label in ("calibration slope", "O:E ratio") else 0) <= high_limit:
            yield f"{low} to {high} does not exclude the ideal value of the {label}"
    table = result_tables.error_table(forms.result)
    columns = [column.name for column in table.text_columns]
    for measure, row in zip(errors, table.rows, strict=True):
        cells = dict(zip(columns, row, strict=True))
        if cells["lens"] != measure["lens"] or not shows(cells["error"], measure["value"]):
            yield f"{row} is printed for the error {measure['value']}"
        if cells["n"] != f"{measure['n']:,}" or measure["n"] != forms.data["n"]:
            yield f"{cells['n']} rows of {forms.data['n']}"


def _groups(forms: Forms) -> Iterator[str]:
    """The subgroups: statuses, counts, directions and the worst one."""
    facts, sentence, among = forms.facts, forms.sentence, forms.facts["among_groups"]
    groups, line = facts["groups"], forms.lines.get("Miscalibrated groups")
    if (line is None) != (not groups):
        yield "the line on the groups"
    if among is None or not groups:
        return
    miscalibrated = [group["label"] for group in groups if group["status"] == "miscalibrated"]
    if miscalibrated and not forms.verdict["rejected"]:
        yield f"groups are miscalibrated ({miscalibrated}) and the verdict"
    for group in groups:
        if group["joint"] is not None and (group["joint"] <= among["alpha"]) != (group["status"] == "miscalibrated"):
            yield f"{group['label']} is {group['status']} with joint p {group['joint']}"
        if group["status"] == "within" and group["interval"]["high"] >= among["min_effect"]:
            yield f"{group['label']} is within the margin with {group['interval']}"
        if group["direction"] and (group["mean_prob"] > group["event_rate"]) != (group["direction"] == "over"):
            yield f"{group['label']} is {group['direction']} with {group['mean_prob']}, {group['event_rate']}"
    statuses = [row[-1].partition(",")[0] for row in group_tables.group_table(forms.result).rows]
    if statuses != [group["status"] for group in groups]:
        yield f"the statuses {statuses} in the table"
    is_untestable = among["min_pvalue"] > among["alpha"] * (1 + 1e-9)
    value = f"{len(miscalibrated)} of {len(groups)} group" if miscalibrated else f"none of {len(groups)}"
    if not line.value.startswith("not tested" if is_untestable else value):  # type: ignore[union-attr]
        yield f"the summary says {line.value} of the groups"  # type: ignore[union-attr]
    if "could not be tested" in sentence and not is_untestable:
        yield "groups are said not to be testable"
    for count, total in re.findall(r"([\d,]+) of ([\d,]+) groups (?:is|are) miscalibrated", sentence):
        if (count, total) != (f"{len(miscalibrated):,}", f"{len(groups):,}"):
            yield f"{count} of {total} groups"
    if re.search(r"both groups|all [\d,]+ groups", sentence) and len(miscalibrated) != len(groups):
        yield "all groups are said to be miscalibrated"
    if "their errors do not differ" in sentence and any(gap["settled"] for gap in among["widest"]):
        yield "errors of groups are said not to differ"
    worst = re.search(r"(?:worst group: |miscalibrated in group )(.+?) \(", sentence)
    if worst is not None and (worst[1] != among["worst"] or worst[1] not in miscalibrated):
        yield f"the worst group is {among['worst']}"
    if worst is not None and f"worst: {worst[1]}, ECE" not in line.remark:  # type: ignore[union-attr]
        yield f"the summary of the worst group: {line.remark}"  # type: ignore[union-attr]
    if miscalibrated and not re.search(r"groups? (?:is|are) miscalibrated|worst group|in group", sentence):
        yield "the sentence does not name the miscalibrated groups"
    n_all = len(groups) + len(among["unexamined"])
    for count, total in re.findall(r"([\d,]+) of ([\d,]+) groups? (?:was|were) not examined", sentence):
        if (count, total) != (f"{len(among['unexamined']):,}", f"{n_all:,}"):
            yield f"{count} of {total} groups not examined"
    if among["unexamined"] and forms.lines["Groups examined"].value != f"{len(groups):,} of {n_all:,}":
        yield "the number of examined groups"
    methods = re.search(r"The ([\d,]+) groups? of .*? tested jointly by (.*?) \(", forms.methods.text)
    if methods is None or methods.groups() != (f"{len(groups):,}", among["correction"]):
        yield "the methods on the groups"
    intro = group_tables.group_table(forms.result).intro
    level = re.search(r"joint p at most ([\d.]+\d)", intro)
    if level is None or not shows(level[1], among["alpha"]):
        yield f"the level of the groups in the table: {intro}"
    if f"adjusted for all groups ({among['correction']})" not in intro:
        yield "the correction in the table of groups"


def _classes(forms: Forms) -> Iterator[str]:
    """The classes for which calibration is rejected: their number, and the one with the largest error."""
    facts, alpha = forms.facts, forms.verdict["alpha"]
    parts = next((test["parts"] for test in facts["tests"] if test["lens"] == "classwise" and test["parts"]), {})
    rejected = [name for name, part in parts.items() if part.get("holm") is not None and part["holm"] <= alpha]
    errors = next((m["parts"] for m in facts["measures"] if m["lens"] == "classwise" and m["estimator"] == "ece"), {})
    text = re.search(
        r"miscalibrated for (?:(all )?([\d,]+)(?: of ([\d,]+))? (?:classes|labels), most for )?(?:class|label) (.+?)\.",
        forms.sentence,
    )
    if text is None:
        return
    largest = max(rejected, key=lambda name: errors[name]).removeprefix("class:")
    count = int((text[2] or "1").replace(",", ""))
    if text[4] != largest or count != len(rejected) or (text[1] and count != len(parts)):
        yield f"{text[0]} for {rejected} of {len(parts)}"
    if text[3] and int(text[3].replace(",", "")) != len(parts):
        yield f"{text[0]} for {len(parts)} classes"
    if (worst := result_tables.worst_class(forms.result)) is not None and worst.name != largest:
        yield f"the brief names {worst.name}, the sentence {largest}"


def _recalibration(forms: Forms) -> Iterator[str]:
    """The recalibration: whether it is confirmed, what of it, its gain, and the words for it."""
    facts, fix, sentence, line = forms.facts, forms.facts["recalibration"], forms.sentence, forms.lines["Recalibration"]
    if fix is None or not fix["candidates"]:
        if line.value != "not attempted" or "recalibration" in sentence.lower() or "Confirmed" in forms.methods.text:
            yield f"a recalibration that was not attempted: {line.value}"
        return
    gain_is_positive, status = (fix["gain_low"] or 0) > 0, fix["outcome"]
    if fix["confirmed"] != (status in ("confirmed", "gain not established")):
        yield f"confirmed is {fix['confirmed']} beside {status}"
    if fix["confirmed"] and gain_is_positive != (status == "confirmed"):
        yield f"{status} beside a gain of at least {fix['gain_low']}"
    if fix["confirmed"] and not (fix["pvalue"] <= fix["alpha"] and forms.verdict["pvalue"] <= forms.verdict["alpha"]):
        yield f"confirmed with p {fix['pvalue']} at {fix['alpha']}, family {forms.verdict['pvalue']}"
    if (fix["applied"] != "identity") != fix["confirmed"]:
        yield "what is applied is not what is confirmed"
    words = {
        "confirmed": ("reduces the log loss", None, "Outcome: confirmed,"),
        "gain not established": ("gain not established (", None, "Outcome: gain not established,"),
        "too few rows": (
            "o recalibration could be confirmed", "too few rows", "No recalibration was confirmed: too few rows"
        ),
        "no gain": (
            "o recalibration improves the held-out", "no gain", "No recalibration was confirmed: no significant gain"
        ),
        "not judged": ("o recalibration can be judged", "not judged", "No recalibration was judged"),
    }  # fmt: skip
    in_sentence, value, in_methods = words[status]
    others = {entry[0] for entry in words.values()} - {in_sentence}
    if in_sentence not in sentence or any(other in sentence for other in others):
        yield f"the sentence on a recalibration that is {status}"
    methods = {entry[2] for entry in words.values()} - {in_methods}
    if in_methods not in forms.methods.text or any(other in forms.methods.text for other in methods):
        yield f"the methods on a recalibration that is {status}"
    if value is not None and line.value != value:
        yield f"the summary on a recalibration that is {status}: {line.value}"
    if fix["confirmed"] and ("gain not established (" in line.remark) == gain_is_positive:
        yield f"the summary on a gain from {fix['gain_low']}"
    if (line.tone == "good") and status != "confirmed":
        yield f"the tone of a recalibration that is {status}"
    if dict(recalibration.recalibration_table(forms.result).rows)["outcome"] != status:
        yield "the outcome in the table"
    marks = {row[0]: row[-1] for row in recalibration.candidate_table(forms.result).rows}
    chosen = next((method for method, mark in marks.items() if mark.startswith("chosen")), fix["chosen"])
    if chosen != fix["chosen"] or ("not confirmed" in marks.get(chosen, "")) != (
        status in ("too few rows", "no gain") and chosen != "identity"
    ):
        yield f"the candidates {marks}"
    if status == "confirmed":
        for percent, bound in re.findall(r"by ([\d.]+) % \(at least ([\d.]+) %", sentence):
            if not (shows(percent, fix["gain_percent"]) and shows(bound, fix["gain_low_percent"])):
                yield f"the gain {percent}, {bound} for {fix['gain_percent']}, {fix['gain_low_percent']}"
            if f": {percent} % lower, at least {bound} %" not in line.remark and "hardly" not in line.value:
                yield f"the gain in the summary: {line.remark}"
        if fix["log_loss_before"] is not None and fix["log_loss_after"] >= fix["log_loss_before"]:
            yield "a confirmed gain and the log losses"
    if fix["confirmed"] and facts["data"]["resolution"].startswith("exact"):
        score = next(measure["value"] for measure in facts["measures"] if measure["estimator"] == "log_loss")
        if abs((fix["log_loss_before"] or 0) - (score or 0)) > 1e-9:
            yield "the log loss before, and the scores"


def _methods(forms: Forms) -> Iterator[str]:
    """The methods paragraph: counts, flags, levels, draws, adjustment, and references that are cited."""
    text, data, facts = forms.methods.text, forms.data, forms.facts
    noun = {"multilabel": "label", "confidence": "outcome"}.get(data["kind"], "class")
    size = re.search(r"evaluated on ([\d,]+) rows? of ([\d,]+) (\w+)", text)
    if size is None or (size[1], size[2]) != (f"{data['n']:,}", f"{data['k']:,}") or not size[3].startswith(noun):
        yield "the size of the data"
    for is_true, phrase in (
        (data["weighted"], "with weights"),
        (data["votes"], "votes of annotators as outcomes"),
        (data["clusters"] is not None, f"in {data['clusters'] or 0:,} cluster"),
    ):
        if bool(is_true) != (phrase in text):
            yield f"{phrase!r}"
    levels = set(re.findall(r"([\d.]+) % confidence intervals", text))
    if levels - {f"{100 * facts['settings']['level']:g}"}:
        yield f"the levels {levels}"
    if f"tested at level {forms.verdict['alpha']:g}" not in text.replace("0.0500", "0.05"):
        yield "the level of the tests"
    words = {"bca": "bias-corrected and accelerated", "normal": "normal (Wald)", "t": "Student t"}
    of_all_rows = text.partition("Their intervals are ")[2].partition("The intervals of each group")[0]
    intervals = re.findall(r"([^;]*?intervals.*?) for ([\w:, -]+)", of_all_rows)
    named = {name: phrase for phrase, names in intervals for name in re.split(r", | and ", names.strip())}
    for measure in facts["standard_measures"]:
        label, ends = result_tables.standard_measure_label(measure["name"]), measure["interval"]
        if measure["value"] is None or ends is None:
            continue
        if words.get(ends["method"], ends["method"]) not in named.get(label, "").replace(
            "intervals by the method ", ""
        ):
            yield f"the interval of the {label} is {ends['method']}: {intervals}"
    draws = re.search(r"with ([\d,]+) draws of the null", text)
    if draws is not None and int(draws[1].replace(",", "")) != facts["tests"][-1]["settings"]["resamples"]:
        yield "the number of draws"
    in_tables = any(
        column.name == "Holm p" for table in (result_tables.error_table, result_tables.class_table)
        for column in table(forms.result).columns
    )  # fmt: skip
    if in_tables != ("adjusted by Holm's method" in text):
        yield f"Holm's adjustment: in tables {in_tables}"
    cited = {name for group in re.findall(r"\(([^()]*\d{4}[^()]*)\)", text) for name in group.split("; ")}
    listed = set()
    for reference in forms.methods.references:
        authors, _, rest = reference.partition(" (")
        names = authors.replace(" & ", ", ").split(", ")
        listed.add(f"{authors if len(names) < 3 else names[0] + ' et al.'} {rest[:4]}")
    if cited != listed:
        yield f"cited {cited - listed}, listed {listed - cited}"


def _pictures(forms: Forms) -> Iterator[str]:
    """The picture at the top of the page: of the default lens, or of the class with the largest error."""
    facts, alpha = forms.facts, forms.verdict["alpha"]
    main = figures.main_pictures(forms.result, figures.figure_entries(forms.result, (), ()))
    default = facts["diagrams"][0]["lens"]
    is_found_elsewhere = bool(forms.verdict["rejected"]) and all(
        test["pvalue"] > alpha for test in facts["tests"] if test["lens"] == default
    )
    has_classes = any(diagram["lens"] == "classwise" for diagram in facts["diagrams"][1:])
    if ("The class with the largest error." in main["caption"]) != (is_found_elsewhere and has_classes):
        yield f"the picture beside the verdict: {main['caption']}"
    worst = result_tables.class_table(forms.result).rows[:1]
    if "The class with the largest error." in main["caption"] and main["pictures"][0].view != worst[0][0]:
        yield f"the picture of class {main['pictures'][0].view} and the table of {worst}"


def _details(forms: Forms) -> Iterator[str]:
    """Sizes and notes in the forms; the bins outside their bars."""
    data, facts = forms.data, forms.facts
    rows = dict(result_tables.data_table(forms.result).rows)
    if (
        rows["rows"] != f"{data['n']:,}"
        or f"{data['n']:,} row" not in forms.text
        or f"{data['n']:,} row" not in plain(forms.page)
    ):
        yield "the number of rows"
    unit = {"multilabel": "labels", "confidence": "outcomes"}.get(data["kind"], "classes")
    if not rows[unit].startswith(f"{data['k']:,}: ") or len(data["classes"]) != data["k"]:
        yield f"the number of {unit}"
    codes = {note.code for note in forms.audit.notes}
    for name, text in (("page", plain(forms.page)), ("notebook", forms.notebook)):
        if missing := [code for code in codes if code not in text]:
            yield f"the notes {missing} on the {name}"
    for diagram in facts["diagrams"]:
        panels, table = diagram.get("panels"), diagram["table"]
        if panels is None or "outside" not in table:
            continue
        for view, finding, n_bins in zip(panels["view"], panels["finding"], panels["bins"], strict=True):
            outside = [x for x, name in zip(table["outside"], table["view"], strict=True) if name == view]
            counts = re.search(r"(\d+) of (\d+) bins", finding)
            if counts is not None and (int(counts[1]), int(counts[2])) != (sum(map(bool, outside)), len(outside)):
                yield f"{finding} for {sum(outside)} of {n_bins}"
    held_out = (facts["recalibration"] or {}).get("diagrams")
    if held_out:
        before, after = (held_out[time]["table"]["outside"] for time in ("before", "after"))
        caption = f"{sum(before)} of {len(before)} bins lie outside their consistency bars; after"
        if caption not in plain(forms.page) or f", {sum(after) or 'none'} of {len(after)} do" not in plain(forms.page):
            yield "the caption of the correction"
