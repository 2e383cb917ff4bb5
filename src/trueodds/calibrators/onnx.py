"""Write a parametric calibration map as an ONNX graph."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from trueodds.calibrators.base import CalibrationMap, SoftmaxTerm
from trueodds.core.atomic_write import open_atomic
from trueodds.core.errors import InputError, install_command

OPSET = 17  # version of the ONNX operators
LOG_OF_ZERO = -1e30  # the log of an exact zero: finite, so that 0 · log 0 is 0, and below every other


def write_onnx(calibration_map: CalibrationMap, k: int, path: str | os.PathLike[str]) -> None:
    """Write the graph with input `probabilities` (n, K), or `logits`, and output `calibrated` (n, K), all float64.

    Raises InputError TO524 for a map that is no sequence of softmax mixtures, or if the library onnx is missing.
    """
    stages = calibration_map.mixture_stages(k)
    if stages is None:
        raise InputError(
            "TO524",
            "Only maps made of softmax(W log p + b) can be saved as ONNX.",
            calibration_map.name,
            "Save it as JSON, or fit a parametric one, for instance temperature, structured or dirichlet.",
        )
    try:
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        raise InputError("TO524", "Writing ONNX needs onnx.", "no onnx", install_command("onnx")) from None

    nodes: list[Any] = []
    constants: list[Any] = []

    def add_constant(name: str, value: Any) -> str:
        """Add a float64 constant to the graph and return its name."""
        constants.append(numpy_helper.from_array(np.asarray(value, dtype=np.float64), name))
        return name

    def add_node(kind: str, inputs: list[str], output: str, **settings: Any) -> str:
        """Add a node to the graph and return the name of its output."""
        nodes.append(helper.make_node(kind, inputs, [output], **settings))
        return output

    input_name = "logits" if calibration_map.logits else "probabilities"
    current, on_logits = input_name, calibration_map.logits
    for stage, terms in enumerate(stages):
        components = [
            _add_term_nodes(f"{stage}_{i}", term, current, on_logits, add_constant, add_node)
            for i, term in enumerate(terms)
        ]
        current = components[0]
        for i, component in enumerate(components[1:], 1):
            current = add_node("Add", [current, component], f"sum_{stage}_{i}")
        on_logits = False
    add_node("Identity", [current], "calibrated")
    shape = [None, k]
    graph = helper.make_graph(
        nodes,
        f"trueodds_{calibration_map.name}",
        [helper.make_tensor_value_info(input_name, TensorProto.DOUBLE, shape)],
        [helper.make_tensor_value_info("calibrated", TensorProto.DOUBLE, shape)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="trueodds")
    model.ir_version = 8  # the version of opset 17, which old runtimes can read
    onnx.checker.check_model(model)
    with open_atomic(path, "TO503") as file:
        file.write(model.SerializeToString())


def _add_term_nodes(
    suffix: str, term: SoftmaxTerm, input_name: str, on_logits: bool, add_constant: Any, add_node: Any
) -> str:
    """Add the nodes of one mixture component and return the name of its output.

    `suffix` makes the names of its tensors unique. `on_logits` says whether the input holds logits, not probabilities.
    """
    logs = input_name
    if not on_logits:
        tiny = np.finfo(np.float64).tiny
        min_prob = np.broadcast_to(term.min_prob, term.b.shape)
        threshold = tiny if term.zeros_only else np.maximum(min_prob, tiny)
        floored = add_node("Max", [input_name, add_constant(f"least_{suffix}", threshold)], f"floored_{suffix}")
        logs = add_node("Log", [floored], f"log_{suffix}")
        if term.zeros_only or not min_prob.all():
            log_of_zero = np.where(min_prob > 0, np.log(np.maximum(min_prob, tiny)), LOG_OF_ZERO)
            zero = add_node("Less", [input_name, add_constant(f"tiny_{suffix}", tiny)], f"is_zero_{suffix}")
            stand_in = add_constant(f"log_of_zero_{suffix}", log_of_zero)
            logs = add_node("Where", [zero, stand_in, logs], f"logs_{suffix}")
        if term.normalized:
            total = add_node(
                "MatMul", [input_name, add_constant(f"ones_{suffix}", np.ones((len(term.b), 1)))], f"total_{suffix}"
            )
            logs = add_node("Sub", [logs, add_node("Log", [total], f"log_total_{suffix}")], f"normalized_{suffix}")
    W = add_constant(f"W_{suffix}", term.W.T)
    product = add_node("MatMul" if term.W.ndim == 2 else "Mul", [logs, W], f"turned_{suffix}")
    eta = add_node("Add", [product, add_constant(f"b_{suffix}", term.b)], f"eta_{suffix}")
    q = add_node("Softmax", [eta], f"softmax_{suffix}", axis=1)
    return (
        q
        if term.weight == 1.0
        else str(add_node("Mul", [q, add_constant(f"weight_{suffix}", term.weight)], f"part_{suffix}"))
    )
