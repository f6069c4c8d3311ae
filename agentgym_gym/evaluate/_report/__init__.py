"""The report: runs and all their episodes in one static HTML page.

The page makes no network requests. Text from models and servers is embedded as compressed data, and shown
only as plain text.
"""

from __future__ import annotations

from agentgym_gym.evaluate._report.page import Report, write_report

__all__ = ["Report", "write_report"]
