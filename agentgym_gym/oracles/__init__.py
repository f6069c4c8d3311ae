"""Agents that know how to play one environment, to prove that it can be solved from end to end.

An oracle sees only observations, as any agent does: it reads neither the server's files nor its answers in
advance. `evaluate.load_oracle` makes one.
"""
