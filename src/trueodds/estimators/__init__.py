"""How much: one line per estimator; a module is loaded when its member is first asked for."""

from trueodds.core.registry import Registry

ESTIMATORS = Registry(
    "estimator",
    {
        "ece": "trueodds.estimators.binned:BinnedError",
        "mce": "trueodds.estimators.binned:MaxError",
        "rmsce": "trueodds.estimators.binned:RootMeanSquareError",
        "ks": "trueodds.estimators.cumulative:KolmogorovSmirnov",
        "ecce_mad": "trueodds.estimators.cumulative:CumulativeError",
        "ecce_r": "trueodds.estimators.cumulative:CumulativeRange",
        "brier": "trueodds.estimators.proper:Brier",
        "log_loss": "trueodds.estimators.proper:LogLoss",
    },
)
