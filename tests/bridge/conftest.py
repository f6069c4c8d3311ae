"""The folder itself can be imported from, for `counting:bridge/Count-v0`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
