"""The papers' experiments and our own, each a function that returns a table; one line per study."""

from trueodds.core.registry import Registry

STUDIES = Registry(
    "study",
    {
        "binning": "trueodds_studies.binning:binning",
        "confirm": "trueodds_studies.confirm:confirm",
        "coverage": "trueodds_studies.coverage:coverage",
        "ecology": "trueodds_studies.ecology:ecology",
        "estimators": "trueodds_studies.estimators:estimators",
        "gaussian_mixture": "trueodds_studies.gaussian_mixture:gaussian_mixture",
        "human": "trueodds_studies.human:human",
        "images": "trueodds_studies.images:images",
        "imagenet_top1": "trueodds_studies.imagenet_top1:imagenet_top1",
        "intervals": "trueodds_studies.intervals:intervals",
        "level": "trueodds_studies.level:level",
        "mcllo_clipping": "trueodds_studies.mcllo_clipping:mcllo_clipping",
        "mcllo_power": "trueodds_studies.mcllo_power:mcllo_power",
        "model_comparison": "trueodds_studies.model_comparison:model_comparison",
        "networks": "trueodds_studies.networks:networks",
        "obesity": "trueodds_studies.obesity:obesity",
        "pathologies": "trueodds_studies.pathologies:pathologies",
        "power": "trueodds_studies.power:power",
        "table1": "trueodds_studies.table1:table1",
        "uniform": "trueodds_studies.uniform:uniform",
    },
)
