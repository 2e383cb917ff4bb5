"""Registry of the diagrams by name; each diagram's module is imported on first use."""

from trueodds.core.registry import Registry

DIAGRAMS = Registry(
    "diagram",
    {
        "reliability": "trueodds.diagrams.reliability.compute:Reliability",
        "reliability_curve": "trueodds.diagrams.reliability_curve.compute:ReliabilityCurve",
        "corp": "trueodds.diagrams.corp.compute:Corp",
        "calibration_belt": "trueodds.diagrams.calibration_belt.compute:CalibrationBelt",
        "cumulative": "trueodds.diagrams.cumulative.compute:Cumulative",
        "confidence_histogram": "trueodds.diagrams.confidence_histogram.compute:ConfidenceHistogram",
        "selective_risk": "trueodds.diagrams.selective_risk.compute:RiskCoverage",
        "training": "trueodds.diagrams.training.compute:Training",
        "recalibration_lines": "trueodds.diagrams.recalibration_lines.compute:RecalibrationLines",
        "mcllo_parameters": "trueodds.diagrams.mcllo_parameters.compute:MclloParameters",
        "llo_posterior": "trueodds.diagrams.llo_posterior.compute:LloPosterior",
        "simplex": "trueodds.diagrams.simplex.compute:Simplex",
        "tetrahedron": "trueodds.diagrams.tetrahedron.compute:Tetrahedron",
        "murphy": "trueodds.diagrams.murphy.compute:Murphy",
        "decision_curve": "trueodds.diagrams.decision_curve.compute:DecisionCurve",
        "comparison": "trueodds.diagrams.comparison.compute:Comparison",
    },
)

DIAGRAMS.publish(__name__)
