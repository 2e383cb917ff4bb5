"""Study of binned calibration errors in a Gaussian mixture whose true error is known by quadrature."""
