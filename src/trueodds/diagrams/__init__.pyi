# Written by `python -m tests.api.test_public_names`, for type checkers and editors.
from trueodds.core.registry import Registry as Registry
from trueodds.diagrams.calibration_belt.compute import CalibrationBelt as CalibrationBelt
from trueodds.diagrams.comparison.compute import Comparison as Comparison
from trueodds.diagrams.confidence_histogram.compute import ConfidenceHistogram as ConfidenceHistogram
from trueodds.diagrams.corp.compute import Corp as Corp
from trueodds.diagrams.cumulative.compute import Cumulative as Cumulative
from trueodds.diagrams.decision_curve.compute import DecisionCurve as DecisionCurve
from trueodds.diagrams.llo_posterior.compute import LloPosterior as LloPosterior
from trueodds.diagrams.mcllo_parameters.compute import MclloParameters as MclloParameters
from trueodds.diagrams.murphy.compute import Murphy as Murphy
from trueodds.diagrams.recalibration_lines.compute import RecalibrationLines as RecalibrationLines
from trueodds.diagrams.reliability.compute import Reliability as Reliability
from trueodds.diagrams.reliability_curve.compute import ReliabilityCurve as ReliabilityCurve
from trueodds.diagrams.selective_risk.compute import RiskCoverage as RiskCoverage
from trueodds.diagrams.simplex.compute import Simplex as Simplex
from trueodds.diagrams.tetrahedron.compute import Tetrahedron as Tetrahedron
from trueodds.diagrams.training.compute import Training as Training

DIAGRAMS: Registry
calibration_belt = CalibrationBelt
comparison = Comparison
confidence_histogram = ConfidenceHistogram
corp = Corp
cumulative = Cumulative
decision_curve = DecisionCurve
llo_posterior = LloPosterior
mcllo_parameters = MclloParameters
murphy = Murphy
recalibration_lines = RecalibrationLines
reliability = Reliability
reliability_curve = ReliabilityCurve
selective_risk = RiskCoverage
simplex = Simplex
tetrahedron = Tetrahedron
training = Training
