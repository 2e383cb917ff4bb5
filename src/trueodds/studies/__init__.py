"""The papers' experiments and our own, each a function that returns a table; one line per study."""

from trueodds.core.registry import Registry

STUDIES = Registry(
    "study",
    {
        "estimators": "trueodds.studies.estimators:estimators",
        "level": "trueodds.studies.level:level",
        "uniform": "trueodds.studies.uniform:uniform",
    },
)
