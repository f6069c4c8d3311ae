"""The speed of the local server of MiniWoB: steps per second of eight episodes at once.

The oracle plays a task of each page. The figures are those of `webarena.py`.

Run it with ``python benchmarks/miniwob.py``.
"""

from __future__ import annotations

from webarena import measure

if __name__ == "__main__":
    measure("MiniWoB")
