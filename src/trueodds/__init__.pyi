# The public names, as type checkers and editors see them; __init__.py loads each on first use.
from . import calibrators as calibrators
from . import diagrams as diagrams
from . import estimators as estimators
from . import hypotests as tests
from .api.by_group import by_group as by_group
from .api.compare import compare as compare
from .api.displays import CalibrationBeltDisplay as CalibrationBeltDisplay
from .api.displays import ComparisonDisplay as ComparisonDisplay
from .api.displays import ConfidenceHistogramDisplay as ConfidenceHistogramDisplay
from .api.displays import CorpDisplay as CorpDisplay
from .api.displays import CumulativeDisplay as CumulativeDisplay
from .api.displays import LloPosteriorDisplay as LloPosteriorDisplay
from .api.displays import MclloParametersDisplay as MclloParametersDisplay
from .api.displays import MurphyDisplay as MurphyDisplay
from .api.displays import RecalibrationLinesDisplay as RecalibrationLinesDisplay
from .api.displays import ReliabilityCurveDisplay as ReliabilityCurveDisplay
from .api.displays import ReliabilityDisplay as ReliabilityDisplay
from .api.displays import SelectiveRiskDisplay as SelectiveRiskDisplay
from .api.displays import SimplexDisplay as SimplexDisplay
from .api.displays import TetrahedronDisplay as TetrahedronDisplay
from .api.displays import TrainingDisplay as TrainingDisplay
from .api.draw import draw as draw
from .api.fit import fit as fit
from .api.fit import load as load
from .api.measure import measure as measure
from .api.power import power as power
from .api.scorer import scorer as scorer
from .api.tally import tally as tally
from .api.test import test as test
from .core.errors import InputError as InputError
from .core.errors import Note as Note
from .data.predictions import Predictions as Predictions
from .io.answers import read_answers as read_answers
from .io.read import read as read
from .reports.audit import audit as audit

__version__: str
