"""The parts of the studies that recalibrate predictions of real rows: obesity and ecology."""
