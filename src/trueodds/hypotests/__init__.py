"""Registry of the hypothesis tests of calibration; a test's module is imported on first use."""

from trueodds.core.registry import Registry

DEFAULT = "omnibus"
TESTS = Registry(
    "test",
    {
        "bins": "trueodds.hypotests.bins:BinByBin",
        "cme": "trueodds.hypotests.cme:MeanEmbedding",
        "consistency": "trueodds.hypotests.consistency:Consistency",
        "cox": "trueodds.hypotests.cox:Cox",
        "cross_fitted": "trueodds.hypotests.cross_fitted:CrossFittedTest",
        "debiased_l2": "trueodds.hypotests.debiased_l2:DebiasedL2Test",
        "decision_regret": "trueodds.hypotests.cross_fitted:DecisionRegretTest",
        "ecce": "trueodds.hypotests.cumulative:ECCE",
        "giviti": "trueodds.hypotests.giviti:GiViTI",
        "hosmer_lemeshow": "trueodds.hypotests.hosmer_lemeshow:HosmerLemeshow",
        "ks": "trueodds.hypotests.cumulative:KS",
        "mcllo": "trueodds.hypotests.mcllo:Mcllo",
        "omnibus": "trueodds.hypotests.omnibus:Omnibus",
        "score": "trueodds.hypotests.spiegelhalter:Score",
        "skce": "trueodds.hypotests.skce:KernelTest",
        "spiegelhalter": "trueodds.hypotests.spiegelhalter:Spiegelhalter",
        "tcal": "trueodds.hypotests.tcal:TCal",
    },
    synonyms={
        "ecce": ("estimated cumulative calibration error", "cumulative calibration error"),
        "hosmer_lemeshow": ("hl", "hl test", "hosmer lemeshow test"),
        "spiegelhalter": ("spiegelhalter z", "spiegelhalter z test", "spiegelhalter test", "z test"),
        "consistency": ("consistency resampling", "consistency test"),
        "cox": (
            "cox test", "cox regression", "calibration slope", "slope", "calibration intercept", "intercept", "citl",
            "calibration in the large",
        ),
        "giviti": ("giviti test",),
    },
    # For the hint in the error on a setting that a test does not have.
    method_of_setting=dict.fromkeys(
        ("statistic", "aggregate", "redraw", "bins", "partition", "min_size"), "consistency"
    ),
)  # fmt: skip

TESTS.publish(__name__)
