"""Do loggers get every number of a result, and a figure of every diagram? `make doors` uses the real ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import trueodds as to
from trueodds.core.errors import InputError
from trueodds.integrations.loggers import log_to_tensorboard, result_scalars

rng = np.random.default_rng(0)
P = rng.random(400)
Y = (rng.random(400) < P).astype(int)


def test_a_result_has_its_number_and_the_ends_of_its_interval():
    error = to.measure(Y, P, "ece")
    assert result_scalars({"ece": error}) == {
        "ece": error.value,
        "ece_noise_floor": error.noise_floor,
        "ece_debiased": error.debiased,
        "ece_low": error.interval.low,
        "ece_high": error.interval.high,
    }


def test_undefined_numbers_are_left_out():
    assert (
        set(result_scalars({"slope": to.measure([1, 1, 1], [0.5, 0.5, 0.5], "calibration_slope", interval=None)}))
        == set()
    )


def test_an_infinite_number_is_logged():
    error = to.measure([1, 0], [0.0, 0.5], "log_loss", interval=None)  # an outcome with the predicted probability 0
    assert result_scalars({"log_loss": error})["log_loss"] == np.inf
    logged: list[Any] = []

    class Writer:
        def add_scalar(self, name, value, step):
            logged.append((name, value, step))

    log_to_tensorboard(Writer(), {"log_loss": error})
    assert logged == [("log_loss", np.inf, 0)]


def test_what_is_no_result_is_refused():
    with pytest.raises(InputError, match=r"TO203.*draw"):
        result_scalars({"x": 0.5})


def test_a_writer_gets_scalars_and_figures():
    class Writer:
        calls: list[Any] = []  # noqa: RUF012

        def add_scalar(self, name, value, step):
            self.calls.append((name, value, step))

        def add_figure(self, name, figure, step):
            self.calls.append((name, type(figure).__name__, step))

    brier = to.measure(Y, P, "brier", interval=None)
    log_to_tensorboard(Writer(), {"brier": brier, "diagram": to.draw(Y, P, "reliability")}, step=2)
    assert Writer.calls == [("brier", brier.value, 2), ("diagram", "Figure", 2)]
