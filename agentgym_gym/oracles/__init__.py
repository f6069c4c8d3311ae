"""Agents that know how to play one environment, to prove that it can be solved from end to end.

Those of TextCraft, Maze and Wordle see only observations, as any agent does. The others know the tasks of
this project's own servers, whose worlds are made here from a seed; what they know is read here, and never
over HTTP. `evaluate.load_oracle` makes one.
"""
