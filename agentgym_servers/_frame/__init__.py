"""Shared parts of all servers: applications, limits, environment stores, seeded draws, oracles."""
