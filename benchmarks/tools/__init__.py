"""Which tools take part? One file each, named here; a file whose import fails is left out of the race with a line."""

OURS = "trueodds"
LIMIT = "copying"  # no tool, but the time that it takes to touch the array at all

# A tool's file gives DISTRIBUTION, the name that pip knows; ANSWERS, from a job's question to what prepares its call
# from the arrays; and may give DIFFERS (why its value at a question is not judged) and TOO_SLOW (jobs it is spared).
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
