"""
How large is the calibration error?
===================================

An estimate of the calibration error says little without its uncertainty and its noise floor, the value that a
calibrated model would be expected to show on the same rows.
"""

# %%
# The predictions are overconfident: their log odds are 1.5 times too large.
import numpy as np

import trueodds as to

rng = np.random.default_rng(0)
logit = rng.normal(0, 1.5, 1000)
outcome = rng.random(1000) < 1 / (1 + np.exp(-logit))
preds = to.Predictions(outcome.astype(int), 1 / (1 + np.exp(-1.5 * logit)))

estimate = to.measure(preds, "ece")
print(estimate)

# %%
# The interval is far above the noise floor. Estimators without bins agree.
for name in ("smece", "ks", "debiased_l1"):
    print(to.measure(preds, name))

# %%
# The reliability diagram shows where the error lies: predictions near 0 and 1 are too extreme.
diagram = to.draw(preds, "reliability")
print(diagram.finding)
