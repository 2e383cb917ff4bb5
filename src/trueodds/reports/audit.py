"""Audit a model: measure and test its calibration, confirm a recalibration, and report all of it."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import trueodds
from trueodds.api.arguments import resolve_and_sample
from trueodds.api.array_arguments import accept_separate_arrays
from trueodds.api.draw import draw
from trueodds.api.measure import measure
from trueodds.api.test import test
from trueodds.calibrators.calibrator_predictions import replace_probabilities
from trueodds.calibrators.recalibration_report import Recalibration
from trueodds.core import json_files
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_percent
from trueodds.core.json_files import strict_json
from trueodds.core.progress import Progress, report_in_rows, report_progress
from trueodds.core.rng import as_generator
from trueodds.core.settings import Level, Resamples, check
from trueodds.core.versions import program_versions
from trueodds.data.predictions import Predictions
from trueodds.diagrams.base import Diagram
from trueodds.hypotests.multiple_testing import check_draws
from trueodds.io import Source
from trueodds.reports.analysis import Analysis, analyze_rows, analyze_tally
from trueodds.reports.audit_result import AuditResult
from trueodds.reports.audit_sections import (
    AuditDecisions,
    AuditDiagram,
    AuditMeasure,
    AuditPeople,
    AuditRecalibration,
    AuditTest,
    AuditVerdict,
)
from trueodds.reports.family_wise_test import (
    RECALIBRATION_WEIGHT,
    add_recalibration_to_family,
    recalibration_alpha,
)
from trueodds.reports.page_curves import PageCells
from trueodds.reports.provenance import data_notes, describe_data
from trueodds.reports.subgroups import GroupSpec
from trueodds.reports.text.verdict_sentence import judge
from trueodds.reports.vote_comparison import compare_with_votes
from trueodds.tallies.reservoir import Reservoir
from trueodds.tallies.tally import Tally, require_rows

SIMPLEX_DIAGRAMS = {3: "simplex", 4: "tetrahedron"}  # the diagram of all classes jointly, by number of classes
MAX_PANEL_CLASSES = 100  # with more classes there is no diagram per class; the table of classes lists them


@dataclass(frozen=True, repr=False)
class Audit:
    """The result of `audit`: a report as text, HTML and JSON, all with the same facts.

    ``print`` shows the text report, `brief` returns its top, a notebook shows a summary with the first diagram, and
    `to_html` returns the page. The result holds no rows of the data.

    Parameters
    ----------
    facts : mapping
        The report in the schema ``trueodds.audit/1``, which `to_dict` returns.
    diagrams : tuple of Diagram, default=()
        The diagrams of the report, in the order of ``facts["diagrams"]``.
    cells : PageCells, optional
        Sums of rows of two classes, from which `to_html` draws a calibration belt and a decision curve.
    """

    facts: Mapping[str, Any]
    diagrams: tuple[Diagram, ...] = ()
    cells: PageCells | None = None

    @property
    def verdict(self) -> Mapping[str, Any]:
        """The overall result: `sentence`, `state`, whether calibration is `rejected`, family-wise `pvalue`, …."""
        verdict: Mapping[str, Any] = self.facts["verdict"]
        return verdict

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as a dictionary of JSON values.

        Returns
        -------
        dict
            The report in the schema ``trueodds.audit/1``. Infinite values are None.
        """
        return copy.deepcopy(dict(self.facts))

    def to_html(
        self,
        path: str | Path | None = None,
        *,
        title: str | None = None,
        author: str | None = None,
        date: str | datetime.date | None = None,
    ) -> str:
        """Return the report as one self-contained HTML page.

        Parameters
        ----------
        path : str or Path, optional
            File to which the page is written.
        title : str, optional
            Title of the page, such as the name of the validation.
        author : str, optional
            Who prepared the report. With a title, an author or a date the page has lines for signatures.
        date : str or datetime.date, optional
            Date of the report, as text in ISO format. With a title or an author it is today's by default; otherwise the
            page has no date.

        Returns
        -------
        str
            The HTML text. The page loads nothing and sends nothing.

        Raises
        ------
        InputError
            TO203 for an invalid title, author or date, TO702 if jinja2 is not installed, TO703 if the file cannot be
            written.
        """
        from trueodds.reports.html.audit_page import render_html
        from trueodds.reports.html.figures import INLINE_DIAGRAMS
        from trueodds.reports.html.rendering import Cover

        cover = Cover.of(title, author, date)
        widgets = [diagram.interactive_parts() for diagram in self.diagrams]
        svgs = [
            None if widget or diagram.name in INLINE_DIAGRAMS else diagram.present(title=False).svg()
            for diagram, widget in zip(self.diagrams, widgets, strict=True)
        ]
        text = render_html(self.facts, svgs, widgets, cover, self.cells)
        if path is not None:
            json_files.write_text(path, text, "TO703")
        return text

    @property
    def notes(self) -> tuple[Note, ...]:
        """All notes of the report: on the data, methods, recalibration, estimates, tests and diagrams."""
        return tuple(dict.fromkeys(AuditResult.from_dict(self.facts).all_notes()))

    def __repr__(self) -> str:
        return f"Audit({self.verdict['sentence']!r})"

    def __str__(self) -> str:
        from trueodds.reports.text import terminal

        return terminal.render_text(self.facts)

    def brief(self) -> str:
        """Return the top of the text report: the verdict and its main numbers.

        Returns
        -------
        str
            About ten lines of at most 80 columns: verdict with p-value, worst group and recalibration; the data; the
            expected calibration error with its interval and noise floor; the class of the largest error.
        """
        from trueodds.reports.text import terminal

        return terminal.render_brief(self.facts)

    def _repr_html_(self) -> str:
        from trueodds.reports.html.audit_page import render_notebook_summary

        return render_notebook_summary(self.facts, self.diagrams)


