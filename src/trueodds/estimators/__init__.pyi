# Written by `python -m tests.api.test_public_names`, for type checkers and editors.
from trueodds.core.registry import Registry as Registry
from trueodds.estimators.adaptive import AdaptiveError as AdaptiveError
from trueodds.estimators.adaptive import ThresholdedError as ThresholdedError
from trueodds.estimators.binned import AverageError as AverageError
from trueodds.estimators.binned import BinnedError as BinnedError
from trueodds.estimators.binned import MaxError as MaxError
from trueodds.estimators.binned import RootMeanSquareError as RootMeanSquareError
from trueodds.estimators.binned import StaticError as StaticError
from trueodds.estimators.calibration_coefficients import CalibrationIntercept as CalibrationIntercept
from trueodds.estimators.calibration_coefficients import CalibrationSlope as CalibrationSlope
from trueodds.estimators.corp import Corp as Corp
from trueodds.estimators.cross_fitted import CrossFitted as CrossFitted
from trueodds.estimators.cumulative import CumulativeError as CumulativeError
from trueodds.estimators.cumulative import CumulativeRange as CumulativeRange
from trueodds.estimators.cumulative import KolmogorovSmirnov as KolmogorovSmirnov
from trueodds.estimators.debiased import DebiasedL1 as DebiasedL1
from trueodds.estimators.debiased import DebiasedL2 as DebiasedL2
from trueodds.estimators.decision_regret import DecisionRegret as DecisionRegret
from trueodds.estimators.dirichlet_kde import DirichletError as DirichletError
from trueodds.estimators.ece_kde import KernelDensityError as KernelDensityError
from trueodds.estimators.human_calibration import DistributionError as DistributionError
from trueodds.estimators.human_calibration import EntropyError as EntropyError
from trueodds.estimators.human_calibration import HumanDistance as HumanDistance
from trueodds.estimators.human_calibration import RankAgreement as RankAgreement
from trueodds.estimators.instance_level import InstanceError as InstanceError
from trueodds.estimators.instance_level import MacroError as MacroError
from trueodds.estimators.integrated_calibration_index import IntegratedIndex as IntegratedIndex
from trueodds.estimators.integrated_calibration_index import MedianDistance as MedianDistance
from trueodds.estimators.integrated_calibration_index import NinthDecile as NinthDecile
from trueodds.estimators.integrated_calibration_index import WorstDistance as WorstDistance
from trueodds.estimators.interval_error import IntervalError as IntervalError
from trueodds.estimators.kde_mixnmatch import MixNMatchError as MixNMatchError
from trueodds.estimators.laplace_kernel import LaplaceError as LaplaceError
from trueodds.estimators.laplace_kernel import MeanEmbeddingError as MeanEmbeddingError
from trueodds.estimators.linear_binning import LinearBinError as LinearBinError
from trueodds.estimators.observed_expected import CalibrationInTheLarge as CalibrationInTheLarge
from trueodds.estimators.observed_expected import ObservedExpected as ObservedExpected
from trueodds.estimators.proper_scores import Brier as Brier
from trueodds.estimators.proper_scores import LogLoss as LogLoss
from trueodds.estimators.proper_scores import RankedProbability as RankedProbability
from trueodds.estimators.proper_scores import Spherical as Spherical
from trueodds.estimators.recalibrated import RecalibratedError as RecalibratedError
from trueodds.estimators.recalibrated import RecalibratedLogLoss as RecalibratedLogLoss
from trueodds.estimators.selective_prediction import AnswerOrAbstain as AnswerOrAbstain
from trueodds.estimators.selective_prediction import AreaUnderRiskCoverage as AreaUnderRiskCoverage
from trueodds.estimators.selective_prediction import RiskAtCoverage as RiskAtCoverage
from trueodds.estimators.skce import SquaredKernelError as SquaredKernelError
from trueodds.estimators.smooth_ece import SmoothError as SmoothError
from trueodds.estimators.sweep import SweepError as SweepError
from trueodds.estimators.threshold_scores import MurphyLoss as MurphyLoss
from trueodds.estimators.threshold_scores import NetBenefit as NetBenefit
from trueodds.estimators.truthful import Truthful as Truthful
from trueodds.estimators.utility import UtilityError as UtilityError

ESTIMATORS: Registry
ace = AdaptiveError
aurc = AreaUnderRiskCoverage
average_ce = AverageError
bas = AnswerOrAbstain
brier = Brier
calibration_in_the_large = CalibrationInTheLarge
calibration_intercept = CalibrationIntercept
calibration_slope = CalibrationSlope
corp = Corp
cross_fitted = CrossFitted
debiased_l1 = DebiasedL1
debiased_l2 = DebiasedL2
decision_regret = DecisionRegret
dirichlet_kde = DirichletError
distce = DistributionError
e50 = MedianDistance
e90 = NinthDecile
ecce_mad = CumulativeError
ecce_r = CumulativeRange
ece = BinnedError
ece_kde = KernelDensityError
ece_linear = LinearBinError
ece_recalibrated = RecalibratedError
emax = WorstDistance
entce = EntropyError
human_distance = HumanDistance
ice = InstanceError
ici = IntegratedIndex
interval_ce = IntervalError
kde_mixnmatch = MixNMatchError
ks = KolmogorovSmirnov
laplace_kce = LaplaceError
log_loss = LogLoss
log_loss_recalibrated = RecalibratedLogLoss
macroce = MacroError
mce = MaxError
mmce = MeanEmbeddingError
murphy_loss = MurphyLoss
net_benefit = NetBenefit
o_e = ObservedExpected
rankcs = RankAgreement
risk = RiskAtCoverage
rmsce = RootMeanSquareError
rps = RankedProbability
sce = StaticError
skce = SquaredKernelError
smece = SmoothError
spherical = Spherical
sweep = SweepError
tace = ThresholdedError
truthful = Truthful
utility = UtilityError
