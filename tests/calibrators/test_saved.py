"""Files that were saved once keep loading, and keep saying what they said: they stay in this folder for good."""

import json
from pathlib import Path

import numpy as np
import pytest

import trueodds as to
from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.fitted_calibrator import calibrator_from_dict
from trueodds.core.errors import InputError

FOLDER = Path(__file__).parent / "saved"


def test_every_calibrator_has_a_file():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(CALIBRATORS.names()) - {"auto"}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_an_old_file_predicts_what_it_used_to(path):
    saved = json.loads(path.read_text(encoding="utf-8"))
    calibrator = calibrator_from_dict(saved["calibrator"])
    assert calibrator.predict_proba(
        saved["rows"], group=saved.get("group"), features=saved.get("features")
    ) == pytest.approx(np.array(saved["recalibrated"]), abs=1e-12)


def test_a_file_of_joblib_is_refused_with_what_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "model.joblib"
    path.write_bytes(b"\x80\x04\x95pickle")
    with pytest.raises(InputError, match=r"TO503.*not JSON.*model.joblib.*joblib or pickle wrote"):
        to.load(path)
