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
        from onnx import TensorProto, helper
    except ImportError:
        raise InputError("TO524", "Writing ONNX needs onnx.", "no onnx", install_command("onnx")) from None

    builder = _GraphBuilder()
    input_name = "logits" if calibration_map.logits else "probabilities"
    current, on_logits = input_name, calibration_map.logits
    for stage, terms in enumerate(stages):
        components = [
            builder.add_softmax_term(f"{stage}_{i}", term, current, on_logits) for i, term in enumerate(terms)
        ]
        current = components[0]
        for i, component in enumerate(components[1:], 1):
            current = builder.add_node("Add", [current, component], f"sum_{stage}_{i}")
        on_logits = False
    builder.add_node("Identity", [current], "calibrated")
    shape = [None, k]
    graph = helper.make_graph(
        builder.nodes,
        f"trueodds_{calibration_map.name}",
        [helper.make_tensor_value_info(input_name, TensorProto.DOUBLE, shape)],
        [helper.make_tensor_value_info("calibrated", TensorProto.DOUBLE, shape)],
        builder.constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="trueodds")
    model.ir_version = 8  # the version of opset 17, which old runtimes can read
    onnx.checker.check_model(model)
    with open_atomic(path, "TO503") as file:
        file.write(model.SerializeToString())


class _GraphBuilder:
    """The nodes and constants of an ONNX graph. Methods that add one return the name of its output tensor."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []  # of NodeProto
        self.constants: list[Any] = []  # of TensorProto, float64

    def add_constant(self, name: str, value: Any) -> str:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype=np.float64), name))
        return name

    def add_node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        from onnx import helper

        self.nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def add_softmax_term(self, suffix: str, term: SoftmaxTerm, input_name: str, on_logits: bool) -> str:
        """Add the nodes of one component of a mixture, weight · softmax(W log p + b).

        `suffix` makes the names of its tensors unique. `on_logits` says whether the input holds logits, which take the
        place of log p.
        """
        logs = input_name if on_logits else self._add_logs(suffix, term, input_name)
        W = self.add_constant(f"W_{suffix}", term.W.T)
        product = self.add_node("MatMul" if term.W.ndim == 2 else "Mul", [logs, W], f"product_{suffix}")
        eta = self.add_node("Add", [product, self.add_constant(f"b_{suffix}", term.b)], f"eta_{suffix}")
        q = self.add_node("Softmax", [eta], f"softmax_{suffix}", axis=1)
        if term.weight == 1.0:
            return q
        weight = self.add_constant(f"weight_{suffix}", term.weight)
        return self.add_node("Mul", [q, weight], f"component_{suffix}")

    def _add_logs(self, suffix: str, term: SoftmaxTerm, input_name: str) -> str:
        """Add the nodes of the logarithms of probabilities, limited below and normalized as the term requires."""
        tiny = np.finfo(np.float64).tiny
        min_prob = term.min_prob_by_class
        threshold = tiny if term.zeros_only else np.maximum(min_prob, tiny)
        limited = self.add_node(
            "Max", [input_name, self.add_constant(f"threshold_{suffix}", threshold)], f"limited_{suffix}"
        )
        logs = self.add_node("Log", [limited], f"log_{suffix}")
        if term.zeros_only or not min_prob.all():
            log_of_zero = np.where(min_prob > 0, np.log(np.maximum(min_prob, tiny)), LOG_OF_ZERO)
            is_zero = self.add_node("Less", [input_name, self.add_constant(f"tiny_{suffix}", tiny)], f"zero_{suffix}")
            replacement = self.add_constant(f"log_of_zero_{suffix}", log_of_zero)
            logs = self.add_node("Where", [is_zero, replacement, logs], f"logs_{suffix}")
        if term.normalized:
            ones = self.add_constant(f"ones_{suffix}", np.ones((len(term.b), 1)))
            total = self.add_node("MatMul", [input_name, ones], f"total_{suffix}")
            log_total = self.add_node("Log", [total], f"log_total_{suffix}")
            logs = self.add_node("Sub", [logs, log_total], f"normalized_{suffix}")
        return logs
