"""Does a TorchTally give what the rows give, whatever the dtype and the batches, and refuse what it must?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from tests.reference import path
from trueodds.kernels.fine_grid import pop_occupied_cells
from trueodds.tallies.default_lens_tally import sum_confidence, tally_default_lens
from trueodds.tallies.tally import Tally

torch = pytest.importorskip("torch")

from tests.torch.batches import predictions, split  # noqa: E402
from trueodds.torch import TorchTally, read_batches, tensor_sums  # noqa: E402
from trueodds.torch.tensor_sums import read_tally  # noqa: E402


def same(a: Tally, b: Tally, rtol: float = 1e-12) -> None:
    """Two tallies hold the same sums up to rounding, and counts without any."""
    assert (a.kind, a.n, a.view_names, a.classes) == (b.kind, b.n, b.view_names, b.classes)
    np.testing.assert_array_equal(a.cells.index, b.cells.index)
    np.testing.assert_array_equal(a.cells.n, b.cells.n)
    np.testing.assert_allclose(a.cells.sums, b.cells.sums, rtol=rtol, atol=1e-12)
    assert (a.null is None) == (b.null is None)
    if a.null is not None and b.null is not None:
        np.testing.assert_allclose(a.null, b.null, rtol=rtol, atol=1e-10)
    assert set(a.scores) == set(b.scores)
    for name in a.scores:
        np.testing.assert_allclose(
            [a.score(name)[key] for key in ("mean", "standard_error", "w")],
            [b.score(name)[key] for key in ("mean", "standard_error", "w")],
            rtol=1e-10,
        )
    assert a.counts == b.counts


@pytest.mark.parametrize("k", [2, 3, 40, 150])
@pytest.mark.parametrize("logits", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_batches_give_the_tally_of_the_rows(k: int, logits: bool, dtype: str) -> None:
    z, y = predictions(1000, k)
    scores = (z if logits else z.double().softmax(1)).to(getattr(torch, dtype))
    tally = TorchTally(k, logits=logits)
    for batch in split(scores, y):
        tally.update(*batch)
    rows = (
        to.Predictions.from_logits(y.numpy(), scores.numpy()) if logits else to.Predictions(y.numpy(), scores.numpy())
    )
    same(tally.compute(), to.tally(rows))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("logits", [True, False])
def test_half_precision_is_counted_exactly(dtype: str, logits: bool) -> None:
    z, y = predictions(3000, 4)
    scores = (z if logits else z.softmax(1)).to(getattr(torch, dtype))
    tally = TorchTally(4, logits=logits)
    tally.update(scores, y)
    exact = scores.double().numpy()
    rows = (
        to.Predictions.from_logits(y.numpy(), exact) if logits else to.Predictions(y.numpy(), exact, sum_tolerance=0.02)
    )
    result = tally.compute()
    reference = to.tally(rows)
    np.testing.assert_array_equal(result.cells.n, reference.cells.n)
    np.testing.assert_allclose(result.cells.sums, reference.cells.sums, rtol=1e-12)
    assert tally.estimate(interval=None).value == pytest.approx(to.measure(reference, interval=None).value, rel=1e-12)


def test_float16_with_more_rows_than_its_largest_number_is_right() -> None:
    """BinaryCalibrationError of torchmetrics 1.9 gives NaN: its sums are float16, at most 65,504."""
    n = 100_000
    p = torch.full((n, 2), 0.25, dtype=torch.float16)
    p[:, 1] = 0.75
    y = (torch.arange(n) % 2 == 0).long()
    tally = TorchTally(2, all_lenses=False)
    tally.update(p, y)
    assert tally.estimate(interval=None).value == pytest.approx(0.25, abs=1e-12)


def test_weights_votes_independent_labels_and_confidence() -> None:
    z, y = predictions(900, 3)
    P = z.double().softmax(1)
    w = torch.rand(900, generator=torch.Generator().manual_seed(1)).double()
    w[:5] = 0
    votes = torch.randint(0, 4, (900, 3), generator=torch.Generator().manual_seed(2)) + torch.eye(3)[y].long()
    bits = (P > 0.4).long()
    cases: list[tuple[dict[str, Any], tuple[Any, ...], Any]] = [
        ({"weighted": True}, (P, y, w), to.Predictions(y.numpy(), P.numpy(), weight=w.numpy())),
        ({"weighted": True}, (P, votes), to.Predictions(votes.numpy(), P.numpy())),
        ({"kind": "multilabel"}, (P, bits), to.Predictions.from_multilabel(bits.numpy(), P.numpy())),
        (
            {"kind": "confidence"},
            (P.amax(1), P.argmax(1) == y),
            to.Predictions.from_confidence(P.amax(1).numpy(), (P.argmax(1) == y).numpy()),
        ),
    ]
    for settings, tensors, rows in cases:
        for all_lenses in (True, False):
            tally = TorchTally(3, all_lenses=all_lenses, **settings)
            for batch in split(*tensors):
                tally.update(*batch)
            expected = to.tally(rows)
            if all_lenses:
                if settings.get("weighted"):
                    assert tally.compute().cells.sums.shape[1] == 9
                same(tally.compute(), expected)
            value = tally.estimate(interval=None).value
            assert value == pytest.approx(to.measure(expected, interval=None).value, rel=1e-12)


@pytest.mark.parametrize("k", [2, 3, 12])
@pytest.mark.parametrize("logits", [True, False])
@pytest.mark.parametrize("all_lenses", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_operations_of_torch_give_the_sums_of_the_compiled_loops(
    k: int, logits: bool, all_lenses: bool, weighted: bool, dtype: str
) -> None:
    """Other devices than the CPU are summed by operations of torch, which also run on the CPU."""
    z, y = predictions(700, k, scale=4.0)
    P = z.double().softmax(1)
    P[0], P[1], P[2] = 0, 0, 1 / k  # an exact one, an exact zero of the observed class, a tie
    P[0, 0] = P[1, 1] = 1
    y[0] = y[1] = 0
    scores = (z if logits else P).to(getattr(torch, dtype))
    weight = torch.rand(700, generator=torch.Generator().manual_seed(1)).double() + 0.1 if weighted else None
    settings = {"logits": logits, "all_lenses": all_lenses, "weighted": weighted}
    host, device = TorchTally(k, **settings), TorchTally(k, **settings)
    host.update(scores, y, weight)
    assert tensor_sums.can_sum_on_device(device._layout, scores, y, weight)
    tensor_sums.add_batch_on_device(device._layout, device._state, scores, y, weight)
    same(device.compute(), host.compute(), rtol=1e-11)


@pytest.mark.parametrize("logits", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_operations_of_torch_accept_one_probability_of_two_classes(logits: bool, dtype: str) -> None:
    z, y = predictions(300, 2)
    scores = 5 * (z[:, 1] - z[:, 0]).double()
    scores = (scores if logits else torch.sigmoid(scores)).to(getattr(torch, dtype))
    scores[0] = scores[0] if logits else 1e-9  # whose complement is 1 in float32
    host, device = TorchTally(2, logits=logits), TorchTally(2, logits=logits)
    host.update(scores, y)
    tensor_sums.add_batch_on_device(device._layout, device._state, scores, y, None)
    same(device.compute(), host.compute(), rtol=1e-11)


@pytest.mark.parametrize(
    ("scores", "target"),
    [
        ([[0.5, 0.6]], [0]),
        ([[1.5, -0.5]], [0]),
        ([[float("nan"), 0.5]], [0]),
        ([[0.5, 0.5]], [2]),
        ([[0.5, 0.5]], [-1]),
        ([[0.5, 0.5]], [0.0]),
    ],
)
def test_operations_of_torch_leave_invalid_values_to_the_host(scores: Any, target: Any) -> None:
    layout = TorchTally(2)._layout
    assert not tensor_sums.can_sum_on_device(layout, torch.tensor(scores), torch.tensor(target), None)


REFERENCE_SETS = [
    ("aigen_cifar100_resnet110", "logits_test", "labels_test"),
    ("aigen_cifar10_resnet50", "logits_test", "labels_test"),
    ("aigen_focal_cifar10_wide_resnet", "logits_test", "labels_test"),
    ("chaosnli_snli", "logits_roberta_base_0", "label_count"),  # votes
    ("cifar10h", "probs", "labels"),
    ("ferrer_adrenalmnist_resnet50", "logits_test", "labels_test"),
    ("ferrer_agnews_gpt2", "logits_test", "labels_test"),
    ("ferrer_pathmnist_resnet50", "logits_test", "labels_test"),
    ("plambda_cifar10_vgg16", "probs", "labels"),
    ("psr_emotion_final", "logits_tst", "labels_tst"),
    ("tcal_imagenet_top1", "conf_resnet152", "correct_resnet152"),
    ("widmann_cifar10_4nets", "probs_densenet121", "labels"),
]


@pytest.mark.reference
@pytest.mark.parametrize(("name", "scores", "labels"), REFERENCE_SETS)
@pytest.mark.parametrize("on_device", [False, True])
def test_reference_sets_give_the_values_of_arrays(name: str, scores: str, labels: str, on_device: bool) -> None:
    arrays = np.load(path(f"data/{name}.npz"))
    P, y = arrays[scores], arrays[labels].astype(np.int64)
    logits, kind = scores.startswith("logits"), "confidence" if P.ndim == 1 else "classes"
    if kind == "confidence":
        rows = to.Predictions.from_confidence(P, y)
    else:
        rows = to.Predictions.from_logits(y, P) if logits else to.Predictions(y, P)
    tally = TorchTally(rows.k, logits=logits, kind=kind, weighted=y.ndim == 2)  # type: ignore[arg-type]
    for batch in split(torch.from_numpy(P), torch.from_numpy(y), size=1000):
        if on_device and tensor_sums.can_sum_on_device(tally._layout, *batch, None):
            tensor_sums.add_batch_on_device(tally._layout, tally._state, *batch, None)
        else:
            tally.update(*batch)
    reference, result = to.tally(rows), tally.compute()
    for estimator in ("ece", "mce", "rmsce", "debiased_l2", "brier", "log_loss", "smece"):
        value, expected = (to.measure(sums, estimator, interval=None).value for sums in (result, reference))
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-12), estimator
    exact = to.measure(rows, "ece", interval=None).value
    assert tally.estimate("ece", interval=None).value == pytest.approx(exact, rel=1e-12)


def test_a_state_is_saved_and_restored(tmp_path: Path) -> None:
    z, y = predictions()
    tally, copy = TorchTally(5, logits=True), TorchTally(5, logits=True)
    tally.update(z, y)
    torch.save(tally.state_dict(), tmp_path / "tally.pt")
    copy.load_state_dict(torch.load(tmp_path / "tally.pt", weights_only=True))
    same(copy.compute(), tally.compute())
    tally.reset()
    assert (tally.n, copy.n) == (0, 2000)
    with refused("TO401", "bins=15"):
        TorchTally(5, logits=True, bins=10).load_state_dict(copy.state_dict())
    with refused("TO401"):
        copy.load_state_dict({"layout": copy.state_dict()["layout"]})


def test_an_audit_is_that_of_the_tally_of_the_rows() -> None:
    z, y = predictions(1500, 3)
    tally = TorchTally(3, logits=True)
    tally.update(z, y)
    expected = to.audit(to.tally(to.Predictions.from_logits(y.numpy(), z.numpy())))
    assert str(tally.audit()) == str(expected)
    assert float(tally.test(lens="confidence", resamples=99).pvalue) == 0.01
    with refused("TO346", fix="all_lenses=True"):
        TorchTally(3, all_lenses=False).audit()


def test_memory_does_not_grow_and_no_graph_is_kept() -> None:
    z, y = predictions()
    tally = TorchTally(5, logits=True)
    before = sum(tensor.numel() for tensor in tally.state_dict().values() if torch.is_tensor(tensor))
    for _ in range(3):
        tally.update(z, y)
    after = [tensor for tensor in tally.state_dict().values() if torch.is_tensor(tensor)]
    assert sum(tensor.numel() for tensor in after) == before
    assert not any(tensor.requires_grad for tensor in after)


def test_an_invalid_batch_leaves_the_sums_unchanged_and_names_its_row() -> None:
    z, y = predictions(60_000, 10)
    P = z.double().softmax(1)
    for all_lenses in (True, False):
        tally = TorchTally(10, all_lenses=all_lenses)
        tally.update(P[:100], y[:100])
        before = tally.compute()
        wrong = P.clone()
        wrong[55_000, 3] = float("nan")
        with refused("TO103", "row 55000"):
            tally.update(wrong, y)
        same(tally.compute(), before)


def test_bad_input_is_refused_with_the_remedy() -> None:
    z, y = predictions(20, 5)
    P, tally = z.softmax(1), TorchTally(5)
    with refused("TO340", "the predictions", fix="detach"):
        tally.update(P.clone().requires_grad_(), y)
    with refused("TO102", fix="logits=True"):
        tally.update(z, y)
    with refused("TO341", "ndarray"):
        tally.update(P.numpy(), y)
    with refused("TO342", "meta", fix="to(device)"):
        tally.update(P, y.to("meta"))
    with refused("TO342", "meta", fix="device="):
        tally.update(P.to("meta"), y.to("meta"))
    with refused("TO101", "(20, 4)"):
        tally.update(P[:, :4], y)
    with refused("TO101", "(20, 5, 7)", fix="movedim(1, -1).flatten(0, -2) and target.flatten() of images (n, K, …)."):
        tally.update(P[:, :, None].expand(-1, -1, 7), y)
    with refused("TO101", "(20, 7, 5)", fix="Pass preds.flatten(0, -2)"):
        tally.update(P[:, None].expand(-1, 7, -1), y)
    with refused("TO101", "(20, 5, 5)", fix="of images (n, K, …) or preds.flatten(0, -2)"):
        tally.update(P[:, :, None].expand(-1, -1, 5), y)
    with refused("TO101", "(5,)", fix="preds[None]"):
        tally.update(P[0], y[:1])
    with refused("TO101", "(20, 1)", fix="preds[:, 0]"):
        TorchTally(2).update(P[:, :1], y)
    with refused("TO109", "int64 and float32", fix="(preds, target)"):
        tally.update(y, P)
    with refused("TO105", fix="subtract 1"):
        tally.update(P, y + 1)
    with refused("TO105", fix="keep = target != -100"):
        tally.update(P, torch.where(y == 0, -100, y))
    with refused("TO106"):
        tally.update(P, y + 0.5)
    with refused("TO107"):
        tally.update(P, y[:-1])
    with refused("TO345", "weight", fix="weighted=True"):
        tally.update(P, y, torch.ones(20))
    with refused("TO345", "(20, 5)", fix="argmax(dim=1)"):
        tally.update(P, torch.eye(5)[y])
    tally.update(P[:0], y[:0])  # as after leaving out padding
    with refused("TO108"):
        tally.compute()
    with refused("TO203"):
        TorchTally(1)
    with refused("TO203"):
        TorchTally(3, logits="yes")  # type: ignore[arg-type]
    with refused("TO347"):
        tally.all_reduce()


def test_a_device_with_other_sums_reads_back_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `update` does on another device, forced on the CPU."""
    z, y = predictions()
    tally = TorchTally(5, logits=True)
    tensor_sums.add_batch_on_device(tally._layout, tally._state, z, y, None)
    assert read_tally(tally._layout, tally._state).n == 2000


