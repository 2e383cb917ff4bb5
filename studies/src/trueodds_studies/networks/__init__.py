"""Study of the calibration of published networks for images, text and speech."""
