"""Write a parametric calibration map as an ONNX graph."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from trueodds.calibrators.base import CalibrationMap, SoftmaxTerm
from trueodds.core.atomic_write import open_atomic
from trueodds.core.errors import InputError, install_command

OPSET = 17
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

    def constant(name: str, value: Any) -> str:
        constants.append(numpy_helper.from_array(np.asarray(value, dtype=np.float64), name))
        return name

    def node(kind: str, inputs: list[str], output: str, **settings: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [output], **settings))
        return output

    input_name = "logits" if calibration_map.logits else "probabilities"
    current, on_logits = input_name, calibration_map.logits
    for stage, terms in enumerate(stages):
        parts = [
            _add_term_nodes(f"{stage}_{i}", term, current, on_logits, constant, node) for i, term in enumerate(terms)
        ]
        current = parts[0]
        for i, part in enumerate(parts[1:], 1):
            current = node("Add", [current, part], f"sum_{stage}_{i}")
        on_logits = False
    node("Identity", [current], "calibrated")
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


def _add_term_nodes(i: str, term: SoftmaxTerm, input_name: str, on_logits: bool, constant: Any, node: Any) -> str:
    """Add the nodes of one mixture component and return the name of its output."""
    logs = input_name
    if not on_logits:
        threshold = constant(f"least_{i}", term.min_prob or np.finfo(np.float64).tiny)
        logs = node("Log", [node("Max", [input_name, threshold], f"floored_{i}")], f"log_{i}")
        if not term.min_prob:
            zero = node("Less", [input_name, threshold], f"is_zero_{i}")
            logs = node("Where", [zero, constant(f"nothing_{i}", LOG_OF_ZERO), logs], f"logs_{i}")
    turned = node("MatMul", [logs, constant(f"W_{i}", term.W.T)], f"turned_{i}")
    eta = node("Add", [turned, constant(f"b_{i}", term.b)], f"eta_{i}")
    q = node("Softmax", [eta], f"softmax_{i}", axis=1)
    return q if term.weight == 1.0 else str(node("Mul", [q, constant(f"weight_{i}", term.weight)], f"part_{i}"))
