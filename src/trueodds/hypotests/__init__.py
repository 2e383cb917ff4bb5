"""How surprising: one line per test; a module is loaded when its member is first asked for."""

from trueodds.core.registry import Registry

TESTS = Registry(
    "test",
    {
        "consistency": "trueodds.hypotests.consistency:Consistency",
        "spiegelhalter": "trueodds.hypotests.spiegelhalter:Spiegelhalter",
    },
)
