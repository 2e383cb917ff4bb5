"""Are logs of inspect_ai and HELM one flat record per answer?

The structures follow the documentation of the two programs. `make doors` reads logs that inspect_ai itself wrote.
"""

from __future__ import annotations

import io
import json
import math
import struct
import zipfile
import zlib
from typing import Any

import numpy as np
import pyarrow
import pytest

import trueodds as to
from trueodds.core.errors import InputError


def sample(i: int, grade: Any, confidence: float | None) -> dict[str, Any]:
    score = {"value": grade, "answer": "yes", "metadata": {"confidence": confidence}}
    output = {"choices": [{"message": {"content": f"yes {i}"}}], "completion": f"yes {i}"}
    return {"id": i, "epoch": 1, "input": "?", "target": "yes", "output": output, "scores": {"judge": score}}


SAMPLES = [sample(0, "C", 80), sample(1, "I", 60), sample(2, "C", 90), sample(3, "N", 70)]
FIELDS = {"confidence": "scores.judge.metadata.confidence", "correct": "scores.judge.value", "percent": True}


def test_grades_of_a_json_log_are_numbers(tmp_path):
    log = {"version": 2, "status": "success", "eval": {"task": "exam"}, "samples": SAMPLES}
    (tmp_path / "log.json").write_text(json.dumps(log), encoding="utf-8")
    preds = to.read_answers(tmp_path / "log.json", **FIELDS).predictions
    assert (preds.p.tolist(), np.asarray(preds.y).tolist()) == ([0.8, 0.6, 0.9, 0.7], [1, 0, 1, 0])


def zstandard_archive(members: dict[str, bytes]) -> bytes:
    """A zip archive whose members are compressed by method 93, which `zipfile` cannot write before Python 3.14."""
    data, directory = io.BytesIO(), b""
    for name, content in members.items():
        packed, offset = pyarrow.compress(content, codec="zstd", asbytes=True), data.tell()
        sizes = struct.pack("<IIIHH", zlib.crc32(content), len(packed), len(content), len(name), 0)
        fixed = struct.pack("<HHHHH", 63, 0, 93, 0, 0)
        data.write(b"PK\x03\x04" + fixed + sizes + name.encode() + packed)
        directory += b"PK\x01\x02" + struct.pack("<H", 63) + fixed + sizes
        directory += struct.pack("<HHHII", 0, 0, 0, 0, offset) + name.encode()
    end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), data.tell(), 0)
    return data.getvalue() + directory + b"PK\x05\x06" + end


@pytest.mark.parametrize("compression", ["deflate", "zstandard"])
def test_an_eval_file_is_an_archive_of_samples(compression, tmp_path):
    path = tmp_path / "log.eval"
    members = {f"samples/{each['id']}_epoch_1.json": json.dumps(each).encode() for each in SAMPLES}
    members |= {"header.json": b"{}", "summaries.json": b"[]"}
    if compression == "zstandard":
        path.write_bytes(zstandard_archive(members))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
    answers = to.read_answers(path, question="id", **FIELDS)
    assert (answers.n_queries, answers.predictions.p.tolist()) == (4, [0.8, 0.6, 0.9, 0.7])


def test_a_file_that_is_no_archive_is_a_coded_error(tmp_path):
    (tmp_path / "log.eval").write_text("no archive", encoding="utf-8")
    with pytest.raises(InputError, match=r"TO303.*convert"):
        to.read_answers(tmp_path / "log.eval", **FIELDS)
    with pytest.raises(InputError, match="TO301"):
        to.read_answers(tmp_path / "none.eval", **FIELDS)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"scores": {"judge": "C"}}, "'get'"),
        ({"scores": ["C"]}, "'items'"),
        ({"output": {"choices": ["yes"]}}, "'get'"),
        ({"output": "yes"}, "'get'"),
    ],
)
def test_a_sample_that_is_not_as_inspect_ai_writes_it_is_a_coded_error_with_its_number(change, reason, tmp_path):
    samples = [SAMPLES[0], SAMPLES[1] | change]
    (tmp_path / "log.json").write_text(json.dumps({"eval": {}, "samples": samples}), encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        for each in samples:
            archive.writestr(f"samples/{each['id']}_epoch_1.json", json.dumps(each))
    for path, place in (("log.json", "samples 1: "), ("log.eval", "sample 1: ")):
        with pytest.raises(InputError, match=rf"TO303.*{place}.*{reason}"):
            to.read_answers(tmp_path / path, **FIELDS)


REFERENCES = [{"output": {"text": text}, "tags": ["correct"] if text == "b" else []} for text in "abc"]


def helm_state(i: int, text: str, log_prob: float, **more: Any) -> dict[str, Any]:
    instance = {"input": {"text": "?"}, "references": REFERENCES, "id": f"id{i}", "split": "test"}
    completion = {"text": text, "logprob": log_prob, "tokens": []}
    return {
        "instance": instance,
        "train_trial_index": 0,
        "result": {"success": True, "completions": [completion]},
    } | more


def write_helm(path: Any, states: list[dict[str, Any]]) -> None:
    path.write_text(json.dumps({"adapter_spec": {"method": "?"}, "request_states": states}), encoding="utf-8")


def test_completions_of_helm_have_the_probability_of_their_text(tmp_path):
    mapping = {"output_mapping": {"A": "a", "B": "b", "C": "c"}}
    states = [helm_state(0, " B", math.log(0.8), **mapping), helm_state(1, " C", math.log(0.4), **mapping)]
    write_helm(tmp_path / "scenario_state.json", states)
    answers = to.read_answers(tmp_path / "scenario_state.json", confidence="confidence", group="split")
    assert answers.predictions.p.tolist() == pytest.approx([0.8, 0.4])
    assert np.asarray(answers.predictions.y).tolist() == [1, 0]


def test_options_of_helm_that_were_scored_one_by_one_are_one_question(tmp_path):
    logs = [[-3.0, -1.0, -2.0], [-1.0, -4.0, -2.0]]
    states = [
        helm_state(i, "", logs[i][j], reference_index=j, request_mode=mode)
        for i in range(2)
        for j in (2, 0, 1)
        for mode in ("original", "calibration")
    ]
    write_helm(tmp_path / "scenario_state.json", states)
    preds = to.read_answers(tmp_path / "scenario_state.json", choices="choices", question="instance_id").predictions
    assert preds.p == pytest.approx(np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True))
    assert np.asarray(preds.y).tolist() == [1, 1]
    assert list(preds.classes) == ["a", "b", "c"]


