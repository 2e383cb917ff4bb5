"""The evidence of a monitor for many streams at once, from the functions that `Monitor` calls for one."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.monitoring.capital import Alternatives, Capital
from trueodds.monitoring.evidence import sum_evidence
from trueodds.monitoring.judgment import GROUPS, RESERVE
from trueodds.monitoring.monitor_settings import MonitorSettings


class BatchMonitor:
    """Monitors of several streams that all have as many rows, views and groups.

    `center` is the log odds about which slopes turn. With groups, rows belong to them in turn.
    """

    def __init__(
        self, streams: int, settings: MonitorSettings, center: float, n_views: int = 1, groups: int = 0
    ) -> None:
        self.shape = (streams, 1 + groups, n_views)
        self.settings = settings
        self.alternatives: Alternatives = settings.alternatives(n_views, center)
        self.capital = Capital.start(self.alternatives, streams * (1 + groups) * n_views)

    def judge(self, p: Array, y: Array) -> Array:
        """Take a cohort: probabilities and outcomes of each view, (views, streams, rows); return the log evidence."""
        return self.judge_ratios(self.log_ratios(p, y))

    def log_ratios(self, p: Array, y: Array) -> Array:
        """Log-likelihood ratios of a cohort, (streams, panels, views, alternatives); the first panel has all rows."""
        streams, panels, n_views = self.shape
        n = p.shape[2]
        stream = np.repeat(np.arange(streams), n)
        group = np.tile(np.arange(n) % max(1, panels - 1), streams)
        ratios = np.empty((streams, panels, n_views, self.alternatives.size))
        for view in range(n_views):
            keys = [(slice(0, 1), stream)] + ([(slice(1, None), stream * (panels - 1) + group)] if panels > 1 else [])
            for where, key in keys:
                order = np.argsort(key, kind="stable") if panels > 1 else slice(None)
                sums = sum_evidence(
                    p[view].ravel()[order], y[view].ravel()[order].astype(np.uint8), None, key[order],
                    int(key.max()) + 1, self.alternatives, squared_weights=False, shock_sd=self.settings.shock_sd,
                )  # fmt: skip
                logs = np.stack([part.log_ratios(self.alternatives, self.settings.shock_sd) for part in sums])
                ratios[:, where, view] = logs.reshape(streams, -1, self.alternatives.size)
        return ratios

    def judge_ratios(self, ratios: Array) -> Array:
        """Take the log-likelihood ratios of a cohort, and return the log evidence, (streams,)."""
        panels, n_views = self.shape[1:]
        self.capital = self.capital.judge(ratios.reshape(-1, self.alternatives.size), self.alternatives)
        by_view = self.capital.log_evidence(self.alternatives, has_shock=bool(self.settings.shock_sd)).reshape(
            self.shape
        )
        by_panel = np.logaddexp.reduce(by_view, axis=2) - np.log(n_views)
        if panels == 1:
            return np.asarray(by_panel[:, 0])
        share = np.log(np.array([1 - GROUPS, *[(GROUPS - RESERVE) / (panels - 1)] * (panels - 1)]))
        return np.asarray(np.logaddexp(np.logaddexp.reduce(by_panel + share, axis=1), np.log(RESERVE)))
