"""The audit of an environment, which shows whether it is fit to train and to test on."""
