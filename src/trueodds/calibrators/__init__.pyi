# Written by `python -m tests.api.test_public_names`, for type checkers and editors.
from typing import Any

from trueodds.calibrators.fitted_calibrator import FittedCalibrator as FittedCalibrator
from trueodds.calibrators.fitted_calibrator import load as load
from trueodds.calibrators.fitting import fit as fit
from trueodds.calibrators.recalibrated_classifier import RecalibratedClassifier as RecalibratedClassifier
from trueodds.calibrators.sklearn import Calibrator as Calibrator
from trueodds.core.registry import Registry

CALIBRATORS: Registry

def class_name(method: str) -> str: ...

class Identity(Calibrator):
    def __init__(self, *, classes: Any = ..., logits: Any = ...) -> None: ...

class Temperature(Calibrator):
    def __init__(self, *, min_prob: Any = ..., classes: Any = ..., logits: Any = ...) -> None: ...

class EnsembleTemperature(Calibrator):
    def __init__(self, *, loss: Any = ..., min_prob: Any = ..., classes: Any = ..., logits: Any = ...) -> None: ...

class TopVsAll(Calibrator):
    def __init__(self, *, calibrator: Any = ..., classes: Any = ..., logits: Any = ...) -> None: ...

class Shift(Calibrator):
    def __init__(self, *, min_prob: Any = ..., classes: Any = ..., logits: Any = ...) -> None: ...

class GroupShift(Calibrator):
    def __init__(
        self,
        *,
        columns: Any = ...,
        crossings: Any = ...,
        confirm: Any = ...,
        alpha: Any = ...,
        min_prob: Any = ...,
        rng: Any = ...,
        classes: Any = ...,
        logits: Any = ...,
    ) -> None: ...

class BiasCorrectedTemperature(Calibrator):
    def __init__(self, *, min_prob: Any = ..., classes: Any = ..., logits: Any = ...) -> None: ...

class LLO(Calibrator):
    def __init__(self, *, min_prob: Any = ..., classes: Any = ..., logits: Any = ...) -> None: ...

class Platt(Calibrator):
    def __init__(
        self, *, on: Any = ..., smooth: Any = ..., min_prob: Any = ..., classes: Any = ..., logits: Any = ...
    ) -> None: ...

class Beta(Calibrator):
    def __init__(
        self, *, parameters: Any = ..., min_prob: Any = ..., classes: Any = ..., logits: Any = ...
    ) -> None: ...

class Boldness(Calibrator):
    def __init__(
        self, *, posterior: Any = ..., prior: Any = ..., min_prob: Any = ..., classes: Any = ..., logits: Any = ...
    ) -> None: ...

class Evidential(Calibrator):
    def __init__(
        self,
        *,
        on: Any = ...,
        output: Any = ...,
        parameters: Any = ...,
        min_prob: Any = ...,
        classes: Any = ...,
        logits: Any = ...,
    ) -> None: ...

class Structured(Calibrator):
    def __init__(
        self, *, form: Any = ..., penalty: Any = ..., min_prob: Any = ..., classes: Any = ..., logits: Any = ...
    ) -> None: ...

class MCLLO(Calibrator):
    def __init__(
        self, *, baseline: Any = ..., penalty: Any = ..., min_prob: Any = ..., classes: Any = ..., logits: Any = ...
    ) -> None: ...

class Vector(Calibrator):
    def __init__(self, *, logits: Any = ..., penalty: Any = ..., min_prob: Any = ..., classes: Any = ...) -> None: ...

class Dirichlet(Calibrator):
    def __init__(
        self,
        *,
        penalty: Any = ...,
        bias_penalty: Any = ...,
        shrink: Any = ...,
        target: Any = ...,
        min_prob: Any = ...,
        classes: Any = ...,
        logits: Any = ...,
    ) -> None: ...

