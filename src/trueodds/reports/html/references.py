"""Bibliography of an audit: the papers that its methods paragraph cites, by key."""

from __future__ import annotations

REFERENCES = {
    "alexandari2020": "Alexandari, Kundaje & Shrikumar (2020). Maximum likelihood with bias-corrected calibration is"
    " hard-to-beat at label shift adaptation. ICML.",
    "austin2019": "Austin & Steyerberg (2019). The Integrated Calibration Index (ICI) and related metrics for"
    " quantifying the calibration of logistic regression models. Statistics in Medicine 38.",
    "bayle2020": "Bayle, Bayle, Janson & Mackey (2020). Cross-validation confidence intervals for test error. NeurIPS.",
    "breiman1984": "Breiman, Friedman, Olshen & Stone (1984). Classification and Regression Trees. Wadsworth.",
    "brocker2007": "Bröcker & Smith (2007). Increasing the reliability of reliability diagrams. Weather and Forecasting"
    " 22.",
    "cox1958": "Cox (1958). Two further applications of a model for binary regression. Biometrika 45.",
    "delong1988": "DeLong, DeLong & Clarke-Pearson (1988). Comparing the areas under two or more correlated receiver"
    " operating characteristic curves: a nonparametric approach. Biometrics 44.",
    "efron1987": "Efron (1987). Better bootstrap confidence intervals. Journal of the American Statistical Association"
    " 82.",
    "good1958": "Good (1958). Significance tests in parallel and in series. Journal of the American Statistical"
    " Association 53.",
    "guo2017": "Guo, Pleiss, Sun & Weinberger (2017). On calibration of modern neural networks. ICML.",
    "holm1979": "Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of"
    " Statistics 6.",
    "kull2017": "Kull, Silva Filho & Flach (2017). Beta calibration: a well-founded and easily implemented improvement"
    " on logistic calibration for binary classifiers. AISTATS.",
    "kull2019": "Kull, Perelló-Nieto, Kängsepp, Silva Filho, Song & Flach (2019). Beyond temperature scaling: obtaining"
    " well-calibrated multi-class probabilities with Dirichlet calibration. NeurIPS.",
    "lee2023": "Lee, Huang, Hassani & Dobriban (2023). T-Cal: an optimal test for the calibration of predictive models."
    " Journal of Machine Learning Research 24.",
    "lucena2018": "Lucena (2018). Spline-based probability calibration. arXiv:1809.07751.",
    "naeini2015": "Naeini, Cooper & Hauskrecht (2015). Obtaining well calibrated probabilities using Bayesian binning."
    " AAAI.",
    "oron2017": "Oron & Flournoy (2017). Centered isotonic regression: point and interval estimation for dose-response"
    " studies. Statistics in Biopharmaceutical Research 9.",
    "platt1999": "Platt (1999). Probabilistic outputs for support vector machines and comparisons to regularized"
    " likelihood methods. Advances in Large Margin Classifiers.",
    "stone1974": "Stone (1974). Cross-validatory choice and assessment of statistical predictions. Journal of the Royal"
    " Statistical Society B 36.",
    "turner2014": "Turner, Steyvers, Merkle, Budescu & Wallsten (2014). Forecast aggregation via recalibration. Machine"
    " Learning 95.",
    "vaicenavicius2019": "Vaicenavicius, Widmann, Andersson, Lindsten, Roll & Schön (2019). Evaluating model"
    " calibration in classification. AISTATS.",
    "vovk2014": "Vovk & Petej (2014). Venn–Abers predictors. UAI.",
    "westfall1993": "Westfall & Young (1993). Resampling-Based Multiple Testing. Wiley.",
    "wilson2019": "Wilson (2019). The harmonic mean p-value for combining dependent tests. PNAS 116.",
    "zadrozny2001": "Zadrozny & Elkan (2001). Obtaining calibrated probability estimates from decision trees and naive"
    " Bayesian classifiers. ICML.",
    "zadrozny2002": "Zadrozny & Elkan (2002). Transforming classifier scores into accurate multiclass probability"
    " estimates. KDD.",
    "zhang2020": "Zhang, Kailkhura & Han (2020). Mix-n-Match: ensemble and compositional methods for uncertainty"
    " calibration in deep learning. ICML.",
}

# The key of the paper that introduced each calibrator, by its name.
CALIBRATOR_REFERENCES = {
    "beta": "kull2017",
    "bias_corrected_temperature": "alexandari2020",
    "centered_isotonic": "oron2017",
    "dirichlet": "kull2019",
    "histogram": "zadrozny2001",
    "irm": "zhang2020",
    "isotonic": "zadrozny2002",
    "llo": "turner2014",
    "matrix": "guo2017",
    "platt": "platt1999",
    "spline": "lucena2018",
    "temperature": "guo2017",
    "vector": "guo2017",
    "venn_abers": "vovk2014",
}


def cite(key: str) -> str:
    """Return authors and year of a reference, as a text cites it.

    >>> cite("holm1979"), cite("guo2017"), cite("vovk2014")
    ('Holm 1979', 'Guo et al. 2017', 'Vovk & Petej 2014')
    """
    authors, _, year_and_title = REFERENCES[key].partition(" (")
    names = authors.replace(" & ", ", ").split(", ")
    return f"{authors if len(names) < 3 else names[0] + ' et al.'} {year_and_title[:4]}"