def test_a_perturbed_copy_of_a_question_is_a_question_of_its_own(tmp_path):
    states = [helm_state(0, "", log_prob, reference_index=j) for j, log_prob in enumerate((-3.0, -1.0, -2.0))]
    copies = [helm_state(0, "", log_prob, reference_index=j) for j, log_prob in enumerate((-1.0, -2.0, -3.0))]
    for copy in copies:
        copy["instance"]["perturbation"] = {"name": "typos"}
    write_helm(tmp_path / "scenario_state.json", [*states, *copies])
    preds = to.read_answers(tmp_path / "scenario_state.json", choices="choices").predictions
    logs = np.array([[-3.0, -1.0, -2.0], [-1.0, -2.0, -3.0]])
    assert preds.p == pytest.approx(np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True))


def test_a_log_probability_of_0_which_stands_for_none_is_no_confidence_of_1(tmp_path):
    write_helm(tmp_path / "scenario_state.json", [helm_state(i, "b", 0.0) for i in range(3)])
    with pytest.raises(to.InputError, match="TO308"):
        to.read_answers(tmp_path / "scenario_state.json", confidence="confidence")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"result": {"success": True, "completions": []}}, "no completions"),
        ({"result": {"success": False}}, "no 'completions'"),
        ({"result": None}, "'NoneType'"),
        ({"result": {"completions": [{"text": ""}]}}, "no 'logprob'"),
        ({"instance": None}, "'NoneType'"),
    ],
)
def test_an_option_of_helm_without_a_score_is_a_coded_error_with_its_number(change, reason, tmp_path):
    states = [helm_state(0, "", -1.0, reference_index=j) for j in range(3)]
    write_helm(tmp_path / "scenario_state.json", [*states[:2], states[2] | change])
    with pytest.raises(InputError, match=rf"TO303.*request_states 2: .*{reason}"):
        to.read_answers(tmp_path / "scenario_state.json", choices="choices")


@pytest.mark.parametrize(
    ("scored", "reason"),
    [
        ((0, 2), r"3 options, of which \[0, 2\] are scored"),
        ((0, 0, 1, 2), r"options that are scored twice: \[0, 0, 1, 2\]"),
    ],
)
def test_a_question_of_helm_whose_options_are_not_scored_once_each_is_a_coded_error(scored, reason, tmp_path):
    write_helm(tmp_path / "scenario_state.json", [helm_state(7, "", -1.0, reference_index=j) for j in scored])
    with pytest.raises(InputError, match=rf"TO303.*id7.*{reason}.*all entries of its question"):
        to.read_answers(tmp_path / "scenario_state.json", choices="choices")


def test_a_completion_of_helm_that_is_empty_is_an_answer_without_a_confidence(tmp_path):
    empty = helm_state(1, "", -1.0) | {"result": {"success": True, "completions": []}}
    write_helm(tmp_path / "scenario_state.json", [helm_state(0, "b", -0.1), empty])
    with pytest.raises(InputError, match=r"TO308.*row 1"):
        to.read_answers(tmp_path / "scenario_state.json", confidence="confidence")


def test_statistics_of_helm_are_fields_by_their_name(tmp_path):
    def statistic(name: str, value: float) -> dict[str, Any]:
        return {"name": {"name": name, "split": "test"}, "count": 1, "sum": value, "mean": value}

    rows = [
        {
            "instance_id": f"id{i}",
            "train_trial_index": 0,
            "stats": [statistic("exact_match", c), statistic("stated", p)],
        }
        for i, (c, p) in enumerate([(1, 0.9), (0, 0.6)])
    ]
    (tmp_path / "per_instance_stats.json").write_text(json.dumps(rows), encoding="utf-8")
    preds = to.read_answers(
        tmp_path / "per_instance_stats.json", confidence="stats.stated", correct="stats.exact_match"
    ).predictions
    assert (preds.p.tolist(), np.asarray(preds.y).tolist()) == ([0.9, 0.6], [1, 0])