def test_loaders_and_lists_of_batches_are_sources_of_all_functions() -> None:
    z, y = predictions(500, 3)
    rows = to.Predictions.from_logits(y.numpy(), z.numpy())
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(z, y), batch_size=64)
    expected = to.measure(rows, interval=None).value
    for source in (
        to.read(loader, logits=True),
        read_batches(list(split(z, y)), logits=True),
        read_batches([{"logits": z, "labels": y}], logits=True),
        read_batches(
            torch.utils.data.DataLoader(torch.utils.data.TensorDataset(z, y), batch_size=99),
            model=lambda x: x,
            logits=True,
        ),
    ):
        assert to.measure(source, interval=None).value == expected
        assert to.measure(source, interval=None, mode="tally").value == pytest.approx(expected, rel=1e-12)
        assert to.fit(source, "temperature").n == 500
        report = str(to.audit(rows)).replace("predictions in memory", source.name)
        assert str(to.audit(source)).split() == report.split()  # lines of another name may break elsewhere
    assert to.read(loader, logits=True).rows == 500


def test_a_model_predicts_in_evaluation_mode_and_gets_its_modes_back() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(3))
    model[2].eval()
    x, y = torch.randn(40, 4), torch.randint(0, 3, (40,))
    mean = model[2].running_mean.clone()
    preds = read_batches([(x, y)], model=model, logits=True).collect()
    assert (model.training, model[1].training, model[2].training) == (True, True, False)
    assert torch.equal(model[2].running_mean, mean)
    np.testing.assert_array_equal(preds.logits, model.eval()(x).detach().double().numpy())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_batches_of_another_form_are_refused() -> None:
    z, y = predictions(20, 3)
    with refused("TO343", "generator", fix="TorchTally"):
        read_batches(batch for batch in [(z, y)])
    with refused("TO343"):
        read_batches(z)
    with refused("TO343"):
        to.read(z)
    with refused("TO344", "tuple of 3"):
        to.measure(read_batches([(z, y, y)]))
    with refused("TO344", "a mapping with logits"):
        to.measure(read_batches([{"logits": z, "labels": y}]))
    with refused("TO344", "str", fix="'logits'"):
        to.measure(read_batches([(z, y)], model=lambda x: "z", logits=True))
    with refused("TO344", "a mapping with x"):
        to.measure(read_batches([{"x": z}], model=lambda x: x, logits=True))
    with refused("TO108"):
        to.measure(read_batches([]))
    with refused("TO205"):
        to.read(torch.utils.data.DataLoader([(z[0], 0)]), logits=True, weight="w")
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(z, y))
    with refused("TO102", fix="logits=True"):
        to.measure(loader)
    with refused("TO102", fix="pass model="):
        to.measure(loader)
    names = to.read(loader, logits=True, classes=["a", "b", "c"]).collect()
    assert (names.classes, names.y.tolist()) == (("a", "b", "c"), y.tolist())
    assert read_batches([(z, y)], logits=True, classes=["a", "b", "c"]).collect().classes == ("a", "b", "c")


