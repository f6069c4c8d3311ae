"""The audit of an environment: is it fit to train and to test on?"""
