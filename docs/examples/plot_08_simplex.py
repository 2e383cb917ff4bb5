"""
Is the whole probability vector calibrated?
===========================================

With three outcomes, predictions are points of a triangle. Errors of the whole vector can cancel in the confidence and
in every single class.
"""

# %%
# The observed frequencies are rotated around the center of the triangle.
import numpy as np

import trueodds as to

rng = np.random.default_rng(0)
prob = rng.dirichlet([1.5, 1.5, 1.5], 3000)
true_prob = 0.75 * prob + 0.25 * np.roll(prob, 1, axis=1)
label = (true_prob.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
preds = to.Predictions(np.array(["win", "tie", "loss"])[label], prob, classes=["win", "tie", "loss"])

print(to.test(preds, "skce"))

# %%
# Arrows lead from the mean prediction of a cell to the observed frequencies.
diagram = to.draw(preds, "simplex")
print(diagram.finding)
