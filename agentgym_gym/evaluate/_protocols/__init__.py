"""Protocols: files that state how an evaluation is played, so that it can be repeated."""
