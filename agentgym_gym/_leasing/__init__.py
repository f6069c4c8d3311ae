"""Leases: which remote environments are ours, on which server, and how many there may be. Private."""
