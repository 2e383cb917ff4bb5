"""Registry of the diagrams by name; each diagram's module is imported on first use."""

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
        "decision_curve": "trueodds.diagrams.decision_curve:DecisionCurve",
        "comparison": "trueodds.diagrams.comparison:Comparison",
        "groups": "trueodds.diagrams.groups:ForestPlot",
        "monitor": "trueodds.diagrams.monitor:MonitorStrips",
    },
    synonyms={
        "reliability": (
            "reliability diagram", "reliability plot", "calibration curve", "calibration plot", "calibration diagram",
        ),
        "reliability_curve": ("loess", "lowess", "smooth calibration curve", "flexible calibration curve"),
        "corp": ("corp diagram", "corp reliability diagram"),
        "murphy": ("murphy diagram",),
        "decision_curve": ("decision curve analysis", "dca", "net benefit curve", "net benefit"),
        "calibration_belt": ("belt", "giviti belt"),
        "confidence_histogram": ("prediction histogram", "histogram", "hist"),
        "selective_risk": ("aurc", "risk coverage", "risk coverage curve", "accuracy rejection curve"),
    },
)  # fmt: skip

MONITOR_DIAGRAMS = ("monitor",)  # those of a monitor; all others are of predictions
PREDICTION_DIAGRAMS = tuple(name for name in DIAGRAMS.names() if name not in MONITOR_DIAGRAMS)

DIAGRAMS.publish(__name__)