@pytest.mark.parametrize("all_lenses", [True, False])
def test_probabilities_passed_as_logits_cause_one_warning_at_the_line_of_the_call(all_lenses: bool) -> None:
    z, y = predictions(400_000, 3)  # more than one block
    tally = TorchTally(3, logits=True, all_lenses=all_lenses)
    with pytest.warns(UserWarning, match="TN108") as caught:
        tally.update(z.softmax(1), y)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("k", [3, 16, 17])
def test_the_fast_pass_over_valid_rows_gives_the_sums_of_validated_rows(k: int) -> None:
    z, y = predictions(400_000 // k, k)  # several tables, of which the last is shorter
    P = z.double().softmax(1).numpy()
    P[7] = 1 / k  # a tie
    labels = y.numpy()

    def sum_rows() -> Any:
        return sum_confidence(lambda start, stop: P[start:stop], labels, k, 1e-5)

    fast = sum_rows()
    assert (fast is None) == (k > 16)
    if fast is not None:
        reference = tally_default_lens(lambda a, b: to.Predictions(labels[a:b], P[a:b]), len(P), k)
        index, n, sums = pop_occupied_cells(*fast[:2])
        assert fast[2] == reference.counts.ties == 1
        np.testing.assert_array_equal(index, reference.cells.index)
        np.testing.assert_array_equal(n, reference.cells.n)
        np.testing.assert_allclose(sums, reference.cells.sums, rtol=1e-13)
    for change in (lambda: P.__setitem__((9, 0), np.nan), lambda: labels.__setitem__(4, k)):
        change()
        assert sum_rows() is None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_tally_of_any_dtype_counts_ties_and_equals_that_of_the_rows(dtype: torch.dtype) -> None:
    z, y = predictions(3_000, 4)
    P = z.softmax(1).to(dtype)
    P[7] = 0.25
    tally = TorchTally(4, all_lenses=False)
    tally.update(P, y)
    rows = to.Predictions(y.numpy(), P.double().numpy(), sum_tolerance=0.016)
    expected = tally_default_lens(lambda a, b: rows[a:b], 3_000, 4)
    same(tally.compute(), expected)
    assert tally.compute().counts.ties == expected.counts.ties >= 1
    assert tally.compute().dtype == str(torch.float32 if dtype == torch.bfloat16 else dtype).removeprefix("torch.")


def test_models_take_mappings_and_return_several_outputs() -> None:
    z, y = predictions(40, 3)
    expected = to.measure(read_batches([(z, y)], logits=True), interval=None).value

    def predict(inputs: Any, scale: Any) -> Any:
        return {"logits": inputs * scale, "hidden": scale}

    batches = [{"inputs": z, "scale": torch.tensor(1.0), "labels": y}]
    for source in (
        read_batches(batches, model=predict, logits=True, device="cpu"),
        read_batches([((z, {"unused": z}), y)], model=lambda pair: (pair[0], "hidden"), logits=True, device="cpu"),
    ):
        assert to.measure(source, interval=None).value == expected


def test_reading_a_loader_leaves_the_random_state_of_torch() -> None:
    z, y = predictions(40, 3)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(z, y), batch_size=7, shuffle=True)
    before = torch.random.get_rng_state()
    to.measure(to.read(loader, logits=True), interval=None)
    assert torch.equal(torch.random.get_rng_state(), before)
    dataset = torch.utils.data.TensorDataset(z, y)
    chosen = torch.utils.data.DataLoader(dataset, batch_sampler=[[0, 1], [2]])
    assert (to.read(chosen, logits=True).rows, to.read(chosen, logits=True).collect().n) == (None, 3)


