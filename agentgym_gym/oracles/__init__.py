"""Agents that know how to play one environment, to prove that it can be solved from end to end.

An oracle plays by what it is shown, as any agent does: it reads neither the server's files nor its answers
in advance. What it makes out of the observation is its own business. `evaluate.load_oracle` makes one.
"""
