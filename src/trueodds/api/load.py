"""Load a calibrator, a tally or a monitor that was saved in a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from trueodds.core.json_files import read_schema_family
from trueodds.core.settings import check
from trueodds.core.signatures import checks_arguments
from trueodds.tallies.tally import Tally

if TYPE_CHECKING:
    from trueodds.calibrators.fitted_calibrator import FittedCalibrator
    from trueodds.monitoring.monitor import Monitor


@checks_arguments
def load(path: Any) -> FittedCalibrator | Tally | Monitor:
    """Load a calibrator, a tally or a monitor that was written by `save`.

    The content of the file is validated. No pickle is ever read.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    FittedCalibrator, Tally or Monitor
        What the file contains.

    Raises
    ------
    InputError
        TO503 if the file is not a saved calibrator, TO504 if a later version saved it, TO505 for a missing or invalid
        value, TO402 for an invalid tally, TO407 if the file of a tally cannot be read, TO905 for an invalid monitor.

    See Also
    --------
    fit : Fit a calibrator.
    tally : Count predictions in a tally.
    Monitor : Monitor a deployed model.

    Examples
    --------
    >>> import trueodds as to
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     to.fit(([0, 1, 1, 0], [0.1, 0.8, 0.7, 0.3]), "identity").save(f"{folder}/identity.json")
    ...     to.load(f"{folder}/identity.json").method
    'identity'
    """
    from trueodds.calibrators import fitted_calibrator
    from trueodds.tallies import tally_reader

    check("path", path, str | os.PathLike)
    family = read_schema_family(path)
    if family == "trueodds.tally":
        return tally_reader.load(path)
    if family == "trueodds.monitor_state":
        from trueodds.monitoring import monitor

        return monitor.load(path)
    return fitted_calibrator.load(path)
