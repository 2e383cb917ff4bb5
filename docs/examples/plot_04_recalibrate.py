"""
Which recalibration helps?
==========================

``to.fit`` chooses a method, and confirms with rows that were used neither to fit nor to choose it that the log loss
decreases.
"""

# %%
# Three classes, overconfident predictions.
import numpy as np

import trueodds as to

rng = np.random.default_rng(0)
truth = rng.dirichlet([1, 1, 1], 2000)
label = (truth.cumsum(axis=1) > rng.random((2000, 1))).argmax(axis=1)
sharp = truth**2 / (truth**2).sum(axis=1, keepdims=True)
preds = to.Predictions(label, sharp)

calibrator = to.fit(preds[:1000], "auto")
print(calibrator)

# %%
# The other half of the rows shows the effect on new data.
held_out = preds[1000:]
recalibrated = calibrator.recalibrate(held_out)
for name, rows in {"before": held_out, "after": recalibrated}.items():
    print(f"{name:7}", to.measure(rows, "log_loss"))

# %%
# Both models in one diagram, with tests of the differences.
diagram = to.draw({"before": held_out, "after": recalibrated}, "comparison")
print(diagram.finding)
