"""Do modules of PyTorch compute what the fitted maps compute, with a gradient, and refuse what these refuse?"""

from __future__ import annotations

import builtins
import io

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.calibrators.rows import FORMULA_SETTINGS, REQUIRED_SETTINGS, draw_predictions  # noqa: E402
from tests.data.refused import refused  # noqa: E402
from trueodds.calibrators import CALIBRATORS  # noqa: E402
from trueodds.calibrators.fitted_calibrator import FittedCalibrator  # noqa: E402
from trueodds.calibrators.fitting import fit  # noqa: E402
from trueodds.calibrators.mcllo import MclloMap  # noqa: E402
from trueodds.calibrators.prior_shift import PriorShiftMap  # noqa: E402
from trueodds.calibrators.uniform_mixture import MixedMap  # noqa: E402
from trueodds.calibrators.vector import VectorMap  # noqa: E402
from trueodds.data.predictions import Predictions  # noqa: E402

# Calibrators whose maps have steps or no simple formula.
WITHOUT_FORMULA = {
    "histogram",
    "scaling_binning",
    "bbq",
    "irm",
    "venn_abers",
    "kernel",
    "simplex_histogram",
    "multicalibrated",
}
METHODS = [(name, REQUIRED_SETTINGS.get(name, {}) | FORMULA_SETTINGS.get(name, {})) for name in CALIBRATORS.names()]
METHODS += [
    ("structured", {"form": "matrix"}),
    ("platt", {"on": "raw"}),
    ("spline", {"kind": "gupta"}),
    ("vector", {"logits": True}),
    ("matrix", {"logits": True}),
]
CASES = [
    (name, settings, k)
    for name, settings in METHODS
    for k in ((2,) if CALIBRATORS.load(name).two_classes else (2, 3, 10))
]
# Settings whose maps have steps or no simple formula.
REFUSED = [
    ("isotonic", {"between": "step"}),
    ("evidential", {}),
    ("evidential", {"output": "point", "on": "probabilities"}),
    ("top_vs_all", {"calibrator": "isotonic"}),
]


def fitted_to_rows(name, k, settings):
    """A calibrator fitted to 300 rows; of logits if its settings say so."""
    P, y = draw_predictions(300, k, 1.7, 1)
    P[:2] = np.eye(k)[:2]
    preds = Predictions(y, P)
    if settings.get("logits"):
        preds = Predictions.from_logits(y, np.log(np.maximum(P, 1e-30)) + 1.0)
    return fit(CALIBRATORS.make(name, settings), preds)


def hard_rows(k):
    """Random rows, and rows with zeros, ones, tiny values, ties, and sums that deviate as much as is allowed."""
    P, _ = draw_predictions(200, k, 2.5, 3)
    tiny = np.zeros((6, k))
    tiny[:, :2] = [[x, 1 - x] for x in (1e-13, 1e-30, 5e-324)] + [[1 - x, x] for x in (1e-13, 1e-30, 5e-324)]
    half = np.zeros((2, k))
    half[:, -2:] = [[0.5, 0.5], [0.25, 0.75]]
    deviating = P[:50] * (1 + np.linspace(-9e-6, 9e-6, 50))[:, None]
    return np.concatenate([P, np.eye(k), tiny, half, np.full((1, k), 1 / k), deviating])


def agrees(module, calibrator, values, *, logits):
    """Float64 and float32 input give the probabilities of `predict_proba`, and the gradient is finite."""
    for array in (values, values.astype(np.float32)):
        tensor = torch.from_numpy(array).requires_grad_()
        q = module(tensor)
        assert q.dtype == torch.float64
        difference = np.abs(q.detach().numpy() - calibrator.predict_proba(array, logits=logits))
        assert difference.max() <= 1e-6, (array[difference.max(axis=1).argmax()], difference.max())
        q[:, -1].sum().backward()
        assert torch.isfinite(tensor.grad).all()


@pytest.mark.parametrize(("name", "settings", "k"), CASES, ids=str)
def test_a_module_computes_predict_proba_or_is_refused(name, settings, k):
    calibrator = fitted_to_rows(name, k, settings)
    if name in WITHOUT_FORMULA:
        with refused("TO525", name, fix="predict_proba"):
            calibrator.to_torch()
        return
    module, P = calibrator.to_torch(), hard_rows(k)
    assert module.logits == settings.get("logits", False)
    if not module.logits:
        agrees(module, calibrator, P, logits=False)
        if k == 2:
            agrees(module, calibrator, P[:-50, 1], logits=False)
    with np.errstate(divide="ignore"):
        z = np.log(P)
    z[:20] += 300 * np.random.default_rng(5).normal(size=(20, k))
    agrees(calibrator.to_torch(logits=True), calibrator, z, logits=True)
    if k == 2:
        log_odds = np.append(np.linspace(-50, 50, 41), [-800.0, 800.0, 0.0])
        agrees(calibrator.to_torch(logits=True), calibrator, log_odds, logits=True)