def test_a_damaged_state_is_refused() -> None:
    tally = TorchTally(3)
    state = tally.state_dict() | {"row_counts": torch.zeros(1, dtype=torch.int64)}
    with refused("TO402", "(1,)"):
        tally.load_state_dict(state)
    with torch.inference_mode():
        made_for_inference = TorchTally(3)
    made_for_inference.reset()
    made_for_inference.load_state_dict(tally.state_dict())


def test_sums_stay_on_the_cpu_where_a_device_has_no_float64() -> None:
    from trueodds.torch.tensor_sums import has_float64

    assert has_float64("cuda:1")
    assert not has_float64("mps")
    assert TorchTally(3, device="mps").device.type == "cpu"
    assert TorchTally(3).to("mps").device.type == "cpu"


@pytest.mark.parametrize("all_lenses", [True, False])
@pytest.mark.parametrize("kind", ["classes", "multilabel", "confidence"])
def test_longer_labels_and_weights_are_not_truncated(kind: str, all_lenses: bool) -> None:
    z, y = predictions(12, 3)
    P = z.softmax(1)
    scores = P.amax(1) if kind == "confidence" else P
    labels = {"classes": y, "multilabel": (P > 0.4).long(), "confidence": y % 2}[kind]
    tally = TorchTally(3, kind=kind, all_lenses=all_lenses, weighted=True)  # type: ignore[arg-type]
    for n_scores, n_labels, n_weights in ((8, 12, 8), (8, 8, 12), (12, 8, 12), (12, 12, 8)):
        with refused("TO107", fix="truncated"):
            tally.update(scores[:n_scores], labels[:n_labels], torch.ones(n_weights))
    assert tally.n == 0
    tally.update(scores, labels, torch.zeros(12))  # padding alone
    assert tally.n == 0


