"""The papers' experiments and our own, each a function that returns a table; one line per study."""

from trueodds.core.registry import Registry

STUDIES = Registry(
    "study",
    {
        "coverage": "trueodds.studies.coverage:coverage",
        "ecology": "trueodds.studies.ecology:ecology",
        "human": "trueodds.studies.human:human",
        "images": "trueodds.studies.images:images",
        "level": "trueodds.studies.level:level",
        "mcllo_clipping": "trueodds.studies.mcllo_clipping:mcllo_clipping",
        "mcllo_power": "trueodds.studies.mcllo_power:mcllo_power",
        "obesity": "trueodds.studies.obesity:obesity",
        "pathologies": "trueodds.studies.pathologies:pathologies",
        "uniform": "trueodds.studies.uniform:uniform",
    },
)
