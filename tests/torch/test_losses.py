"""Do the losses equal the estimators, with the right gradient, at their limits and in 16 bits? What do they refuse?"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import trueodds as to  # noqa: E402
from tests.data.refused import refused  # noqa: E402
from trueodds.estimators._pairwise import similarity_kernels  # noqa: E402
from trueodds.torch import FocalLoss, KernelCalibrationLoss, MMCELoss, SoftBinnedECELoss  # noqa: E402

SHARP = 1e-9  # a temperature at which each row lies in one bin
LOSSES = {
    "mmce": MMCELoss(),
    "weighted mmce": MMCELoss(bandwidth=0.2, weighted=True),
    "soft ece": SoftBinnedECELoss(),
    "soft ece of order 1": SoftBinnedECELoss(bins=10, temperature=0.005, order=1),
    "skce": KernelCalibrationLoss(),
    "biased skce": KernelCalibrationLoss(bandwidth=0.3, unbiased=False),
    "focal": FocalLoss(),
    "focal of a root": FocalLoss(gamma=0.5),
}
# Each loss beside the estimator that measures the same: the error of predictions, without an interval.
ESTIMATORS = {
    "mmce": (MMCELoss(), "mmce", {"lens": "confidence"}),
    "mmce of another bandwidth": (MMCELoss(bandwidth=0.1), "mmce", {"lens": "confidence", "bandwidth": 0.1}),
    "weighted mmce": (MMCELoss(weighted=True), "mmce", {"lens": "confidence", "form": "weighted"}),
    "soft ece": (SoftBinnedECELoss(temperature=SHARP), "rmsce", {"lens": "confidence", "bins": 15}),
    "soft ece of order 1": (SoftBinnedECELoss(10, SHARP, 1), "ece", {"lens": "confidence", "bins": 10}),
    "skce": (KernelCalibrationLoss(), "skce", {"lens": "canonical", "form": "unbiased"}),
    "biased skce": (KernelCalibrationLoss(unbiased=False), "skce", {"lens": "canonical", "form": "biased"}),
    "skce of a bandwidth": (KernelCalibrationLoss(0.2), "skce", {"form": "unbiased", "bandwidth": 0.2}),
}
loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def draw_batch(n=60, k=3, seed=0):
    """Overconfident logits with labels."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 2
    y = (np.exp(z / 2) / np.exp(z / 2).sum(axis=1, keepdims=True)).cumsum(axis=1) > rng.random((n, 1))
    return torch.from_numpy(z), torch.from_numpy(y.argmax(axis=1))


def with_gradient(loss, z, *args):
    """The loss and its gradient, both finite."""
    z = z.detach().clone().requires_grad_()
    value = loss(z, *args)
    value.backward()
    assert value.shape == ()
    assert torch.isfinite(value)
    assert torch.isfinite(z.grad).all()
    return value.item(), z.grad


