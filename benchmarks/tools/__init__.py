"""The tools to compare, one file each; a tool whose import fails is skipped with a message."""

OURS = "trueodds"
LIMIT = "copying"  # not a tool, but the time of accessing the array

# The file of a tool defines DISTRIBUTION, the name for pip; ANSWERS, from a task to the function that prepares its call
# from the arrays; and optionally DIFFERS (why its value is not compared) and TOO_SLOW (jobs to skip).
TOOLS = {
    OURS: "benchmarks.tools.ours",
    LIMIT: "benchmarks.tools.copying",
    "torchmetrics": "benchmarks.tools.torchmetrics",
    "netcal": "benchmarks.tools.netcal",
    "calzone": "benchmarks.tools.calzone",
    "torch-uncertainty": "benchmarks.tools.torch_uncertainty",
    "uncertainty-calibration": "benchmarks.tools.uncertainty_calibration",
    "relplot": "benchmarks.tools.relplot",
    "probmetrics": "benchmarks.tools.probmetrics",
    "probcal": "benchmarks.tools.probcal",
    "mapie": "benchmarks.tools.mapie",
    "scipy": "benchmarks.tools.scipy",
    "scikit-learn": "benchmarks.tools.scikit_learn",
    "pycalib": "benchmarks.tools.pycalib",
    "estimating_eces": "benchmarks.tools.estimating_eces",
}
