"""Write a calibration map that has a formula as an ONNX graph."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from trueodds.calibrators.base import CalibrationMap, SoftmaxTerm
from trueodds.calibrators.formula import LOG_OF_ZERO, Pieces, Target, Term, write_map
from trueodds.core.atomic_write import open_atomic
from trueodds.core.errors import InputError, install_command

OPSET = 17  # version of the ONNX operators
_OPERATORS = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div"} | {
    "log": "Log",
    "exp": "Exp",
    "least": "Min",
    "greatest": "Max",
}


def write_onnx(calibration_map: CalibrationMap, k: int, path: str | os.PathLike[str]) -> None:
    """Write the graph with input `probabilities` (n, K), or `logits`, and output `calibrated` (n, K), all float64.

    Raises InputError TO524 for a map without a formula, or if the library onnx is missing.
    """
    try:
        import onnx
        from onnx import TensorProto, helper
    except ImportError:
        raise InputError("TO524", "Writing ONNX needs onnx.", "no onnx", install_command("onnx")) from None

    builder = _GraphBuilder()
    input_name = "logits" if calibration_map.logits else "probabilities"
    stages, current = calibration_map.mixture_stages(k), input_name
    if stages is None:
        current = builder.join(write_map(builder, calibration_map, builder.split(input_name, k)))
    for i, terms in enumerate(stages or ()):
        current = builder.add_mixture(terms, current, calibration_map.logits and i == 0)
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


class _GraphBuilder(Target):
    """The nodes and constants of an ONNX graph. Methods that add one return the name of its output tensor."""

    language, code = "ONNX", "TO524"

    def __init__(self) -> None:
        self.nodes: list[Any] = []  # of NodeProto
        self.constants: list[Any] = []  # of TensorProto

    def number(self, value: float) -> str:
        return self.add_constant(f"number_{len(self.constants)}", np.array([[value]]))

    def add(self, operator: str, *inputs: str, **attributes: Any) -> Term:
        """Add a node that nothing else has to name."""
        return Term(self, self.add_node(operator, list(inputs), f"{operator}_{len(self.nodes)}", **attributes))

    def apply(self, function: str, *arguments: Term) -> Term:
        return self.add(_OPERATORS[function], *(each.text for each in arguments))

    def where_less(self, x: Term, limit: float, then: Term, otherwise: Term) -> Term:
        return self.add("Where", self.add("Less", x.text, self.number(limit)).text, then.text, otherwise.text)

    def piecewise(self, x: Term, pieces: Pieces) -> Term:
        from onnx import TensorProto

        breaks = self.add_constant(f"breaks_{len(self.constants)}", pieces.breaks[None])
        is_below = self.add("LessOrEqual" if pieces.right else "Less", breaks, x.text)  # (n, m)
        counts = self.add("Cast", is_below.text, to=TensorProto.INT64)
        axis = self.add_constant(f"axis_{len(self.constants)}", np.array([1]), np.int64)
        index = self.add("ReduceSum", counts.text, axis, keepdims=1)  # (n, 1)

        def of_piece(values: Any) -> Term:
            return self.add("Gather", self.add_constant(f"pieces_{len(self.constants)}", values), index.text)

        value = of_piece(pieces.coefficients[-1])
        for coefficients in pieces.coefficients[:-1][::-1]:
            value = value * (x - of_piece(pieces.origins)) + of_piece(coefficients)
        return value

    def split(self, P: str, k: int) -> list[Term]:
        """The columns (n, 1) of a matrix."""
        indices = [self.add_constant(f"column_{len(self.constants)}", np.array([j]), np.int64) for j in range(k)]
        return [self.add("Gather", P, index, axis=1) for index in indices]

    def join(self, columns: Sequence[Term]) -> str:
        return self.add("Concat", *(each.text for each in columns), axis=1).text

    def softmax_mixture(self, terms: Sequence[SoftmaxTerm], columns: Sequence[Term], on_logits: bool) -> list[Term]:
        return self.split(self.add_mixture(terms, self.join(columns), on_logits), len(columns))

    def add_mixture(self, terms: Sequence[SoftmaxTerm], input_name: str, on_logits: bool) -> str:
        """Add the sum of the components of a mixture."""
        start = len(self.nodes)
        first, *others = (
            self.add_softmax_term(f"{start}_{i}", term, input_name, on_logits) for i, term in enumerate(terms)
        )
        for other in others:
            first = self.add("Add", first, other).text
        return first

    def add_constant(self, name: str, value: Any, dtype: Any = np.float64) -> str:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype=dtype), name))
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
