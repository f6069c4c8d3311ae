"""The report: runs and all their episodes in one static page, to be opened from a file.

The page loads nothing and sends nothing. What models and servers wrote is compressed data in it, and is shown
as text alone.
"""

from __future__ import annotations

from agentgym_gym.evaluate._report.page import Report, write_report

__all__ = ["Report", "write_report"]