class Matrix(Calibrator):
    def __init__(
        self,
        *,
        penalty: Any = ...,
        bias_penalty: Any = ...,
        shrink: Any = ...,
        target: Any = ...,
        min_prob: Any = ...,
        logits: Any = ...,
        classes: Any = ...,
    ) -> None: ...

class Spline(Calibrator):
    def __init__(
        self,
        *,
        kind: Any = ...,
        knots: Any = ...,
        penalty: Any = ...,
        min_prob: Any = ...,
        classes: Any = ...,
        logits: Any = ...,
    ) -> None: ...

class Kernel(Calibrator):
    def __init__(
        self,
        *,
        bandwidth: Any = ...,
        scale: Any = ...,
        monotone: Any = ...,
        min_prob: Any = ...,
        classes: Any = ...,
        logits: Any = ...,
    ) -> None: ...

class PriorShift(Calibrator):
    def __init__(
        self, *, priors: Any = ..., target: Any = ..., how: Any = ..., classes: Any = ..., logits: Any = ...
    ) -> None: ...

class IRM(Calibrator):
    def __init__(self, *, tilt: Any = ..., classes: Any = ..., logits: Any = ...) -> None: ...

class IROvATS(Calibrator):
    def __init__(self, *, min_prob: Any = ..., classes: Any = ..., logits: Any = ...) -> None: ...

class CenteredIsotonic(Calibrator):
    def __init__(self, *, classes: Any = ..., logits: Any = ...) -> None: ...

class Isotonic(Calibrator):
    def __init__(self, *, between: Any = ..., classes: Any = ..., logits: Any = ...) -> None: ...

class VennAbers(Calibrator):
    def __init__(self, *, multiclass: Any = ..., classes: Any = ..., logits: Any = ...) -> None: ...

class ENIR(Calibrator):
    def __init__(self, *, classes: Any = ..., logits: Any = ...) -> None: ...

class BBQ(Calibrator):
    def __init__(self, *, classes: Any = ..., logits: Any = ...) -> None: ...

class ScalingBinning(Calibrator):
    def __init__(self, *, bins: Any = ..., min_prob: Any = ..., classes: Any = ..., logits: Any = ...) -> None: ...

class Histogram(Calibrator):
    def __init__(self, *, bins: Any = ..., partition: Any = ..., classes: Any = ..., logits: Any = ...) -> None: ...

class SimplexHistogram(Calibrator):
    def __init__(
        self, *, partition: Any = ..., min_size: Any = ..., bins: Any = ..., classes: Any = ..., logits: Any = ...
    ) -> None: ...

class Multicalibrated(Calibrator):
    def __init__(
        self,
        *,
        columns: Any = ...,
        crossings: Any = ...,
        confirm: Any = ...,
        alpha: Any = ...,
        min_prob: Any = ...,
        rng: Any = ...,
        features: Any = ...,
        classes: Any = ...,
        logits: Any = ...,
    ) -> None: ...

class Auto(Calibrator):
    def __init__(
        self,
        *,
        candidates: Any = ...,
        folds: Any = ...,
        alpha: Any = ...,
        rng: Any = ...,
        classes: Any = ...,
        logits: Any = ...,
    ) -> None: ...

identity = Identity
temperature = Temperature
ensemble_temperature = EnsembleTemperature
top_vs_all = TopVsAll
shift = Shift
group_shift = GroupShift
bias_corrected_temperature = BiasCorrectedTemperature
llo = LLO
platt = Platt
beta = Beta
boldness = Boldness
evidential = Evidential
structured = Structured
mcllo = MCLLO
vector = Vector
dirichlet = Dirichlet
matrix = Matrix
spline = Spline
kernel = Kernel
prior_shift = PriorShift
irm = IRM
irova_ts = IROvATS
centered_isotonic = CenteredIsotonic
isotonic = Isotonic
venn_abers = VennAbers
enir = ENIR
bbq = BBQ
scaling_binning = ScalingBinning
histogram = Histogram
simplex_histogram = SimplexHistogram
multicalibrated = Multicalibrated
auto = Auto
