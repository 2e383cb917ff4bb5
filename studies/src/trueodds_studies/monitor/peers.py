"""Monitors of other packages, where they are installed: those of probcal and MAPIE, for events of two classes."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from trueodds.core.typing import Array

ALPHA = 0.05
PROBCAL_WINDOW = 10  # cohorts from which it learns how the probabilities are wrong; all of them by default


class PeerMonitor(Protocol):
    """A monitor of one stream."""

    def observe(self, p: Array, y: Array) -> bool:
        """Take a cohort, and return whether there is an alarm."""


class Probcal:
    """`CalibrationMonitor` of probcal.

    Its confidence sequence of the shift, which takes most of the time and no part in the alarm, has two points only.
    """

    def __init__(self, reference: tuple[Array, Array]) -> None:
        monitor: Any = importlib.import_module("probcal.monitor").CalibrationMonitor
        self.monitor = monitor(alpha=ALPHA, plug_in_window=PROBCAL_WINDOW, delta_ci_grid=(-1.0, 1.0, 2))

    def observe(self, p: Array, y: Array) -> bool:
        """Take a cohort, and return whether there is an alarm."""
        return bool(self.monitor.update(y, p).alarm)


class MapieBrier:
    """`RiskMonitoring` of MAPIE for the Brier score, without tolerance.

    The threshold is the upper bound of the Brier score of the reference rows. MAPIE computes a lower bound for every
    row of the stream again in every update, half an hour for a stream; here its function computes the bound after the
    last row of each cohort only. The largest one so far counts, as in the package.
    """

    def __init__(self, reference: tuple[Array, Array]) -> None:
        package: Any = importlib.import_module("mapie.exchangeability_testing.risk_monitoring")
        bounds: Any = importlib.import_module("mapie.exchangeability_testing.bounds")
        # It accepts binary risks only, not its own "mse", although its bounds hold for any loss between 0 and 1.
        brier = package.BinaryRisk(None, None, higher_is_better=False)
        brier.get_risk_sequence = lambda y, p: (y - p) ** 2
        p, y = reference
        self.monitor = package.RiskMonitoring(brier, test_level=ALPHA, tolerance=0.0, warn=False)
        self.monitor.compute_threshold(y, p)
        self.level = self.monitor.test_level_online / 2  # of the one-sided bound in the two-sided one
        self.bound = bounds.GammaExponentialMixtureBound(v_opt=1, c=1, alpha_opt=self.level)
        self.n, self.risk_sum, self.variance, self.mean = 0, 0.0, 0.0, 0.5

    def observe(self, p: Array, y: Array) -> bool:
        """Take a cohort, and return whether there is an alarm."""
        risks = self.monitor.risk.get_risk_sequence(y, p)
        means = (self.risk_sum + np.cumsum(risks)) / (self.n + np.arange(1, len(risks) + 1))
        self.variance += float(((risks - np.append(self.mean, means[:-1])) ** 2).sum())
        self.n, self.risk_sum, self.mean = self.n + len(risks), self.risk_sum + float(risks.sum()), float(means[-1])
        lower = self.mean - self.bound(v=self.variance, alpha=self.level) / self.n
        return bool(lower > self.monitor.threshold)


# By the name of the package; each is started with the reference rows of a stream.
PEERS: dict[str, Callable[[tuple[Array, Array]], PeerMonitor]] = {"probcal": Probcal, "mapie": MapieBrier}
NAMES = {"probcal": "probcal", "mapie": "MAPIE"}  # in tables


class Peers:
    """The installed monitors of other packages, for several streams at once.

    `references` has probabilities and outcomes of each stream before it begins, (streams, rows), from which MAPIE
    learns what is usual. `alarms` has the first cohort in which each monitor alarmed for each stream.
    """

    def __init__(self, references: tuple[Array, Array], never: int) -> None:
        self.never = never
        installed = [package for package in PEERS if find_spec(package) is not None]
        streams = list(zip(*references, strict=True))
        self.monitors: dict[str, list[PeerMonitor]] = {
            NAMES[package]: [PEERS[package](reference) for reference in streams] for package in installed
        }
        self.alarms = {name: np.full(len(streams), never) for name in self.monitors}

    def observe(self, cohort: int, p: Array, y: Array) -> None:
        """Take a cohort, (streams, rows); a stream with an alarm is not observed any more."""
        for name, monitors in self.monitors.items():
            for stream, monitor in enumerate(monitors):
                if self.alarms[name][stream] == self.never and monitor.observe(p[stream], y[stream].astype(float)):
                    self.alarms[name][stream] = cohort
