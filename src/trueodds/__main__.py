"""`python -m trueodds` is the command `trueodds`."""

import sys

from trueodds.cli import main

sys.exit(main())
