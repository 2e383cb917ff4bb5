"""The p-values of views, of lenses, and of a family of lenses: by a law, or among draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trueodds.core.typing import Array
from trueodds.hypotests.several import family
from trueodds.kernels.holm import holm
from trueodds.resampling.among import pvalue
from trueodds.resampling.estimand import Estimand


@dataclass(frozen=True)
class PValues:
    """p-values of each view, of each lens, and of all lenses together."""

    pvalues: list[Array]
    of_lens: list[float]
    family: float
    smallest_pvalue: float = 0.0  # the smallest p that the draws show to be possible
    claims: int = 1  # by which Holm's correction multiplies the smallest p; 1 where draws judge them together

    @classmethod
    def asymptotic(cls, pvalues: Sequence[Sequence[float]]) -> PValues:
        """Each by its own law, families by Holm's correction over all their views."""
        of_lens = [smallest_pvalue(holm(lens_pvalues)) for lens_pvalues in pvalues]
        return cls(
            [np.array(lens_pvalues) for lens_pvalues in pvalues],
            of_lens,
            smallest_pvalue(holm([p for lens_pvalues in pvalues for p in lens_pvalues])),
        )

    @classmethod
    def by_draws(
        cls, estimands: Sequence[Estimand], draws: Sequence[Array], *, joint_views: bool, joint_lenses: bool
    ) -> PValues:
        """Each among its draws, families by min-p over the draws that hang together, else by Holm's correction."""
        observed = [estimand.values for estimand in estimands]
        pvalues = [
            np.array([_among(x, drawn) for x, drawn in zip(values, lens_draws, strict=True)])
            for values, lens_draws in zip(observed, draws, strict=True)
        ]
        of_lens = [
            family(values.ravel(), _claims(lens_draws)) if joint_views else smallest_pvalue(holm(list(p)))
            for values, lens_draws, p in zip(observed, draws, pvalues, strict=True)
        ]
        joint = joint_views and (joint_lenses or len(estimands) == 1)
        claims = 1 if joint else sum(len(p) for p in pvalues)
        if len(estimands) == 1:
            return cls(pvalues, of_lens, of_lens[0], claims=claims)
        family_pvalue = (
            family(
                np.concatenate([x.ravel() for x in observed]),
                np.concatenate([_claims(lens_draws) for lens_draws in draws]),
            )
            if joint
            else smallest_pvalue(holm([float(p) for lens_pvalues in pvalues for p in lens_pvalues]))
        )
        return cls(pvalues, of_lens, family_pvalue, claims=claims)


def _among(value: Array, draws: Array) -> float:
    """The p-value of one view: of its statistic, or of the smallest p among several."""
    return pvalue(float(value), draws) if draws.ndim == 1 else family(value, draws.T)


def _claims(draws: Array) -> Array:
    """Draws of views (views, B), or of several statistics of each (views, B, m), as claims (claims, B)."""
    return draws if draws.ndim == 2 else np.moveaxis(draws, 2, 1).reshape(-1, draws.shape[1])


def smallest_pvalue(pvalues: Sequence[float]) -> float:
    """The smallest p that is defined; NaN where none is."""
    defined = [p for p in pvalues if not np.isnan(p)]
    return float(min(defined)) if defined else float("nan")
