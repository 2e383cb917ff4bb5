"""
Which classes are miscalibrated?
================================

The confidence of the predicted class can be calibrated although single classes are not. The lens ``classwise`` examines
each class against the rest.
"""

# %%
# The model predicts the first class too often, and the last too rarely.
import numpy as np

import trueodds as to

rng = np.random.default_rng(0)
truth = rng.dirichlet([2, 2, 2, 2], 3000)
label = (truth.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
shifted = truth * [2, 1, 1, 0.5]
classes = ["cat", "dog", "horse", "ship"]
preds = to.Predictions(np.array(classes)[label], shifted / shifted.sum(axis=1, keepdims=True), classes=classes)

estimate = to.measure(preds, "ece", lens="classwise")
print(estimate)
print(estimate.parts)

# %%
# One panel per class, in decreasing order of the error:
diagram = to.draw(preds, "reliability", lens="classwise")
print(diagram.finding)

# %%
# Shift and slope of each class against the last one:
parameters = to.draw(preds, "mcllo_parameters")
print(parameters.finding)
