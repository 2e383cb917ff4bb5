"""The tools of the comparison: trueodds, copying an array, and the peers, with a module for the calls of each.

A module defines

- DISTRIBUTION: the name of the package for pip, empty if it has none;
- CALLS_BY_TASK: by task, the function that prepares the call of the tool from the arrays of a job. It returns a
  function without arguments, a `TimedCall`, or several of them by label;
- optionally DIFFERS, by task the reason why its value is not compared, and TOO_SLOW, by job the reason to skip it.

A tool whose module cannot be imported is left out of the comparison.
"""

TRUEODDS = "trueodds"
ARRAY_COPY = "copying"  # not a tool, but the time of reading the array once

# Modules of the tools by name.
TOOLS = {
    TRUEODDS: "benchmarks.peers.tools.trueodds",
    ARRAY_COPY: "benchmarks.peers.tools.array_copy",
    "torchmetrics": "benchmarks.peers.tools.torchmetrics",
    "netcal": "benchmarks.peers.tools.netcal",
    "calzone": "benchmarks.peers.tools.calzone",
    "torch-uncertainty": "benchmarks.peers.tools.torch_uncertainty",
    "uncertainty-calibration": "benchmarks.peers.tools.uncertainty_calibration",
    "relplot": "benchmarks.peers.tools.relplot",
    "probmetrics": "benchmarks.peers.tools.probmetrics",
    "probcal": "benchmarks.peers.tools.probcal",
    "mapie": "benchmarks.peers.tools.mapie",
    "scipy": "benchmarks.peers.tools.scipy",
    "scikit-learn": "benchmarks.peers.tools.scikit_learn",
    "pycalib": "benchmarks.peers.tools.pycalib",
    "estimating_eces": "benchmarks.peers.tools.estimating_eces",
}
