"""Write what `trueodds selftest` compares with: reference numbers with their source, and claims with their tests.

`python -m tests.selftest` writes src/trueodds/selftest.json, the only part of the tests in the wheel. It needs the
folder of reference numbers (tests/reference.py).
"""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal, getcontext
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.metrics import brier_score_loss, log_loss

from tests import reference
from tests.selftest_claims import find_claims

FILE = Path(__file__).parents[1] / "src" / "trueodds" / "selftest.json"
SCHEMA = "trueodds.selftest_numbers/1"
MAX_BYTES = 100_000
N_POINTS = 6  # of four classes, to which fitted calibrators are applied
OWN = "NumPy, each row by itself, written apart from trueodds"
SKLEARN = f"scikit-learn {sklearn.__version__}"
DECIMALS = "Python's decimal arithmetic with 60 digits"
GRID = [0.001, 0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.98, 0.999]
getcontext().prec = 60


# Rows


def encode(values: Any, decimals: int | None = None) -> dict[str, Any]:
    """An array as base64: of 64-bit numbers, or of small integers if all values have as few decimals as that."""
    array = np.asarray(values, dtype=np.float64)
    stored, dtype = array, "<f8"
    if decimals is not None:
        stored = np.rint(array * 10.0**decimals)
        assert (stored / 10.0**decimals == array).all()
        dtype = next(kind for kind in ("<i1", "<i2", "<i4") if np.abs(stored).max() <= np.iinfo(kind).max)
    text = base64.b64encode(stored.astype(dtype).tobytes()).decode()
    return {"shape": list(array.shape), "dtype": dtype, "decimals": decimals or 0, "base64": text}


def rows(p: Any, labels: Any, decimals: int | None = None, scale: str = "probabilities") -> dict[str, Any]:
    return {"p": encode(p, decimals), "scale": scale, "labels": "".join(str(int(label)) for label in labels)}


@functools.cache
def data() -> dict[str, Any]:
    """All sets of rows: simulated ones of the reference folder, tables of the literature, and points for maps."""
    c, c2 = (reference.frame(f"estimators/{name}.csv") for name in ("c_binary500", "c2_binary500_ties"))
    b, nine, table1 = (
        reference.frame(f"estimators/{name}.csv") for name in ("b_multi1000", "a2_blog9", "a1_table1_60")
    )
    crowd = reference.frame("estimators/e_votes.csv")
    binary, ties = (reference.frame(f"recalibration/{name}.csv") for name in ("binary", "binary_ties"))
    four, four_test = (reference.frame(f"recalibration/{name}.csv") for name in ("multi4", "multi4_test"))
    g2, g3, g3_calibrated = (reference.frame(f"anchors/synthetic/{n}.csv") for n in ("g2_300", "g3_200", "g3cal_200"))
    smooth = reference.frame("posocco/data/B_3c120.csv")
    columns = reference.columns
    confidences = reference.golden("recalibration/tva.json")["grid"]
    return {
        "binary 500": rows(c["p"], c["y"]),
        "binary 500 rounded": rows(c2["p"], c2["y"], 2),
        "four classes 200": rows(columns(b)[:200], b["y"][:200]),
        "nine rows": rows(columns(nine), nine["y"], 2),
        "sixty rows": rows(columns(table1), table1["y"], 1),
        "votes": {"p": encode(columns(crowd), 2), "scale": "probabilities", "votes": encode(columns(crowd, "v"), 0)},
        "binary 300": rows(binary["score"], binary["y"], 6, "log odds"),
        "binary 200 tenths": rows(ties["p"], ties["y"], 1),
        "four classes 400": rows(columns(four, "z"), four["y"], 6, "log odds"),
        "four classes 6": rows(columns(four_test, "z")[:N_POINTS], np.zeros(N_POINTS), 6, "log odds"),
        "grid": rows(GRID, np.zeros(len(GRID)), 3),
        "grid of confidences": rows(confidences, np.zeros(len(confidences)), 3),
        "binary 300 of R": rows(g2["p"], g2["y"]),
        "three classes 200": rows(columns(g3), g3["y"]),
        "three classes 200 calibrated": rows(columns(g3_calibrated), g3_calibrated["y"]),
        "three classes 120": rows(columns(smooth, "s"), smooth["y"]),
    }


