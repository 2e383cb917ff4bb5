"""
Which predictions should a person check?
========================================

If only the most confident predictions are used and a person checks the rest, fewer errors remain. The risk-coverage
curve shows how many.
"""

# %%
# Five classes, calibrated predictions.
import numpy as np

import trueodds as to

rng = np.random.default_rng(0)
prob = rng.dirichlet([0.4] * 5, 2000)
label = (prob.cumsum(axis=1) > rng.random((2000, 1))).argmax(axis=1)
preds = to.Predictions(label, prob)

diagram = to.draw(preds, "selective_risk")
print(diagram.finding)

# %%
# Suppose that a wrong prediction costs 1, and a review by a person 0.3. Would decisions based on these probabilities
# gain if the probabilities were recalibrated? No, because they are calibrated already.
cost = [[0 if i == j else 1 for j in range(5)] for i in range(5)] + [[0.3] * 5]
print(to.measure(preds, "decision_regret", cost=cost))