@pytest.mark.parametrize("weight", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize(("loss", "name", "settings"), ESTIMATORS.values(), ids=ESTIMATORS)
def test_a_loss_is_its_estimator(loss, name, settings, k, weight):
    z, y = draw_batch(k=k)
    w = torch.from_numpy(np.random.default_rng(1).integers(0, 4, len(z)) * 0.7) if weight else None
    preds = to.Predictions.from_logits(y.numpy(), z.numpy(), weight=None if w is None else w.numpy())
    expected = to.measure(preds, name, interval=None, **settings).value
    assert loss(z, y, w).item() == pytest.approx(expected, abs=1e-10)


def test_above_1000_rows_the_median_is_that_of_the_estimator():
    z, y = draw_batch(n=1100)
    expected = to.measure(
        to.Predictions.from_logits(y.numpy(), z.numpy()), "skce", form="unbiased", interval=None
    ).value
    assert KernelCalibrationLoss()(z, y).item() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("temperature", [1e-2, 1e-3, 1e-5])
def test_the_soft_error_approaches_that_of_the_bins(temperature):
    z, y = draw_batch(n=400)
    preds = to.Predictions.from_logits(y.numpy(), z.numpy())
    expected = to.measure(preds, "ece", lens="confidence", bins=5, interval=None).value
    bound = {1e-2: 0.06, 1e-3: 0.02, 1e-5: 2e-3}[temperature]
    assert abs(SoftBinnedECELoss(5, temperature, 1)(z, y).item() - expected) < bound


def test_soft_bins_by_hand():
    # One bin: |mean correctness − mean confidence|. Two bins with centers 1/4 and 3/4, at p = .5 half of each.
    z = torch.log(torch.tensor([[0.5, 0.5], [0.1, 0.9]], dtype=torch.float64))
    y = torch.tensor([0, 0])
    assert SoftBinnedECELoss(1)(z, y).item() == pytest.approx(abs(0.5 - 0.9) / 2, rel=1e-12)
    u = np.exp([-((0.9 - 0.25) ** 2) / 0.1, -((0.9 - 0.75) ** 2) / 0.1])
    gaps = 0.5 * 0.5 - 0.9 * u / u.sum()
    assert SoftBinnedECELoss(2, 0.1, 1)(z, y).item() == pytest.approx(np.abs(gaps).sum() / 2, rel=1e-12)


def test_the_focal_loss_is_its_formula_and_cross_entropy_for_gamma_0():
    z, y = draw_batch()
    w = torch.rand(len(z), dtype=torch.float64)
    p = torch.softmax(z, dim=1)[torch.arange(len(y)), y]
    for gamma in (0.0, 0.5, 2.0):
        expected = (w * (1 - p) ** gamma * -p.log()).sum() / w.sum()
        assert FocalLoss(gamma)(z, y, w).item() == pytest.approx(expected.item(), rel=1e-12)
    assert FocalLoss(0)(z, y).item() == pytest.approx(torch.nn.functional.cross_entropy(z, y).item(), rel=1e-12)


@loss
@pytest.mark.parametrize("weight", [False, True], ids=["", "weights"])
def test_the_gradient_is_that_of_finite_differences(loss, weight):
    if getattr(loss, "bandwidth", 0) == "median":  # which is constant in the gradient, but not in a difference
        loss = KernelCalibrationLoss(bandwidth=0.4)
    z, y = draw_batch(n=8)
    w = torch.from_numpy(np.arange(8) % 4 * 1.0) if weight else None
    assert torch.autograd.gradcheck(partial(loss, target=y, weight=w), (z.requires_grad_(),))


def test_the_median_bandwidth_is_constant_in_the_gradient():
    z, y = draw_batch(n=20)
    p = torch.softmax(z, dim=1).numpy()
    bandwidth = similarity_kernels.median_distance_of_rows(p, np.ones(20))
    one, other = (with_gradient(loss, z, y) for loss in (KernelCalibrationLoss(), KernelCalibrationLoss(bandwidth)))
    assert one[0] == pytest.approx(other[0], rel=1e-9)
    assert one[1].numpy() == pytest.approx(other[1].numpy(), abs=1e-12)


@loss
def test_one_row_equal_rows_and_certain_rows_have_a_finite_gradient(loss):
    for dtype in (torch.float32, torch.float64):
        z, y = draw_batch(n=1)
        with_gradient(loss, z.to(dtype), y)
        rows, labels = torch.tensor([[0.0, 1.0, 2.0]], dtype=dtype).repeat(6, 1), torch.tensor([2, 1, 2, 0, 2, 2])
        with_gradient(loss, rows, labels)
        with_gradient(loss, torch.zeros(6, 3, dtype=dtype), labels)
        certain = 1000 * torch.nn.functional.one_hot(labels, 3).to(dtype)
        with_gradient(loss, certain, labels)
        with_gradient(loss, certain, labels.flip(0))
        with_gradient(loss, torch.where(certain == 0, -torch.inf, certain), labels)


@loss
def test_perfect_predictions_have_no_loss(loss):
    labels = torch.tensor([2, 1, 2, 0, 2, 2])
    value, gradient = with_gradient(loss, 1000.0 * torch.nn.functional.one_hot(labels, 3), labels)
    assert value == 0
    assert (gradient == 0).all()


def test_one_row_has_no_pair():
    z, y = draw_batch(n=1)
    assert with_gradient(KernelCalibrationLoss(), z, y)[0] == 0
    assert MMCELoss()(z, y).item() == pytest.approx(
        abs((z.argmax() == y).item() - z.softmax(1).max().item()), rel=1e-12
    )


@loss
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_16_bits_are_computed_in_32(loss, dtype):
    z, y = draw_batch(n=200)
    z = z.to(dtype)
    w = torch.linspace(0, 2, 200).to(dtype)
    value = loss(z, y, w)
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(loss(z.double(), y, w.double()).item(), abs=1e-5)
    assert with_gradient(loss, z, y)[1].dtype == dtype


@loss
def test_autocast_does_not_lower_the_precision(loss):
    z, y = draw_batch(n=200)
    z = z.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss(z, y)
    assert value.item() == loss(z, y).item()


@loss
def test_a_weight_of_2_is_two_rows(loss):
    if getattr(loss, "unbiased", False):
        return  # which counts pairs of rows: its weights are importance weights
    z, y = draw_batch(n=30)
    count = torch.from_numpy(np.random.default_rng(2).integers(0, 3, 30))
    repeated = loss(z.repeat_interleave(count, dim=0), y.repeat_interleave(count))
    assert loss(z, y, count).item() == pytest.approx(repeated.item(), rel=1e-10)
    assert loss(z, y, count * 1e37).item() == pytest.approx(repeated.item(), rel=1e-10)


@loss
def test_the_order_of_rows_and_rows_of_weight_0_do_not_matter(loss):
    z, y = draw_batch(n=30)
    w = torch.from_numpy(np.random.default_rng(2).random(30))
    order = torch.randperm(30, generator=torch.Generator().manual_seed(0))
    assert loss(z[order], y[order], w[order]).item() == pytest.approx(loss(z, y, w).item(), abs=1e-12)
    w[:10] = 0
    assert loss(z, y, w).item() == pytest.approx(loss(z[10:], y[10:], w[10:]).item(), abs=1e-12)


@loss
def test_log_odds_are_two_columns(loss):
    z, y = draw_batch(n=40, k=2)
    difference = z[:, 1] - z[:, 0]
    assert loss(difference, y).item() == pytest.approx(loss(z, y).item(), rel=1e-12)
    assert loss(difference, y.double()).item() == loss(difference, y.bool()).item()  # labels 0.0 and 1.0, as BCE takes


@loss
def test_some_steps_of_training_lower_the_loss(loss):
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 3)
    z, y = draw_batch(n=256)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    values = []
    for _ in range(30):
        optimizer.zero_grad()
        value = loss(net(z.float()), y)
        value.backward()
        optimizer.step()
        values.append(value.item())
    assert values[-1] < 0.9 * values[0]