@accept_separate_arrays
def audit(
    data: Any,
    *,
    alpha: float = 0.05,
    level: float = 0.95,
    resamples: int | None = None,
    crossings: bool | int = False,
    max_groups: int | None = None,
    min_effect: float = 0.05,
    cost: Any = None,
    actions: Any = None,
    mode: str | None = None,
    weight_kind: str | None = None,
    rng: int | np.random.Generator = 0,
    progress: Progress | bool | None = None,
) -> Audit:
    """Audit the calibration of predictions: estimates, tests, subgroups, recalibration and diagrams in one report.

    Parameters
    ----------
    data : Predictions, (y_true, y_prob), Source or Tally
        Predictions with their outcomes. The two arrays may also be passed separately, as in ``audit(y_true, y_prob)``.
        Whatever `read` accepts (a path, a data frame of pandas, Dask or Spark) is read first.
    alpha : float, default=0.05
        Significance level of the family-wise test. See Notes.
    level : float, default=0.95
        Confidence level of the intervals.
    resamples : int, optional
        Number of null draws of the labels; the smallest possible p-value is 1/(1 + resamples). The default is 999, or
        up to 9,999 if Holm's correction for many classes requires more.
    crossings : bool or int, default=False
        How many group columns are combined: 2 (or True) adds the subgroups of every two columns.
    max_groups : int, optional
        Examine only so many subgroups of each column or combination, as in `by_group`. By default every subgroup is
        examined.
    min_effect : float, default=0.05
        Equivalence margin: a subgroup that is not rejected has the status ``"within"`` if its interval ends below it.
    cost : array-like, optional
        Cost of each action (rows) for each true class (columns). The report then has the decision regret.
    actions : sequence of str, optional
        Names of the rows of `cost`.
    mode : {"exact", "tally"}, optional
        Keep the rows in memory (``"exact"``) or count them in the cells of a fine grid (``"tally"``). By default rows
        are kept if they have at most 20 million probabilities.
    weight_kind : {"importance", "frequency"}, optional
        Whether a row of weight 2 is one row that counts double (``"importance"``, the default) or two observed rows
        (``"frequency"``). If it is not given and the weights are whole numbers, note TN286 describes the difference.
    rng : as in `as_generator`
    progress : as in `report_progress`

    Returns
    -------
    Audit
        The report. ``print`` shows it as text, `to_html` writes the page, and `verdict` is the summary.

    Raises
    ------
    InputError
        TO101 to TO118 for invalid arrays, TO301 to TO313 for files and columns, TO203 for an invalid value or too few
        `resamples` for `alpha`, TO205 for `cost` with clusters, TO323 and TO403 for `crossings` and `cost` with a
        tally.

    See Also
    --------
    measure : Estimate a calibration error or a proper score.
    test : Test whether the predictions are calibrated.
    by_group : Estimate and test the error of every subgroup.
    fit : Fit a calibrator.

    Notes
    -----
    One family of hypotheses is tested at level `alpha`: calibration through the default lens, of every class, of the
    whole probability vector and of every subgroup, and the gain of a recalibration, which has 5 % of `alpha`. The
    p-value of the verdict is adjusted for all of them. Data that do not fit into memory are tallied in one pass,
    wherever they are stored; the recalibration is then chosen on a random sample of rows from the same pass.

    Examples
    --------
    >>> report = audit(Predictions([0, 1] * 100, [0.5] * 200), resamples=99)
    >>> report.verdict["state"]
    'no evidence'
    """
    alpha, level = check("alpha", alpha, Level, 0.05), check("level", level, Level, 0.95)
    resamples = check("resamples", resamples, Resamples | None)
    progress_context, generator = report_progress(progress), as_generator(rng)
    if resamples is not None:
        tests_share = 1 - RECALIBRATION_WEIGHT
        level_text = f"the level of the tests, {format_percent(tests_share)} of {alpha:g}"
        check_draws(resamples, alpha * tests_share, level_text=level_text)
    with progress_context as notify:
        all_rows, rows, sample = resolve_and_sample(
            data,
            mode,
            weight_kind,
            int(rng) if isinstance(rng, (int, np.integer)) else 0,
            report_in_rows(notify, 0.02),
        )
        group_spec = GroupSpec.from_rows(all_rows, rows, crossings, min_effect, rng, max_groups)
        del all_rows  # which may have more rows than `rows`
        if cost is not None:
            notify(0.02, "computing decision costs")
        decisions = _estimate_decision_regret(rows, cost, actions, level, rng)
        if isinstance(rows, Tally):
            results = analyze_tally(
                rows, resamples, level=level, alpha=alpha, rng=generator, progress=notify, group_spec=group_spec
            )
        else:
            results = analyze_rows(
                rows, resamples, level=level, alpha=alpha, rng=generator, progress=notify, group_spec=group_spec
            )
        notify(0.70, "choosing a recalibration")
        description = describe_data(rows, _source_name(data))
        recalibration, recalibration_notes = _fit_recalibration(
            rows, sample, results, alpha, level, rng, has_impossible_outcomes=description.true_class_zeros > 0
        )
        if recalibration is not None:
            tests = add_recalibration_to_family(results.tests, recalibration.pvalue, alpha)
            results = replace(results, tests=tests)
        people, people_notes = compare_with_votes(
            rows, results, alpha, level, generator, notify, has_repeated_rows=weight_kind == "frequency"
        )
        notify(0.9, "drawing diagrams")
        diagrams = _draw_diagrams(rows, level)
        notify(1.0, "done")
    source_notes = data.notes if isinstance(data, Source) else ()
    notes = list(dict.fromkeys([*source_notes, *data_notes(rows), *results.notes, *recalibration_notes, *people_notes]))
    family = results.tests[0]
    verdict = AuditVerdict(  # `judge`, below, fills in the state, the rejection and the sentences
        state="",
        rejected=None,
        pvalue=strict_json(family.pvalue),
        min_pvalue=strict_json(family.min_pvalue),
        calibration_in_the_large=strict_json(results.calibration_in_the_large),
        calibration_in_the_large_z=strict_json(results.calibration_in_the_large_z),
        alpha=alpha,
        excludes_ideal=tuple(measure.name for measure in results.standard_measures if measure.excludes_ideal),
        unexamined_groups=len(results.groups.unexamined),
    )
    result = AuditResult(
        version=trueodds.__version__,
        versions=program_versions(),
        data=description,
        verdict=verdict,
        measures=tuple(AuditMeasure.from_dict(error.to_dict()) for error in (*results.scores, *results.errors)),
        standard_measures=results.standard_measures,
        tests=tuple(AuditTest.from_dict(test.to_dict()) for test in results.tests),
        recalibration=recalibration,
        decisions=decisions,
        people=None if people is None else AuditPeople.from_dict(people),
        groups=results.groups.to_entries(),
        among_groups=results.groups.to_summary(),
        diagrams=tuple(AuditDiagram.from_dict(diagram.to_dict()) for diagram in diagrams),
        settings={
            "alpha": alpha,
            "level": level,
            "resamples": results.resamples,
            "seed": rng if isinstance(rng, (int, np.integer)) else "generator",
            "weight_kind": weight_kind or "importance",
            "crossings": int(crossings) + (crossings is True),
            "max_groups": max_groups,
            "min_effect": min_effect,
        },
        notes=tuple(notes),
    )
    return Audit(strict_json(judge(result).to_dict()), diagrams, PageCells.of(rows, level))


