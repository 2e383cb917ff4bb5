"""The papers' experiments and our own, each a function that returns a table; one line per study."""

from trueodds.core.registry import Registry

STUDIES = Registry(
    "study",
    {
        "binning": "trueodds.studies.binning:binning",
        "confirm": "trueodds.studies.confirm:confirm",
        "coverage": "trueodds.studies.coverage:coverage",
        "ecology": "trueodds.studies.ecology:ecology",
        "estimators": "trueodds.studies.estimators:estimators",
        "gaussian_mixture": "trueodds.studies.gaussian_mixture:gaussian_mixture",
        "human": "trueodds.studies.human:human",
        "images": "trueodds.studies.images:images",
        "imagenet_top1": "trueodds.studies.imagenet_top1:imagenet_top1",
        "intervals": "trueodds.studies.intervals:intervals",
        "level": "trueodds.studies.level:level",
        "mcllo_clipping": "trueodds.studies.mcllo_clipping:mcllo_clipping",
        "mcllo_power": "trueodds.studies.mcllo_power:mcllo_power",
        "model_comparison": "trueodds.studies.model_comparison:model_comparison",
        "networks": "trueodds.studies.networks:networks",
        "obesity": "trueodds.studies.obesity:obesity",
        "pathologies": "trueodds.studies.pathologies:pathologies",
        "power": "trueodds.studies.power:power",
        "table1": "trueodds.studies.table1:table1",
        "uniform": "trueodds.studies.uniform:uniform",
    },
)