@pytest.mark.parametrize(("name", "settings"), REFUSED, ids=str)
def test_maps_with_steps_or_without_a_simple_formula_are_refused(name, settings):
    with refused("TO525", name, "3 classes" if name != "evidential" else "classes", fix="temperature"):
        fitted_to_rows(name, 3, settings).to_torch()


@pytest.mark.parametrize(
    "calibration_map",
    [
        VectorMap(np.array([-1.0, 0.0, -2.0]), np.array([0.3, -0.2, 0.1]), 1e-12),
        VectorMap(np.array([0.5, 2.0, 0.0]), np.array([0.3, -0.2, 0.1]), 1e-12),
        MclloMap(np.array([0.3, -0.2]), np.array([0.0, 1.5]), 1, 1e-12),
        MclloMap(np.array([0.3, -0.2]), np.array([-0.5, 1.5]), 0, 1e-3),
        MclloMap(np.array([0.3, -0.2]), np.array([-0.5, -0.5]), 2, 1e-3),
        PriorShiftMap(np.array([0.0, 2.0, 0.5])),
    ],
    ids=repr,
)
def test_exact_zeros_are_zero_one_or_the_whole_row_as_the_map_defines(calibration_map):
    calibrator = FittedCalibrator(calibration_map, ("a", "b", "c"), 10)
    P = np.concatenate([hard_rows(3), [[0.0, 0.5, 0.5], [0.5, 0.5, 0.0], [1e-14, 0.5, 0.5]]])
    agrees(calibrator.to_torch(), calibrator, P, logits=False)
    with np.errstate(divide="ignore"):
        agrees(calibrator.to_torch(logits=True), calibrator, np.log(P), logits=True)


@pytest.mark.parametrize("name", ["spline", "isotonic", "temperature", "identity"])
def test_a_share_of_the_uniform_is_kept(name):
    base = fitted_to_rows(name, 3, {}).calibration_map
    calibrator = FittedCalibrator(MixedMap(base, 0.01), ("a", "b", "c"), 10)
    agrees(calibrator.to_torch(), calibrator, hard_rows(3), logits=False)


@pytest.mark.parametrize("name", ["temperature", "matrix", "mcllo", "beta", "spline", "platt", "ensemble_temperature"])
def test_the_gradient_is_that_of_finite_differences(name):
    module = fitted_to_rows(name, 3, {}).to_torch(logits=True)
    z = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 3))).requires_grad_()
    assert torch.autograd.gradcheck(module, (z,))


