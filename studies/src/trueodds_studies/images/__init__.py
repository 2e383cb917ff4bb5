"""Study of the recalibration of CIFAR-10 image classifiers."""
