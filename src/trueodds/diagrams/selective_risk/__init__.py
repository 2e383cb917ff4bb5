"""The risk-coverage curve of selective prediction: error rate among the most confident predictions, by coverage."""
