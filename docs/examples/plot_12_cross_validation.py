"""
Is a model calibrated across the folds of a cross-validation?
=============================================================

``ReliabilityCurveDisplay.from_cv_results`` draws the curve of all out-of-fold predictions with its band, and the curve
of each fold.
"""

# %%
# Each row is predicted by the classifier that was not fitted to it.
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_validate

import trueodds as to

X, y = make_classification(1500, n_informative=3, flip_y=0.3, random_state=0)
forest = RandomForestClassifier(random_state=0)
results = cross_validate(forest, X, y, scoring=to.scorer("ece"), return_estimator=True, return_indices=True)

display = to.ReliabilityCurveDisplay.from_cv_results(results, X, y)
diagram = display.diagram
print(diagram.finding)
print(f"ECE of the folds: {(-results['test_score']).round(3)}")

# %%
# The curve is the mean of the curves of the folds, weighted by the rows near each score. Its band describes the noise
# of the rows, and the thin lines how much the folds differ: each is as noisy as 300 rows.
