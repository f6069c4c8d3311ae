"""Leases: which remote environments this process holds, on which server, and how many. Private."""
