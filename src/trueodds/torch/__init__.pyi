# The public names of trueodds.torch; __init__.py loads each on first use.
from .metric import CalibrationError as CalibrationError
from .read_batches import read_batches as read_batches
from .tally import TorchTally as TorchTally
