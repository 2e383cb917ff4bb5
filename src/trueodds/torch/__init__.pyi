# The public names of trueodds.torch; __init__.py loads each on first use.
from .losses import FocalLoss as FocalLoss
from .losses import KernelCalibrationLoss as KernelCalibrationLoss
from .losses import MMCELoss as MMCELoss
from .losses import SoftBinnedECELoss as SoftBinnedECELoss
from .metric import CalibrationError as CalibrationError
from .read_batches import read_batches as read_batches
from .tally import TorchTally as TorchTally
