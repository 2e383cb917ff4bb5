"""Study of the recalibration of a random forest on the obesity data of the MCLLO paper."""