def test_a_network_is_trained_through_its_calibrator():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), fitted_to_rows("vector", 3, {}).to_torch(logits=True))
    before = {name: value.clone() for name, value in net[1].state_dict().items()}
    x, y = torch.randn(64, 4), torch.randint(3, (64,))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.nll_loss(net(x).log(), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.05
    assert all((net[1].state_dict()[name] == value).all() for name, value in before.items())  # no parameter is trained


@pytest.mark.parametrize("name", ["temperature", "structured", "spline", "isotonic", "identity"])
def test_the_dtype_of_the_module_is_that_of_the_result(name):
    calibrator, P = fitted_to_rows(name, 3, {}), draw_predictions(50, 3, 1.0, 2)[0]
    module = calibrator.to_torch().float()
    q = module(torch.from_numpy(P))
    assert q.dtype == torch.float32
    assert q.numpy() == pytest.approx(calibrator.predict_proba(P), abs=1e-4 if name == "isotonic" else 2e-6)
    assert module.half()(torch.from_numpy(P)).dtype == torch.float32  # never computed in 16 bits


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rows_of_16_bits_are_converted_exactly(dtype):
    calibrator, P = fitted_to_rows("temperature", 3, {}), draw_predictions(50, 3, 1.0, 2)[0]
    rounded = torch.from_numpy(P).to(getattr(torch, dtype))
    expected = calibrator.predict_proba(rounded.double().numpy(), sum_tolerance=0.02)
    assert calibrator.to_torch()(rounded).numpy() == pytest.approx(expected, abs=1e-6)


def test_autocast_does_not_lower_the_precision():
    calibrator, P = fitted_to_rows("matrix", 3, {}), draw_predictions(50, 3, 1.0, 2)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        q = calibrator.to_torch().float()(torch.from_numpy(P))
    assert q.numpy() == pytest.approx(calibrator.predict_proba(P), abs=2e-6)


@pytest.mark.parametrize("name", ["temperature", "ensemble_temperature", "mcllo", "spline", "isotonic", "beta"])
@pytest.mark.parametrize("logits", [False, True])
def test_an_exported_module_is_loaded_again_and_takes_any_number_of_rows(name, logits):
    calibrator, P = fitted_to_rows(name, 3, {}), hard_rows(3)[:-50]
    with np.errstate(divide="ignore"):
        values = torch.from_numpy(np.log(P) if logits else P)
    rows = {0: torch.export.Dim("n")}
    program = torch.export.export(calibrator.to_torch(logits=logits), (values[:5],), dynamic_shapes=(rows,))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    q = torch.export.load(file).module()(values)
    assert q.numpy() == pytest.approx(calibrator.predict_proba(values.numpy(), logits=logits), abs=1e-6)


def test_saved_parameters_are_loaded_into_the_module_of_another_fit():
    one, other = (
        fit(CALIBRATORS.make("vector", {}), Predictions(*draw_predictions(300, 3, s, 1)[::-1])) for s in (1, 3)
    )
    file = io.BytesIO()
    torch.save(one.to_torch().state_dict(), file)
    file.seek(0)
    module, P = other.to_torch(), torch.from_numpy(hard_rows(3))
    assert not torch.allclose(module(P), one.to_torch()(P), atol=1e-3)
    module.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(module(P), one.to_torch()(P))


def test_a_temperature_for_many_classes_needs_no_matrix():
    calibrator = FittedCalibrator(fitted_to_rows("temperature", 3, {}).calibration_map, tuple(range(30_000)), 10)
    module = calibrator.to_torch(logits=True)
    assert sum(buffer.numel() for buffer in module.buffers()) < 100_000
    z = np.random.default_rng(0).normal(size=(2, 30_000))
    assert module(torch.from_numpy(z)).numpy() == pytest.approx(calibrator.predict_proba(z, logits=True), abs=1e-12)


def test_it_says_what_it_takes():
    module = fitted_to_rows("vector", 3, {"logits": True}).to_torch()
    assert (module.logits, module.method, module.classes) == (True, "vector", (0, 1, 2))
    assert module.extra_repr() == "vector, 3 classes, of logits"
    assert fitted_to_rows("vector", 3, {}).to_torch().extra_repr() == "vector, 3 classes, of probabilities"


def test_probabilities_for_a_map_of_logits_are_refused():
    with refused("TO509", "probabilities"):
        fitted_to_rows("vector", 3, {"logits": True}).to_torch(logits=False)


@pytest.mark.parametrize(
    ("code", "got", "values"),
    [
        ("TO101", "[[0.2, 0.8]]", [[0.2, 0.8]]),
        ("TO101", "(2, 3, 4)", torch.ones(2, 3, 4)),
        ("TO501", "2 (values has shape (", torch.tensor([[0.2, 0.8]])),
        ("TO501", "2 (values has shape (", torch.tensor([0.2, 0.8])),
        ("TO102", "-1.0 in row 1", torch.tensor([[0.2, 0.3, 0.5], [-1.0, 1.0, 1.0]])),
        ("TO103", "nan in row 0", torch.tensor([[torch.nan, 0.3, 0.5]])),
        ("TO104", "1.1 in row 0", torch.tensor([[0.2, 0.3, 0.6]])),
        ("TO104", "1.1", torch.tensor([[0.2, 0.3, 0.6]], dtype=torch.bfloat16)),
        ("TO108", "(0, 3)", torch.ones(0, 3)),
    ],
    ids=str,
)
def test_bad_input_is_refused_as_by_predict_proba(code, got, values):
    with refused(code, got):
        fitted_to_rows("temperature", 3, {}).to_torch()(values)


def test_logits_for_a_module_of_probabilities_are_refused_with_what_to_do():
    with refused("TO102", "-3.0", fix="pass logits=True to to_torch"):
        fitted_to_rows("temperature", 3, {}).to_torch()(torch.tensor([[-3.0, 1.0, 2.0]]))


@pytest.mark.parametrize(
    "z", [[[torch.nan, 0.0, 1.0]], [[torch.inf, 0.0, 1.0]], [[-torch.inf] * 3]], ids=["NaN", "infinite", "nothing"]
)
def test_logits_without_probabilities_are_refused(z):
    with refused("TO103", "row 0"):
        fitted_to_rows("temperature", 3, {}).to_torch(logits=True)(torch.tensor(z))


def test_infinite_log_odds_are_refused():
    with refused("TO103", "inf in row 1"):
        fitted_to_rows("temperature", 2, {}).to_torch(logits=True)(torch.tensor([0.0, -torch.inf]))


def test_a_rounded_table_needs_its_tolerance():
    calibrator, P = fitted_to_rows("temperature", 3, {}), torch.tensor([[0.33, 0.33, 0.33]])
    with refused("TO104", "0.99", fix="sum_tolerance=0.01"):
        calibrator.to_torch()(P)
    q = calibrator.to_torch(sum_tolerance=0.02)(P)
    assert q.numpy() == pytest.approx(calibrator.predict_proba(P.numpy(), sum_tolerance=0.02), abs=1e-12)


def test_settings_are_checked():
    calibrator = fitted_to_rows("temperature", 3, {})
    with refused("TO203", "'yes'"):
        calibrator.to_torch(logits="yes")
    with refused("TO203", "-1"):
        calibrator.to_torch(sum_tolerance=-1)
    with refused("TO202"):
        calibrator.to_torch(device="cpu")


def test_without_the_library_the_error_says_how_to_get_it(monkeypatch):
    real = builtins.__import__

    def absent(name, *rest, **more):
        if name == "trueodds.calibrators.torch":
            raise ImportError(name)
        return real(name, *rest, **more)

    calibrator = fitted_to_rows("temperature", 2, {})
    monkeypatch.setattr(builtins, "__import__", absent)
    with refused("TO525", "no torch", fix="[torch]"):
        calibrator.to_torch()
