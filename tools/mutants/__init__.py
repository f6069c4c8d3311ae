"""Faults planted in the code one at a time, to find out which of them no test notices: ``make mutants``."""
