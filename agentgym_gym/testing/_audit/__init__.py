"""The audit of an environment: whether it is fit to train and to test on."""