def _source_name(data: Any) -> str:
    """Return the file name of a source, or what kind of data was passed."""
    if isinstance(data, Source):
        return Path(data.name).name
    return "a tally" if isinstance(data, Tally) else "predictions in memory"


def _estimate_decision_regret(
    rows: Predictions | Tally, cost: Any, actions: Any, level: float, rng: int | np.random.Generator
) -> AuditDecisions | None:
    """Estimate and test the decision regret, as the section `decisions` of an audit; None if `cost` is None."""
    if cost is None:
        if actions is not None:
            raise InputError("TO203", "`actions` names the rows of `cost`.", "actions without cost", "Pass cost=.")
        return None
    fix = "Use ⟨mode='exact'⟩, or omit cost."
    preds: Predictions = require_rows(rows, "The decision regret requires the rows.", fix=fix)
    if preds.cluster is not None:
        raise InputError(
            "TO205",
            "The decision regret is estimated by cross-fitting, which requires independent rows.",
            "⟨cost=⟩ with ⟨clusters⟩",
            "Omit cost, or audit one row per cluster.",
        )
    # Frequencies have become rows.
    settings = {"cost": cost, "actions": actions, "rng": rng, "weight_kind": "importance"}
    regret = measure(preds, "decision_regret", level=level, **settings)
    verdict = test(preds, "decision_regret", **settings)
    return AuditDecisions(regret=AuditMeasure.from_dict(regret.to_dict()), test=AuditTest.from_dict(verdict.to_dict()))


