"""Choose the threshold of a score whose risk is at most a target: the public function `threshold`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from trueodds.api.arguments import data_notes, resolve_data
from trueodds.api.array_arguments import accept_separate_arrays
from trueodds.core.docstrings import insert_shared_parameters
from trueodds.core.errors import InputError
from trueodds.core.settings import check
from trueodds.data.predictions import Predictions
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.risk_threshold import Risk, RiskThreshold, find_threshold


@accept_separate_arrays
@insert_shared_parameters
def threshold(
    data: Any,
    *,
    max_risk: float = 0.05,
    risk: Risk = "error",
    level: float = 0.95,
    lens: Any = None,
    weight_kind: str | None = None,
) -> RiskThreshold:
    r"""Choose the threshold of a score so that errors, misses or false alarms are at most a given share.

    The rule selects a row if its score is at least the threshold. The statement holds although the threshold is chosen
    on the same rows: in at most a share 1 − `level` of data sets, the risk of the chosen rule is larger than
    `max_risk`. The observed risk of a threshold that was chosen by it has no such bound.

    Parameters
    ----------
    data : Predictions, (y_true, y_prob), Source or path
        Predictions with their outcomes, which neither the model nor its calibration has seen.
    max_risk : float, default=0.05
        The largest acceptable risk, between 0 and 1.
    risk : {"error", "fnr", "fpr"}, default="error"
        Errors among the selected rows, or the false negative or false positive rate.

        - ``"error"``: the share of the selected rows that are wrong. For the confidence these are the wrong answers of
          a model that may abstain; for a class it is 1 minus the precision (positive predictive value).
        - ``"fnr"``: the false negative rate, the share of the events that are not selected: 1 minus the sensitivity.
        - ``"fpr"``: the false positive rate, the share of the non-events that are selected: 1 minus the specificity.
    level : float, default=0.95
        Confidence with which the risk is at most `max_risk`, above 0.5 and below 1.
    lens : str or Lens, optional
        Which probability is the score, and which outcome is the event, as in `measure`. The default is
        ``"confidence"``, the largest probability, for errors, and ``"positive"``, the second of two classes, for the
        other risks. These need ``"class:NAME"`` if there are more classes.
    weight_kind : as in `resolve_data`

    Returns
    -------
    RiskThreshold
        The threshold, the share of the rows that it selects, and its observed risk. If no threshold meets the target,
        its `threshold` is None and it states how many rows may suffice.

    Raises
    ------
    InputError
        TO203 for a setting out of range, TO205 for a lens without a single probability per row or for outcomes that
        are shares, TO403 for a tally.

    See Also
    --------
    expect : Expect the performance before there are labels.
    read_answers : Read the answers of a language model, whose `threshold` counts abstentions.

    Notes
    -----
    Errors are tested at up to 200 thresholds with exact binomial p-values, which the fallback procedure adjusts for the
    choice. The rates are monotone in the threshold, so that no adjustment is needed. No threshold can be found with
    fewer than ln(1 − `level`) / ln(1 − `max_risk`) selected rows, events or non-events: 59 for the defaults. Rows of a
    cluster count as their effective number of independent rows, and weighted rows as their effective sample size; the
    statement is then approximate. It is about new rows of the same kind. Cost: O(n log n).

    References
    ----------
    .. [1] Angelopoulos, Bates, Candès, Jordan & Lei (2021). Learn then test.
    .. [2] Wiens & Dmitrienko (2005). The fallback procedure for evaluating a single family of hypotheses.

    Examples
    --------
    >>> import trueodds as to
    >>> y = [1] * 380 + [0] * 20 + [1] * 20 + [0] * 380
    >>> p = [0.9] * 400 + [0.2] * 400
    >>> print(to.threshold(y, p, max_risk=0.1, risk="fnr"))
    probability ≥ 0.9 selects 50%, observed false negative rate 0.05 · false negative rate ≤ 0.1 with 95% confidence
    """
    risk = check("risk", risk, Risk)
    rows = cast(Predictions, resolve_data(data, "exact", weight_kind))
    if lens is None:
        lens = "confidence" if risk == "error" and rows.kind == "classes" else default_lens(rows)
        if risk != "error" and str(lens) == "confidence" and rows.kind == "classes":
            problem, got = "A rate of misses or false alarms needs a class.", f"{rows.k} classes without a lens"
            raise InputError("TO205", problem, got, f"Use ⟨lens='class:{rows.classes[0]}'⟩, or another class.")
    found = find_threshold(rows, risk=risk, lens=lens, max_risk=max_risk, level=level)
    return replace(found, notes=tuple(dict.fromkeys([*data_notes(rows, source=data), *found.notes])))
