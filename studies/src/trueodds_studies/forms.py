"""In which forms is the level of each test measured: by which null law, through which lens, on how many rows?"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

from trueodds.hypotests import TESTS


@dataclass(frozen=True)
class Form:
    """A test with the settings of a study.

    `null` is how the null law is obtained, as in the test's settings; `redraw` for a test that has no such setting,
    `both` where rows are drawn anew too. `lens` is for more than two classes: if not said, the whole vector where the
    test takes vectors, else the confidence.
    """

    name: str
    null: str
    variant: str = ""  # what tells it from the other forms of the test
    fixed_settings: tuple[tuple[str, Any], ...] = ()  # its settings
    lens: str | None = None
    fewest: int = 2  # classes
    classes: int = 10**9  # at most
    max_rows: int = 10**9  # rows
    slow: int = 10**9  # rows from which it takes its time: then it gets a share of the data sets
    share: float = 0.2

    @property
    def label(self) -> str:
        """The name in the table."""
        return f"{self.name} {self.variant}".strip()

    def claim(self, k: int) -> str:
        """The lens for k classes."""
        if k == 2:
            return "positive"
        return self.lens or ("canonical" if TESTS.load(self.name).vectors else "confidence")

    @property
    def draws(self) -> bool:
        """Whether it makes draws, which cost."""
        return self.null in getattr(TESTS.load(self.name), "drawing", (self.null,)) or self.null == "both"

    def settings(self, resamples: int) -> dict[str, Any]:
        """The settings, with the study's number of draws where the test makes any."""
        drawn = {"resamples": resamples} if TESTS.takes(self.name, "resamples") else {}
        return drawn | dict(self.fixed_settings)

    def fits(self, k: int, n: int) -> bool:
        """Whether it is measured for so many classes and rows."""
        return self.fewest <= k <= self.classes and n <= self.max_rows

    def sets(self, n: int, sets: int) -> int:
        """How many of so many data sets it gets."""
        return math.ceil(sets * self.share) if n >= self.slow else sets


@cache
def forms_of(name: str) -> tuple[Form, ...]:
    """The default form, the other null laws that the test offers, and what the table adds."""
    test_class = TESTS.load(name)
    if not test_class.nulls:
        return (Form(name, "redraw"), *EXTRA.get(name, ()))
    (default,) = (field.default for field in dataclasses.fields(test_class) if field.name == "null")
    nulls = dict.fromkeys((default, *test_class.nulls) if default in test_class.nulls else test_class.nulls)
    usual = [Form(name, null, fixed_settings=() if null == default else (("null", null),)) for null in nulls]
    return (*(dataclasses.replace(form, **COSTLY.get((name, form.null), {})) for form in usual), *EXTRA.get(name, ()))


def _forms(*forms: Form) -> dict[str, tuple[Form, ...]]:
    table: dict[str, tuple[Form, ...]] = {}
    for form in forms:
        table[form.name] = (*table.get(form.name, ()), form)
    return table


EXTRA = _forms(
    Form("consistency", "redraw", "confidence", lens="confidence", fewest=3),
    Form("consistency", "both", "rows too", (("redraw", "both"),), classes=2, max_rows=500, slow=0),
    Form("hosmer_lemeshow", "asymptotic", "exact", (("null", "asymptotic"), ("form", "exact")), classes=2),
    Form("cox", "asymptotic", "score", (("form", "score"),)),
    Form("score", "asymptotic", "log_loss", (("statistic", "log_loss"),)),
    Form("cross_fitted", "asymptotic", "log loss", (("score", "log_loss"),)),
    Form("decision_regret", "asymptotic", "1 : 4", (("cost", ((0, 4), (1, 0))),), classes=2),
)
COSTLY: dict[tuple[str, str], dict[str, Any]] = {
    ("bins", "redraw"): {"slow": 2000},
    ("cme", "asymptotic"): {"slow": 2000},
    ("cme", "redraw"): {"slow": 2000},
    ("score", "redraw"): {"slow": 2000},
    ("skce", "block"): {"slow": 500},
    ("skce", "bootstrap"): {"slow": 500, "max_rows": 500},
    ("skce", "distribution-free"): {"slow": 500},
    ("skce", "redraw"): {"slow": 2000},
    ("tcal", "redraw"): {"slow": 2000},
}
