"""Where: one line per diagram; a module is loaded when its member is first asked for."""

from trueodds.core.registry import Registry

DIAGRAMS = Registry(
    "diagram",
    {
        "reliability": "trueodds.diagrams.reliability:Reliability",
        "confidence_histogram": "trueodds.diagrams.confidence_histogram:ConfidenceHistogram",
    },
)
