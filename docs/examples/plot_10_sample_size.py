"""
How many rows are needed?
=========================

``to.power`` simulates labels to find out how many rows a test needs to detect an error of a given size.
"""

# %%
# The predictions of a pilot study with 500 rows. How many rows detect an error of 5 percentage points?
import matplotlib.pyplot as plt
import numpy as np

import trueodds as to

rng = np.random.default_rng(0)
prob = rng.beta(2, 3, 500)
preds = to.Predictions((rng.random(500) < prob).astype(int), prob)
print(to.power(preds, "spiegelhalter", effect=0.05))

# %%
# The power for other numbers of rows:
sizes = [100, 250, 500, 750]
results = [to.power(preds, "spiegelhalter", effect=0.05, n=n) for n in sizes]

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.plot(sizes, [result.power for result in results], "o-")
ax.axhline(0.8, color="gray", linestyle="--")
ax.set(xlabel="rows", ylabel="power", ylim=(0, 1))