def _fit_recalibration(
    rows: Predictions | Tally,
    sample: Reservoir | None,
    results: Analysis,
    alpha: float,
    level: float,
    rng: int | np.random.Generator,
    *,
    has_impossible_outcomes: bool,
) -> tuple[AuditRecalibration | None, list[Note]]:
    """Choose and confirm a recalibration as `fit(preds, "auto")` does, on a sample of the rows if they were tallied.

    Returns the section of the report, or None if none was attempted, and its notes. Without evidence of
    miscalibration, from the tests or from outcomes of predicted probability 0 (`has_impossible_outcomes`), the section
    does not state how many rows would confirm the gain, because there may be none to confirm.
    """
    if not isinstance(rows, Tally):
        preds = rows
    elif sample is not None:
        preds = sample.rows
    else:
        text = "A tally holds no rows, so no recalibration was fitted. Audit the file of predictions to get one."
        return None, [Note("TN207", text)]
    from trueodds.calibrators.auto import AutoSpec
    from trueodds.calibrators.fitting import fit

    if preds.kind == "multilabel":
        text = (
            "Recalibration requires mutually exclusive classes. Fit one calibrator per label:"
            " ⟨Predictions(Y[:, j], P[:, j])⟩."
        )
        return None, [Note("TN208", text)]
    test_alpha = recalibration_alpha(results.tests[0], alpha)
    # Of the signs of training rows, this one is noted on an error, and not on the data, where `fit` would see it.
    is_fit_too_good = any(note.code == "TN163" for error in results.errors for note in error.notes)
    report = fit(
        AutoSpec(alpha=test_alpha, rng=rng), preds, keep_held_out=True, trained_on_rows=is_fit_too_good or None
    ).report
    diagrams = diagrams_before_and_after(preds, report, level)
    if test_alpha < alpha and not has_impossible_outcomes:
        report = report.without_required_rows()
    notes = [] if sample is None or sample.note is None else [sample.note]
    notes += _note_on_groups(preds, report)
    return AuditRecalibration.from_dict({**report.to_dict(), "diagrams": diagrams}), notes


def _note_on_groups(preds: Predictions, report: Recalibration) -> list[Note]:
    """Return note TN549 that the recalibration was chosen for all rows together, if they have groups."""
    if not preds.group:
        return []
    text = "The recalibration is the same for all groups"
    if not report.confirmed:
        text = "That no recalibration of all rows is confirmed says nothing on single groups, which it does not examine"
    offer = ": ⟨fit(preds, 'group_shift')⟩ corrects groups, if held-out rows confirm it." if preds.k == 2 else "."
    return [Note("TN549", text + offer)]


def _draw_diagrams(rows: Predictions | Tally, level: float) -> tuple[Diagram, ...]:
    settings: dict[str, Any] = {"level": level, "weight_kind": "importance"}  # frequencies have become rows
    diagrams = [draw(rows, "reliability", **settings)]
    if rows.kind != "multilabel":
        diagrams.append(draw(rows, "confidence_histogram", **settings))
        if rows.kind == "classes" and 2 < rows.k <= MAX_PANEL_CLASSES:
            diagrams.append(draw(rows, "reliability", lens="classwise", **settings))
        if isinstance(rows, Predictions) and rows.kind == "classes" and rows.k in SIMPLEX_DIAGRAMS:
            diagrams.append(draw(rows, SIMPLEX_DIAGRAMS[rows.k], **settings))
    return tuple(diagrams)


def diagrams_before_and_after(preds: Predictions, report: Recalibration, level: float) -> dict[str, Any] | None:
    """Return the reliability diagrams of the held-out rows, before and after the recalibration.

    The probability of a row after the recalibration is from a calibrator that was fitted and chosen without this row.
    The level is that of the consistency bars. Returns None without a confirmed recalibration.
    """
    if report.held_out is None or not report.confirmed:
        return None
    before = preds[report.held_out.rows]
    after = replace_probabilities(before, report.held_out.P)
    return {
        "n": before.n,
        "before": draw(before, "reliability", level=level, weight_kind="importance").to_dict(),
        "after": draw(after, "reliability", level=level, weight_kind="importance").to_dict(),
    }
