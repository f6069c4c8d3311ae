"""Leases: the remote environments that this process uses, by server. Private."""