# Cases


def case(
    family: str,
    method: str,
    name: str,
    data: str,
    expected: Mapping[str, float] | Iterable[Any],
    source: str,
    *,
    rtol: float = 1e-10,
    atol: float = 0.0,
    points: str | None = None,
    decimals: int | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """A case: the numbers at these paths of the result, or the predictions of a fitted calibrator at points."""
    values = expected.values() if isinstance(expected, Mapping) else np.ravel(np.asarray(expected, dtype=float))
    made = {
        "family": family,
        "method": method,
        "name": name,
        "data": data,
        "settings": settings,
        "expected": [float(value) if decimals is None else round(float(value), decimals) for value in values],
        "source": source,
    }
    made |= {key: value for key, value in (("rtol", rtol), ("atol", atol)) if value}
    if isinstance(expected, Mapping):
        made["paths"] = list(expected)
    if points is not None:
        made["points"] = points
    return made


@functools.cache
def programs() -> dict[str, str]:
    """Which published program agrees with a reference number of estimators, and up to which difference."""
    table = reference.golden("estimators/crosscheck.json")
    best = {
        key: min((entry for entry in entries if entry.get("agree")), key=lambda entry: entry.get("absdiff", 1.0))
        for key, entries in table.items()
        if any(entry.get("agree") for entry in entries)
    }
    return {key: f"{OWN}; {one['source']} differs by {one.get('absdiff', 0):.0e}" for key, one in best.items()}


def golden(
    method: str, key: str, data: str, path: str = "value", *, name: str = "", tolerance: float = 1e-10, **settings: Any
) -> dict[str, Any]:
    """A case of an estimator from the reference numbers."""
    value, source = reference.estimators()[key]["value"], programs().get(key, OWN)
    shown = name or ", ".join(f"{setting} {one}" for setting, one in settings.items()) or "default settings"
    return case("estimators", method, shown, data, {path: value}, source, rtol=tolerance, **settings)


def estimators() -> list[dict[str, Any]]:
    c, c2, b200, conf = "binary 500", "binary 500 rounded", "four classes 200", {"lens": "confidence"}
    known = reference.estimators()
    cases = [
        golden("ece", "c.ece.ew10", c, bins=10),
        golden("ece", "c.ece.ew15", c, bins=15),
        golden("ece", "c2.ece.em10_mid_ties_together", c2, partition="equal-mass", bins=10),
        golden("ece", "a2.confidence_ece.ew10.right", "nine rows", bins=10, **conf),
        golden("ece", "a1.empirical60_canonical_discrete.tv", "sixty rows", lens="canonical", partition="distinct"),
        golden("mce", "c.mce.ew15", c, bins=15),
        golden("mce", "a2.confidence_mce.ew5.right", "nine rows", bins=5, **conf),
        golden("rmsce", "c.rmsce.ew15", c, bins=15),
        golden("average_ce", "c.ace_netcal_unweighted.ew15", c, bins=15),
        golden("sweep", "c.ece_sweep.em.l2", c),
        golden("debiased_l2", "c2.debiased_l2.unique_values", c2, partition="distinct", form="kumar"),
        golden("debiased_l2", "c.sun_T_mn.m15", c, "parts/squared", bins=15, partition="uniform"),
        golden("debiased_l2", "c.tcal_dpe.m16", c, "parts/squared", bins=16, partition="uniform", form="dpe"),
        golden("ece_linear", "c.ece_c.ew10", c, bins=10),
        golden("ece_linear", "c.ece_ac.em10", c, bins=10, partition="equal-mass"),
        golden("ks", "c.ecce_mad_eq_ks", c),
        golden("ecce_mad", "c2.ecce_mad.tie_blocks", c2),
        golden("ecce_r", "c.ecce_r", c),
        golden("ecce_r", "c2.ecce_r.tie_blocks", c2),
        golden("smece", "c.smece", c, tolerance=1e-5),
        golden("smece", "c.smece_sigma0.05", c, tolerance=1e-5, bandwidth=0.05),
        golden("laplace_kce", "c.laplace_kce_theta1", c),
        golden("mmce", "c.mmce_v_laplace0.4", c),
        golden("mmce", "c.mmce_u2_laplace0.4", c, form="unbiased"),
        golden("interval_ce", "c.rintce_min", c),
        golden("kde_mixnmatch", "c.kde_ece_mixnmatch", c),
        golden("dirichlet_kde", "b200.dirichlet_kde_canonical_L1_pow.bw0.1", b200, bandwidth=0.1),
        golden("dirichlet_kde", "b200.beta_kde_toplabel_L1.bw0.02", b200, bandwidth=0.02, **conf),
        golden("skce", "b200.skce_uq_exp_l2_nu1", b200, bandwidth=1.0),
        golden("skce", "b200.skce_b_exp_l2_nu1", b200, bandwidth=1.0, form="biased"),
        golden("skce", "b200.skce_block20", b200, bandwidth=1.0, form="block", block_size=20),
        golden("entce", "e.entce_mean_abs", "votes"),
        golden("distce", "e.distce_mean", "votes"),
        golden("rankcs", "e.rankcs_tie_tolerant", "votes"),
        golden("brier", "c.brier_binary", c),
        golden("log_loss", "c.logloss_binary", c),
    ]
    cases += [
        case(
            "estimators", "corp", f"decomposition of the {score} score", "binary 300 of R",
            {f"parts/{part}": r[part.upper()] for part in ("mcb", "dsc", "unc")},
            "R 4.2.2, reliabilitydiag 0.2.1.9000", score=ours,
        )
        for score, ours, r in (
            ("Brier", "brier", reference.golden("anchors/golden.json")["r_packages"]["corp"]["g2_300"]["brier"]),
            ("logarithmic", "log_loss", reference.golden("anchors/golden.json")["r_packages"]["corp"]["g2_300"]["log"]),
        )
    ]  # fmt: skip
    r = reference.golden("anchors/golden.json")["r_packages"]["val_prob"]["g2_300"]
    cases += [
        case(
            "estimators", method, "lowess", "binary 300 of R", {"value": r[key]}, "R 4.2.2, rms 6.5-0 val.prob",
            smoother="lowess",
        )
        for method, key in (("ici", "Eavg"), ("e90", "E90"), ("emax", "Emax"))
    ]  # fmt: skip
    cox, program = known["c.cox"]["value"], "R rms val.prob and statsmodels"
    cases += [
        case(
            "estimators",
            "calibration_intercept",
            "slope 1",
            c,
            {"value": cox["citl_intercept"]},
            program,
        ),
        case("estimators", "calibration_slope", "joint", c, {"value": cox["slope"]}, program),
    ]
    kde = reference.golden("posocco/golden.json")["B_3c120"]["classwise"]["ece_kde[silverman]"]
    cases.append(
        case(
            "estimators", "ece_kde", "each class with its own bandwidth", "three classes 120",
            {"value": kde["plain_paper"]}, f"{OWN}, over 20,000 midpoints", rtol=0.0, atol=5e-6, lens="classwise",

        )
    )  # fmt: skip
    return [*cases, *scores(), *plain_formulas(), *intervals()]


def scores() -> list[dict[str, Any]]:
    """Scores by scikit-learn, and by decimal arithmetic."""
    frame = reference.frame("estimators/b_multi1000.csv")
    P, y = reference.columns(frame)[:200], frame["y"][:200].astype(int)
    binary = reference.frame("estimators/c_binary500.csv")
    exact = [[Decimal(value) for value in row] for row in P.tolist()]
    chosen = [row[label] for row, label in zip(exact, y.tolist(), strict=True)]
    norms = [sum(value * value for value in row).sqrt() for row in exact]
    ranked = Decimal(0)
    for row, label in zip(exact, y.tolist(), strict=True):
        for k in range(3):
            ranked += (sum(row[: k + 1]) - (1 if label <= k else 0)) ** 2
    n = len(y)
    values = {
        "brier": sum(
            (value - (k == label)) ** 2
            for row, label in zip(exact, y.tolist(), strict=True)
            for k, value in enumerate(row)
        )
        / n,
        "log_loss": -sum(value.ln() for value in chosen) / n,
        "spherical": 1 - sum(value / norm for value, norm in zip(chosen, norms, strict=True)) / n,
        "rps": ranked / n,
    }
    cases = [
        case("estimators", method, "four classes", "four classes 200", {"value": float(value)}, DECIMALS)
        for method, value in values.items()
    ]
    sk = (("brier", brier_score_loss), ("log_loss", log_loss))
    cases += [
        case(
            "estimators", method, "two classes", "binary 500", {"value": score(binary["y"], binary["p"])}, SKLEARN,

        )
        for method, score in sk
    ]  # fmt: skip
    return cases


def binned_gap(p: Any, y: Any, edges: Any) -> float:
    """The plain ECE of one class, row by row: bins are closed on the right, and the first one also on the left."""
    sums: dict[int, list[float]] = {}
    for score, outcome in zip(p.tolist(), y.tolist(), strict=True):
        b = next(b for b in range(len(edges) - 1) if score <= edges[b + 1])
        one = sums.setdefault(b, [0.0, 0.0])
        one[0] += score
        one[1] += outcome
    return sum(abs(mean - rate) for mean, rate in sums.values()) / len(p)


def plain_formulas() -> list[dict[str, Any]]:
    """Formulas of one line that hardly any program offers, row by row."""
    frame = reference.frame("estimators/b_multi1000.csv")
    P, y = reference.columns(frame)[:200], frame["y"][:200].astype(int)
    binary = reference.frame("estimators/c_binary500.csv")
    p, e = binary["p"], binary["y"]
    confidence, right = P.max(axis=1), P.argmax(axis=1) == y
    order = np.argsort(-confidence)
    risks = np.cumsum(~right[order]) / np.arange(1, 201)
    edges = [i / 15 for i in range(16)]
    classwise = float(np.mean([binned_gap(P[:, k], (y == k).astype(float), edges) for k in range(4)]))
    wrong_side = [1 - s if r else s for s, r in zip(confidence.tolist(), right.tolist(), strict=True)]
    threshold, benefit = 0.2, 0.0
    for score, event in zip(p.tolist(), e.tolist(), strict=True):
        if score >= threshold:
            benefit += event - (1 - event) * threshold / (1 - threshold)
    confident = {True: [], False: []}
    for s, r in zip(confidence.tolist(), right.tolist(), strict=True):
        confident[bool(r)].append(1 - s if r else s)
    ice_right, ice_wrong = (float(np.mean(confident[flag])) for flag in (True, False))
    table = reference.frame("estimators/e_votes.csv")
    Q, V = reference.columns(table), reference.columns(table, "v") / 100
    # Σ (Q − V)² less the variance of the shares of 100 votes (Σ V(1 − V)/99).
    distance = float((((Q - V) ** 2).sum(axis=1) - (V * (1 - V)).sum(axis=1) / 99).mean())
    values: list[tuple[str, str, str, float, dict[str, Any]]] = [
        ("calibration_in_the_large", "default settings", "binary 500", float(e.sum() / 500 - p.sum() / 500), {}),
        ("o_e", "default settings", "binary 500", float(e.sum() / p.sum()), {}),
        ("net_benefit", "threshold 0.2", "binary 500", benefit / 500, {"threshold": threshold}),
        ("sce", "four classes", "four classes 200", classwise, {}),
        ("ice", "confidence", "four classes 200", float(np.mean(wrong_side)), {"lens": "confidence"}),
        ("macroce", "confidence", "four classes 200", (ice_right + ice_wrong) / 2, {"lens": "confidence"}),
        ("aurc", "confidence", "four classes 200", float(risks.mean()), {"lens": "confidence"}),
        ("risk", "the surer half", "four classes 200", float(risks[99]), {"lens": "confidence", "coverage": 0.5}),
        ("human_distance", "votes", "votes", distance, {}),
    ]
    return [
        case("estimators", method, name, rows_of, {"value": value}, OWN, **settings)
        for method, name, rows_of, value, settings in values
    ]


def intervals() -> list[dict[str, Any]]:
    """Confidence intervals: the authors' for the squared error, and the exact one of a share."""
    sun = reference.estimators()["c.sun_ci90_l2.m15"]["value"]
    return [
        case(
            "estimators", "debiased_l2", "90 % interval of Sun et al.", "binary 500",
            {"interval/low": sun[0], "interval/high": sun[1]}, "sylydya/CI-ECE (the authors' code)",
            interval="sun", level=0.9, bins=15, partition="uniform",
        ),
    ]  # fmt: skip


def tests() -> list[dict[str, Any]]:
    known, c = reference.estimators(), "binary 500"
    cox, score = known["c.cox"]["value"], known["c.cox_score_test"]["value"]
    hl, hl_exact = known["c.hosmer_lemeshow.g10"]["value"], known["c.hosmer_lemeshow_exactvar.g10"]["value"]
    z, sun = known["c.spiegelhalter"]["value"], known["c.sun_null_z.m15"]
    anchors = reference.golden("anchors/golden.json")
    giviti, kernel = anchors["r_packages"]["giviti"]["g2_300"], anchors["kernel_and_ece"]["g3_200"]
    block = known["b200.skce_block20"]
    at = reference.frame("anchors/synthetic/g3_ucme_locations.csv")
    locations = [reference.columns(at, "t").tolist(), at["y"].astype(int).tolist()]
    asymptotic = {"null": "asymptotic"}
    pair = lambda statistic, pvalue: {"statistic": statistic, "pvalue": pvalue}
    exact = known["a2.exact_null_pvalue_fixed_scores.confidence_ece.ew5"]["value"]
    mcllo = reference.golden("recalibration/mcllo.json")["base0"]
    R = "R 4.2.2"
    cases = [
        ("spiegelhalter", "z", c, pair(z["z"], z["p_two_sided"]), f"{R}, rms val.prob", asymptotic),
        ("cox", "joint", c, pair(cox["lrt"], cox["p_df2"]), f"{R}, rms val.prob and statsmodels", asymptotic),
        ("cox", "score form", c, pair(score["stat"], score["p_df2"]), OWN, {"form": "score"} | asymptotic),
        ("hosmer_lemeshow", "ten groups", c, pair(hl["stat"], hl["p_df_g"]), f"{R}, generalhoslem", asymptotic),
        ("hosmer_lemeshow", "exact variances", c, pair(hl_exact["stat"], hl_exact["p"]), OWN,
         {"form": "exact"} | asymptotic),
        ("ecce", "range", c, {"pvalue": known["c.ecce_r_pvalue"]["value"]}, "ecevecce (the authors' code)", asymptotic),
        ("ks", "from below", c, {"pvalue": known["c.ecce_mad_pvalue"]["value"]}, "ecevecce (the authors' code)",
         {"start": "below"} | asymptotic),
        ("debiased_l2", "15 bins", c, pair(sun["value"], sun["p_normal"]), OWN,
         {"partition": "uniform", "bins": 15} | asymptotic),
        ("giviti", "two classes", "binary 300 of R", pair(giviti["stat"], giviti["p"]), f"{R}, givitiR", asymptotic),
        ("skce", "blocks of 20", "four classes 200", pair(block["z"], block["p_value"]), OWN,
         {"null": "block", "block_size": 20, "bandwidth": 1.0}),
        ("skce", "distribution-free", "three classes 200",
         {"pvalue": kernel["skce"]["exp_euclid"]["distribution_free_p_unbiased"]},
         "the formulas of CalibrationTests.jl", {"null": "distribution-free", "bandwidth": 1.0}),
        ("cme", "five locations", "three classes 200",
         pair(kernel["ucme"]["exp_euclid"]["Q"], kernel["ucme"]["exp_euclid"]["pvalue_chi2"]),
         "the formulas of CalibrationTests.jl", {"locations": locations, "kernel": "exponential", "bandwidth": 1.0}
         | asymptotic),
        ("consistency", "all labelings", "nine rows", {"pvalue": exact}, OWN,
         {"lens": "confidence", "bins": 5, "redraw": "all"}),
        ("mcllo", "likelihood ratio", "four classes 400", pair(mcllo["lrt"], mcllo["p_lrt"]), "SciPy's BFGS",
         {"baseline": 0} | asymptotic),
    ]  # fmt: skip
    loose = {"mcllo": 1e-6, "giviti": 1e-9}
    return [
        case("tests", method, name, rows_of, expected, source, rtol=loose.get(method, 1e-9), **settings)
        for method, name, rows_of, expected, source, settings in cases
    ]


def calibrators() -> list[dict[str, Any]]:
    def known(name: str) -> Any:
        return reference.golden(f"recalibration/{name}.json")

    two, tenths, four, grid, six = (
        "binary 300", "binary 200 tenths", "four classes 400", "grid", "four classes 6",
    )  # fmt: skip
    llo, histogram = known("llo_boldness"), known("histogram")
    bold = llo["boldness"]["0.95"]
    odds = [bold["delta"] * (p / (1 - p)) ** bold["gamma"] for p in GRID]
    cases: list[tuple[str, str, str, str, Any, str, dict[str, Any]]] = [
        ("platt", "smoothed", two, grid, known("platt")["score_smoothed"]["pred_grid"],
         "scikit-learn _SigmoidCalibration", {}),
        ("platt", "maximum likelihood", two, grid, known("platt")["score_plain"]["pred_grid"],
         "scikit-learn LogisticRegression", {"smooth": False}),
        ("beta", "three parameters", two, grid, known("beta")["abm"]["pred_grid"],
         f"{OWN}; betacal 1.1.0 within 6e-5", {}),
        ("isotonic", "lines", two, grid, known("isotonic")["binary"]["pred_linear"],
         "scikit-learn IsotonicRegression", {}),
        ("isotonic", "ties", tenths, grid, known("isotonic")["ties"]["pred_linear"],
         "scikit-learn IsotonicRegression", {}),
        ("isotonic", "four classes", four, six, known("isotonic_ovr")["pred"],
         "scikit-learn CalibratedClassifierCV", {}),
        ("centered_isotonic", "ties", tenths, grid, known("cir")["ties"]["pred_grid"], "cir_model 0.2.0", {}),
        ("venn_abers", "two classes", two, grid, known("venn_abers")["merged"], "venn-abers 1.5.4", {}),
        ("bbq", "two classes", two, grid, known("bbq")["pred_grid"], f"{OWN}; its scores by the authors' program", {}),
        ("enir", "two classes", two, grid, known("enir")["binary"]["pred_grid"], "R, the authors' package", {}),
        ("scaling_binning", "ten bins", two, grid, known("scaling_binning")["pred_grid"],
         f"{OWN}; uncertainty-calibration 0.1.4 within 4e-5", {"bins": 10}),
        ("llo", "two classes", two, grid, llo["pred_grid"], f"{OWN}; R BRcal within 1e-9", {}),
        ("boldness", "95 %", two, grid, [one / (1 + one) for one in odds], f"{OWN}; R BRcal within 6e-5",
         {"posterior": 0.95}),
        ("temperature", "four classes", four, six, known("temperature")["pred"],
         "dirichletcal; scikit-learn and probmetrics within 5e-9", {}),
        ("ensemble_temperature", "four classes", four, six, known("ets")["ce"]["pred"],
         "Mix-n-Match (the authors' code) within 5e-7", {}),
        ("bias_corrected_temperature", "four classes", four, six, known("bias_corrected_ts")["pred"], OWN, {}),
        ("vector", "logarithms", four, six, known("vector_scaling")["logp"]["pred"], "dirichletcal", {"penalty": 0}),
        ("dirichlet", "ridge", four, six, known("matrix_dirichlet")["dirichlet_logp_l2_0.001"]["pred"], "dirichletcal",
         {"penalty": 0.001, "shrink": "l2", "target": "zero", "min_prob": 1e-30}),
        ("structured", "matrix", four, six, known("structured_scaling")["sms"]["pred"],
         f"{OWN}; probmetrics 1.3.0 within 4e-6", {"form": "matrix"}),
        ("structured", "vector", four, six, known("structured_scaling")["svs"]["pred"],
         f"{OWN}; probmetrics 1.3.0 within 2e-6", {"form": "vector"}),
        ("irm", "four classes", four, six, known("irm_irova")["irm_pred"], "Mix-n-Match (the authors' code)", {}),
        ("irova_ts", "four classes", four, six, known("irm_irova")["irova_ts_pred"],
         "Mix-n-Match (the authors' code)", {}),
        ("mcllo", "baseline 0", four, six, known("mcllo")["base0"]["pred"], "SciPy's BFGS", {"baseline": 0}),
        ("kernel", "two classes", two, grid, known("kde_recal")["silverman_09"]["pred_grid"],
         "SciPy gaussian_kde with reflection",
         {"scale": "probability", "monotone": False, "bandwidth": known("kde_recal")["silverman_09"]["h"]}),
        ("histogram", "ten bins", two, grid, histogram["width10"]["pred_grid"], "netcal 1.4.0", {"bins": 10}),
        ("histogram", "bins of equal mass", two, grid, histogram["mass10"]["pred_grid"],
         "uncertainty-calibration 0.1.4", {"bins": 10, "partition": "equal-mass"}),
    ]  # fmt: skip
    flat = {"boldness": 1e-6, "mcllo": 1e-7}  # optima whose parameters the other program finds less precisely
    return [
        case(
            "calibrators", method, name, rows_of, expected[:N_POINTS] if points == six else expected, source,
            rtol=0.0, decimals=10, atol=flat.get(method, 2e-8), points=points, **settings,
        )
        for method, name, rows_of, points, expected, source, settings in cases
    ]  # fmt: skip


def generate() -> dict[str, Any]:
    """What the file contains."""
    cases = [*estimators(), *tests(), *calibrators()]
    sources = list(dict.fromkeys(one["source"] for one in cases))
    for one in cases:
        one["source"] = sources.index(one["source"])
    used = {one[key] for one in cases for key in ("data", "points") if key in one}
    found = find_claims()
    return {
        "schema": SCHEMA,
        "sources": sources,
        "data": {name: stored for name, stored in data().items() if name in used},
        "cases": cases,
        **found,
    }


def format_lines(made: Mapping[str, Any]) -> str:
    """The content of the file as JSON, with a line for each case, claim, and set of rows."""
    dump = functools.partial(json.dumps, ensure_ascii=False, separators=(",", ":"))
    parts = []
    for key, value in made.items():
        if isinstance(value, dict):
            text = "{\n" + ",\n".join(f"{dump(name)}:{dump(one)}" for name, one in value.items()) + "\n}"
        elif isinstance(value, list):
            text = "[\n" + ",\n".join(map(dump, value)) + "\n]"
        else:
            text = dump(value)
        parts.append(f"{dump(key)}:{text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def write(path: Path = FILE) -> None:
    """Write the file, which must be small."""
    text = format_lines(generate())
    size = len(text.encode())
    assert size <= MAX_BYTES, f"{size} bytes"
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
