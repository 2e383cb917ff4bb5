# Written by `python -m tests.api.test_public_names`, for type checkers and editors.
from trueodds.core.registry import Registry as Registry
from trueodds.hypotests.bins import BinByBin as BinByBin
from trueodds.hypotests.cme import MeanEmbedding as MeanEmbedding
from trueodds.hypotests.consistency import Consistency as Consistency
from trueodds.hypotests.cox import Cox as Cox
from trueodds.hypotests.cross_fitted import CrossFittedTest as CrossFittedTest
from trueodds.hypotests.cross_fitted import DecisionRegretTest as DecisionRegretTest
from trueodds.hypotests.cumulative import ECCE as ECCE
from trueodds.hypotests.cumulative import KS as KS
from trueodds.hypotests.debiased_l2 import DebiasedL2Test as DebiasedL2Test
from trueodds.hypotests.giviti import GiViTI as GiViTI
from trueodds.hypotests.hosmer_lemeshow import HosmerLemeshow as HosmerLemeshow
from trueodds.hypotests.mcllo import Mcllo as Mcllo
from trueodds.hypotests.omnibus import Omnibus as Omnibus
from trueodds.hypotests.skce import KernelTest as KernelTest
from trueodds.hypotests.spiegelhalter import Score as Score
from trueodds.hypotests.spiegelhalter import Spiegelhalter as Spiegelhalter
from trueodds.hypotests.tcal import TCal as TCal

TESTS: Registry
DEFAULT: str
bins = BinByBin
cme = MeanEmbedding
consistency = Consistency
cox = Cox
cross_fitted = CrossFittedTest
debiased_l2 = DebiasedL2Test
decision_regret = DecisionRegretTest
ecce = ECCE
giviti = GiViTI
hosmer_lemeshow = HosmerLemeshow
ks = KS
mcllo = Mcllo
omnibus = Omnibus
score = Score
skce = KernelTest
spiegelhalter = Spiegelhalter
tcal = TCal
