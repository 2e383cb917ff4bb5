"""
Which groups of rows are miscalibrated?
=======================================

A model can be calibrated overall and miscalibrated in groups whose errors cancel. ``to.by_group`` examines all groups
with one family-wise test.
"""

# %%
# Two hospitals: probabilities are too low in one, too high in the other.
import numpy as np

import trueodds as to

rng = np.random.default_rng(0)
site = rng.choice(["north", "south"], 3000)
logit = rng.normal(-0.5, 1.2, 3000)
true_logit = logit + np.where(site == "north", 0.4, -0.4)
outcome = (rng.random(3000) < 1 / (1 + np.exp(-true_logit))).astype(int)
prob = 1 / (1 + np.exp(-logit))
preds = to.Predictions(outcome, prob, group={"site": site})

print(to.measure(preds, "calibration_in_the_large"))

# %%
# The groups:
print(to.by_group(preds))

# %%
# Cumulative residuals of one of them:
diagram = to.draw(preds[site == "north"], "cumulative")
print(diagram.finding)
