"""What do likelihood tests share? Logistic curves of the logit, their fits, laws and belts."""
