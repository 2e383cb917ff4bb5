# Written by `python -m tests.api.test_public_names`, for type checkers and editors.
from trueodds.core.registry import Registry as Registry
from trueodds.diagrams.calibration_belt import CalibrationBelt as CalibrationBelt
from trueodds.diagrams.comparison import Comparison as Comparison
from trueodds.diagrams.confidence_histogram import ConfidenceHistogram as ConfidenceHistogram
from trueodds.diagrams.corp import Corp as Corp
from trueodds.diagrams.cumulative import Cumulative as Cumulative
from trueodds.diagrams.decision_curve import DecisionCurve as DecisionCurve
from trueodds.diagrams.groups import ForestPlot as ForestPlot
from trueodds.diagrams.llo_posterior import LloPosterior as LloPosterior
from trueodds.diagrams.mcllo_parameters import MclloParameters as MclloParameters
from trueodds.diagrams.monitor import MonitorStrips as MonitorStrips
from trueodds.diagrams.murphy import Murphy as Murphy
from trueodds.diagrams.recalibration_lines import RecalibrationLines as RecalibrationLines
from trueodds.diagrams.reliability import Reliability as Reliability
from trueodds.diagrams.reliability_curve import ReliabilityCurve as ReliabilityCurve
from trueodds.diagrams.selective_risk import RiskCoverage as RiskCoverage
from trueodds.diagrams.simplex import Simplex as Simplex
from trueodds.diagrams.tetrahedron import Tetrahedron as Tetrahedron
from trueodds.diagrams.training import Training as Training

DIAGRAMS: Registry
MONITOR_DIAGRAMS: tuple[str, ...]
PREDICTION_DIAGRAMS: tuple[str, ...]
calibration_belt = CalibrationBelt
comparison = Comparison
confidence_histogram = ConfidenceHistogram
corp = Corp
cumulative = Cumulative
decision_curve = DecisionCurve
groups = ForestPlot
llo_posterior = LloPosterior
mcllo_parameters = MclloParameters
monitor = MonitorStrips
murphy = Murphy
recalibration_lines = RecalibrationLines
reliability = Reliability
reliability_curve = ReliabilityCurve
selective_risk = RiskCoverage
simplex = Simplex
tetrahedron = Tetrahedron
training = Training