@pytest.mark.parametrize("kind", ["multilabel", "confidence"])
@pytest.mark.parametrize("weighted", [True, False])
def test_log_odds_have_a_finite_log_loss(kind: str, weighted: bool) -> None:
    """A probability that is rounded to 1 made the log loss of a wrong label infinite."""
    z = torch.tensor([40.0, -50.0, 0.0, 3.0], dtype=torch.float64)
    y = torch.tensor([0, 1, 1, 1])
    w = torch.tensor([1.0, 2.0, 1.0, 0.5], dtype=torch.float64) if weighted else torch.ones(4).double()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y.double(), reduction="none")
    tally = TorchTally(1, kind=kind, logits=True, weighted=weighted)  # type: ignore[arg-type]
    columns = (z[:, None], y[:, None]) if kind == "multilabel" else (z, y)
    tally.update(*columns, w if weighted else None)
    assert tally.compute().score("log_loss")["mean"] == pytest.approx(float((w * loss).sum() / w.sum()), rel=1e-12)
    assert (tally.compute().counts.true_zeros, tally.compute().counts.ones) == (0, 0)


def test_integer_probabilities_are_counted_as_float64() -> None:
    tally = TorchTally(2)
    tally.update(torch.tensor([0, 1, 1, 0]), torch.tensor([0, 1, 1, 1]))
    assert tally.compute().dtype == "float64"
