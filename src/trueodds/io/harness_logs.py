"""Records in the logs of inspect_ai and HELM, converted to one flat record for each answer."""

from __future__ import annotations

import json
import math
import struct
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

from trueodds.core.errors import InputError, install_command
from trueodds.core.json_files import describe_json_error

_ZSTANDARD = 93  # the compression method, which Python 3.11 to 3.13 do not know
# Values of inspect_ai's scorers as numbers: correct, incorrect, partly correct, no answer.
_GRADES = {"C": 1, "I": 0, "P": 0.5, "N": 0}


def samples_of_eval_file(path: str) -> list[dict[str, Any]]:
    """Return the samples of a log of inspect_ai in the format .eval, a zip archive of JSON files.

    Raises TO301 if there is no such file, and TO303 if it cannot be read.
    """
    fix = "Convert it: inspect log convert --to json --output-dir json LOG."
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            members = [each for each in archive.infolist() if each.filename.startswith("samples/")]
            samples = [json.loads(_read_member(file, archive, each)) for each in members]
    except FileNotFoundError:
        raise InputError("TO301", "There is no such file.", repr(path), "Check the path.") from None
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile) as problem:
        raise InputError("TO303", f"{path} cannot be read as a log.", describe_json_error(problem), fix) from None
    converted = _convert_entries(samples, "sample", _sample)
    return sorted(converted, key=lambda sample: (str(sample.get("id")), str(sample.get("epoch") or 0).zfill(9)))


def _read_member(file: BinaryIO, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """The content of a file of the archive, which inspect_ai compresses by Zstandard."""
    if member.compress_type != _ZSTANDARD:
        return archive.read(member)
    try:
        import pyarrow
    except ImportError:
        raise InputError("TO303", "This log needs pyarrow.", repr(file.name), install_command("files")) from None
    file.seek(member.header_offset)
    name_length, extra_length = struct.unpack("<26xHH", file.read(30))
    file.seek(name_length + extra_length, 1)
    content: bytes = pyarrow.decompress(file.read(member.compress_size), member.file_size, "zstd", asbytes=True)
    return content


def convert_document(document: Any) -> Any:
    """Return the records of a log of inspect_ai or HELM; other documents are returned as they are."""
    if isinstance(document, Mapping):
        if isinstance(document.get("samples"), list) and "eval" in document:
            return _convert_entries(document["samples"], "samples", _sample)
        if isinstance(document.get("request_states"), list) and "adapter_spec" in document:
            return _helm_answers(document["request_states"])
    elif isinstance(document, list) and document and _is_helm_statistics(document[0]):
        return _convert_entries(document, "entry", _helm_statistics)
    return document


@contextmanager
def _located(place: str) -> Iterator[None]:
    """Raise TO303 with the place for an entry that lacks what the harness writes."""
    try:
        yield
    except (LookupError, TypeError, AttributeError) as problem:
        reason = f"no {problem}" if isinstance(problem, KeyError) else str(problem)
        fix = "Correct the entry, remove it and all entries of its question, or let the harness write the log again."
        raise InputError(
            "TO303", "An entry of the log is not as the harness writes it.", f"{place}: {reason}", fix
        ) from None


def _convert_entries(entries: list[Any], noun: str, convert: Callable[[Any], dict[str, Any]]) -> list[dict[str, Any]]:
    converted = []
    for number, entry in enumerate(entries):
        with _located(f"{noun} {number}"):
            converted.append(convert(entry))
    return converted


def _sample(sample: dict[str, Any]) -> dict[str, Any]:
    """A sample of inspect_ai whose grades are numbers, with its text as `completion`."""
    scores = {}
    for scorer, score in (sample.get("scores") or {}).items():
        value = score.get("value")
        scores[scorer] = score | {"value": _GRADES.get(value, value) if isinstance(value, str) else value}
    choices = (sample.get("output") or {}).get("choices") or [{}]
    completion = (choices[0].get("message") or {}).get("content")
    return sample | {"scores": scores, "completion": completion}


def _is_helm_statistics(record: Any) -> bool:
    stats = record.get("stats") if isinstance(record, Mapping) else None
    if not isinstance(stats, list) or not stats or not isinstance(stats[0], Mapping):
        return False
    return isinstance(stats[0].get("name"), Mapping)


def _helm_statistics(record: dict[str, Any]) -> dict[str, Any]:
    return record | {"stats": {stat["name"]["name"]: stat.get("mean") for stat in record["stats"]}}


def _helm_answers(states: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers of a scenario: options that were scored one by one, or a completion with its log-probability."""
    answers = []
    # Options by question, of which a perturbed copy is another one: index, log-probability, and state.
    options: dict[str, list[tuple[int, float, dict[str, Any]]]] = defaultdict(list)
    for number, state in enumerate(states):
        with _located(f"request_states {number}"):
            if state.get("request_mode") == "calibration":  # scores of the options without the question
                continue
            if state.get("reference_index") is None:
                answers.append(_helm_identity(state) | _helm_completion(state))
                continue
            question = json.dumps(_helm_identity(state), sort_keys=True)
            if not state["result"]["completions"]:
                raise LookupError("no completions")
            options[question].append((state["reference_index"], state["result"]["completions"][0]["logprob"], state))
    for question, scored in options.items():
        with _located(f"the options of {question}"):
            scored.sort(key=lambda option: option[0])
            state = scored[0][2]
            references = state["instance"]["references"]
            indices = [index for index, _, _ in scored]
            if len(set(indices)) < len(indices):
                raise LookupError(f"options that are scored twice: {indices}")
            if indices != list(range(len(references))):
                raise LookupError(f"{len(references)} options, of which {indices} are scored")
            answers.append(
                _helm_identity(state)
                | {
                    "logprobs": [logprob for _, logprob, _ in scored],
                    "label": next((i for i, each in enumerate(references) if "correct" in each.get("tags", ())), None),
                    "choices": [each["output"]["text"] for each in references],
                }
            )
    return answers


def _helm_identity(state: dict[str, Any]) -> dict[str, Any]:
    instance = state["instance"]
    fields = {"instance_id": instance.get("id"), "train_trial_index": state.get("train_trial_index")}
    return fields | {name: instance[name] for name in ("split", "sub_split", "perturbation") if instance.get(name)}


def _helm_completion(state: dict[str, Any]) -> dict[str, Any]:
    completions = (state.get("result") or {}).get("completions") or []
    if not completions:
        return {"completion": None, "confidence": None, "correct": None}
    text = completions[0]["text"].strip()
    answer = (state.get("output_mapping") or {}).get(text, text)
    right = [each["output"]["text"] for each in state["instance"]["references"] if "correct" in each.get("tags", ())]
    logprob = completions[0]["logprob"]  # exactly 0 where an API gives none
    confidence = math.exp(logprob) if logprob < 0 else None
    return {"completion": text, "confidence": confidence, "correct": int(answer.strip() in map(str.strip, right))}
