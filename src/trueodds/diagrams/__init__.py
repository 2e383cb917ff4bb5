"""Where: one line per diagram; a module is loaded when its member is first asked for."""

from trueodds.core.registry import Registry

DIAGRAMS = Registry(
    "diagram",
    {
        "reliability": "trueodds.diagrams.reliability:Reliability",
        "reliability_curve": "trueodds.diagrams.reliability_curve:ReliabilityCurve",
        "corp": "trueodds.diagrams.corp:Corp",
        "calibration_belt": "trueodds.diagrams.calibration_belt:CalibrationBelt",
        "cumulative": "trueodds.diagrams.cumulative:Cumulative",
        "confidence_histogram": "trueodds.diagrams.confidence_histogram:ConfidenceHistogram",
        "selective_risk": "trueodds.diagrams.selective_risk:RiskCoverage",
        "training": "trueodds.diagrams.training:Training",
        "recalibration_lines": "trueodds.diagrams.recalibration_lines:RecalibrationLines",
        "mcllo_parameters": "trueodds.diagrams.mcllo_parameters:MclloParameters",
        "llo_posterior": "trueodds.diagrams.llo_posterior:LloPosterior",
        "simplex": "trueodds.diagrams.simplex:Simplex",
        "tetrahedron": "trueodds.diagrams.tetrahedron:Tetrahedron",
        "murphy": "trueodds.diagrams.murphy:Murphy",
        "comparison": "trueodds.diagrams.comparison:Comparison",
    },
)
