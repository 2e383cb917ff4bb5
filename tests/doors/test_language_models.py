"""Are the files of lm-evaluation-harness and inspect_ai, written by these libraries, read as they are?"""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import trueodds as to

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
lm_eval = pytest.importorskip("lm_eval")
inspect_ai = pytest.importorskip("inspect_ai")
pytestmark = pytest.mark.filterwarnings("ignore")

N = 300
LOGS = np.random.default_rng(0).normal(-12, 2, (N, 4))


@pytest.fixture(scope="module")
def harness(tmp_path_factory) -> Any:
    """The results of a task of 300 questions, for a model with given log-likelihoods, and the file of its samples."""
    import_module("trueodds.integrations.lm_eval")  # it registers the aggregations
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    folder = tmp_path_factory.mktemp("harness")
    os.environ["HF_HOME"] = str(folder / "cache")
    truth = np.exp(LOGS / 2) / np.exp(LOGS / 2).sum(axis=1, keepdims=True)  # the model is overconfident
    labels = (truth.cumsum(axis=1) > np.random.default_rng(1).random((N, 1))).argmax(axis=1)
    rows = [
        {"question": f"question {i}", "choices": list("ABCD"), "answer": int(y), "subject": ["law", "art"][i % 2]}
        for i, y in enumerate(labels)
    ]
    (folder / "data.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    class GivenLogs(LM):
        def loglikelihood(self, requests, disable_tqdm=False):
            return [(float(LOGS[request.doc_id, request.idx]), False) for request in requests]

        def generate_until(self, requests, disable_tqdm=False):
            raise NotImplementedError

        loglikelihood_rolling = generate_until

    task = {
        "task": "exam",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(folder / "data.jsonl")}},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "{{question}}",
        "doc_to_choice": "choices",
        "doc_to_target": "answer",
        "metric_list": [{"metric": "acc"}, {"metric": "likelihood", "aggregation": "ece", "higher_is_better": False}],
    }
    after = {"include": "exam.yaml", "task": "exam_recalibrated"}
    after["metric_list"] = [{"metric": "likelihood", "aggregation": "ece_recalibrated", "higher_is_better": False}]
    (folder / "exam.yaml").write_text(yaml.safe_dump(task), encoding="utf-8")
    (folder / "exam_recalibrated.yaml").write_text(yaml.safe_dump(after), encoding="utf-8")
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    tasks = ["exam", "exam_recalibrated"]
    results = lm_eval.simple_evaluate(
        model=GivenLogs(), tasks=tasks, task_manager=manager, log_samples=True, bootstrap_iters=0
    )
    tracker = EvaluationTracker(output_path=str(folder / "results"))
    tracker.general_config_tracker.model_name_sanitized = "given"
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for name in tasks:
        tracker.save_results_samples(task_name=name, samples=samples[name])
    (file,) = (folder / "results").rglob("samples_exam_2*.jsonl")
    return results["results"], file, labels


def test_the_file_of_log_samples_has_the_likelihoods_of_the_options(harness):
    _, file, labels = harness
    answers = to.read_answers(file, options="filtered_resps", answer="target", group="doc.subject", question="doc_id")
    preds = answers.predictions
    order = np.argsort([int(name) for name in answers.ids])
    expected = np.exp(LOGS) / np.exp(LOGS).sum(axis=1, keepdims=True)
    assert preds.p[order] == pytest.approx(expected)
    assert np.asarray(preds.y)[order].tolist() == labels.tolist()


def test_the_aggregations_are_the_errors_before_and_after_a_cross_fitted_temperature(harness):
    results, file, _ = harness
    preds = to.read_answers(file, options="filtered_resps", answer="target").predictions
    for task, name in (("exam", "ece"), ("exam_recalibrated", "ece_recalibrated")):
        expected = to.measure(preds, name, interval=None).value
        assert results[task]["likelihood,none"] == pytest.approx(expected, abs=1e-12)
    assert results["exam_recalibrated"]["likelihood,none"] < results["exam"]["likelihood,none"]


def test_a_table_has_a_column_before_and_after(harness):
    _, file, _ = harness
    preds = to.read_answers(file, options="filtered_resps", answer="target").predictions
    table = to.table({"model": preds}, ["ece", "ece_recalibrated"], interval=None)
    assert "ece_recalibrated" in str(table.frame().columns.tolist()) or "ece_recalibrated" in str(table)


@pytest.mark.parametrize("log_format", ["eval", "json"])
def test_logs_of_inspect_hold_confidence_and_grade(log_format, tmp_path, monkeypatch):
    from inspect_ai import Task
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Score, accuracy, scorer
    from inspect_ai.solver import solver

    monkeypatch.chdir(tmp_path)
    stated = [60, 70, 80, 90] * 5
    right = [i % 3 != 0 for i in range(20)]

    @solver
    def answer():  # mockllm counts tokens with a file from the internet
        async def solve(state, generate):
            state.output = ModelOutput.from_content("mockllm/model", "yes" if right[int(state.sample_id)] else "no")
            return state

        return solve

    @scorer(metrics=[accuracy()])
    def judge():
        async def score(state, target):
            i = int(state.sample_id)
            grade = "C" if state.output.completion == target.text else "I"
            return Score(value=grade, answer=state.output.completion, metadata={"confidence": stated[i]})

        return score

    dataset = [Sample(id=i, input=f"question {i}", target="yes", metadata={"subject": "law"}) for i in range(20)]
    task = Task(dataset=dataset, solver=answer(), scorer=judge(), name="exam")
    (log,) = inspect_ai.eval(
        task, model="mockllm/model", log_dir=str(tmp_path / "logs"), log_format=log_format, display="none"
    )
    assert log.status == "success"
    (file,) = Path(tmp_path, "logs").glob(f"*.{log_format}")
    answers = to.read_answers(
        file,
        confidence="scores.judge.metadata.confidence",
        correct="scores.judge.value",
        percent=True,
        question="id",
        group="metadata.subject",
    )
    order = np.argsort([int(name) for name in answers.ids])
    assert answers.predictions.p[order] == pytest.approx(np.array(stated) / 100)
    assert np.asarray(answers.predictions.y)[order].tolist() == [int(each) for each in right]