@loss
@pytest.mark.parametrize(
    ("code", "got", "args"),
    [
        ("TO101", "[[0.0, 1.0]]", ([[0.0, 1.0]], torch.tensor([0]))),
        ("TO101", "list", (torch.ones(9, 2), [0, 1] * 5)),
        ("TO101", "int64 of shape (2, 3)", (torch.ones(2, 3, dtype=torch.int64), torch.tensor([0, 1]))),
        ("TO101", "(2, 1)", (torch.ones(2, 1), torch.tensor([0, 1]))),
        ("TO101", "(2, 3, 4)", (torch.ones(2, 3, 4), torch.tensor([0, 1]))),
        ("TO103", "nan in row 1", (torch.tensor([[0.0, 1.0], [torch.nan, 0.0]]), torch.tensor([0, 1]))),
        ("TO103", "inf in row 0", (torch.tensor([[0.0, torch.inf], [0.0, 0.0]]), torch.tensor([0, 1]))),
        ("TO103", "row 1", (torch.tensor([[0.0, 1.0], [-torch.inf] * 2]), torch.tensor([0, 1]))),
        ("TO103", "-inf in row 0", (torch.tensor([-torch.inf, 1.0]), torch.tensor([0, 1]))),
        ("TO105", "3 in row 1", (torch.ones(2, 3), torch.tensor([0, 3]))),
        ("TO105", "-100 in row 0", (torch.ones(2, 3), torch.tensor([-100, 0]))),
        ("TO105", "0.5 in row 1", (torch.ones(2), torch.tensor([0.0, 0.5]))),
        ("TO107", "shape (2, 3) for 2 rows", (torch.ones(2, 3), torch.ones(2, 3))),
        ("TO107", "shape (3,) for 2 rows", (torch.ones(2, 3), torch.tensor([0, 1, 2]))),
        ("TO107", "shape (2, 1)", (torch.ones(2, 3), torch.tensor([0, 1]), torch.ones(2, 1))),
        ("TO108", "(0, 3)", (torch.ones(0, 3), torch.ones(0, dtype=torch.int64))),
        ("TO110", "-1.0 in row 1", (torch.ones(2, 3), torch.tensor([0, 1]), torch.tensor([1.0, -1.0]))),
        ("TO110", "nan in row 0", (torch.ones(2, 3), torch.tensor([0, 1]), torch.tensor([torch.nan, 1.0]))),
        ("TO110", "2 zeros", (torch.ones(2, 3), torch.tensor([0, 1]), torch.zeros(2))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_input_is_refused(loss, code, got, args):
    with refused(code, got):
        loss(*args)


@pytest.mark.parametrize(
    ("make", "got"),
    [
        (lambda: MMCELoss(bandwidth=0), "0"),
        (lambda: MMCELoss(bandwidth="median"), "'median'"),
        (lambda: MMCELoss(weighted=1), "1"),
        (lambda: SoftBinnedECELoss(bins=0), "0"),
        (lambda: SoftBinnedECELoss(bins=2.5), "2.5"),
        (lambda: SoftBinnedECELoss(temperature=0), "0"),
        (lambda: SoftBinnedECELoss(temperature=1e-13), "1e-13"),
        (lambda: SoftBinnedECELoss(order=0.5), "0.5"),
        (lambda: SoftBinnedECELoss(order=float("inf")), "inf"),
        (lambda: KernelCalibrationLoss(bandwidth=-1), "-1"),
        (lambda: KernelCalibrationLoss(bandwidth="mean"), "'mean'"),
        (lambda: KernelCalibrationLoss(unbiased="no"), "'no'"),
        (lambda: FocalLoss(gamma=-0.1), "-0.1"),
        (lambda: FocalLoss(gamma=float("nan")), "nan"),
    ],
)
def test_settings_out_of_range_are_refused(make, got):
    with refused("TO203", got):
        make()


def test_an_unknown_setting_is_refused_with_the_one_that_may_be_meant():
    with refused("TO202", fix="bins"):
        SoftBinnedECELoss(n_bins=15)


def test_a_loss_prints_its_settings():
    assert repr(SoftBinnedECELoss(10)) == "SoftBinnedECELoss(bins=10, temperature=0.01, order=2)"
    assert repr(MMCELoss()) == "MMCELoss(bandwidth=0.4, weighted=False)"
    assert repr(KernelCalibrationLoss()) == "KernelCalibrationLoss(bandwidth='median', unbiased=True)"
    assert repr(FocalLoss()) == "FocalLoss(gamma=3)"
