"""Parts of the WebArena server, for tests that play or judge its tasks without a server.

Its browser is compared with WebArena's own code page by page, its rules case by case, and its sites are
played without Chromium; over HTTP these would take hours.
"""

from agentgym_servers._browser.actions import read_command
from agentgym_servers._browser.boxes import client_boxes
from agentgym_servers._browser.chromium import Chromium
from agentgym_servers._browser.memory import most_envs
from agentgym_servers._browser.tabs import ActionFailed, Tabs
from agentgym_servers.webarena import _judge as judge_module
from agentgym_servers.webarena._answers import _includes as includes
from agentgym_servers.webarena._answers import cleaned, matches_answer, matches_url
from agentgym_servers.webarena._data_folder import DataWorld
from agentgym_servers.webarena._episode import WebArenaBrowser
from agentgym_servers.webarena._evaluation import (
    CheckFailed,
    Scoring,
    answer_is_right,
    pages_are_right,
    wait_seconds,
)
from agentgym_servers.webarena._judge import Judge
from agentgym_servers.webarena._site_server import HEADER, SiteServer
from agentgym_servers.webarena._sites import SITES, host_of
from agentgym_servers.webarena._sites.addresses import OWN_ADDRESSES
from agentgym_servers.webarena._sites.state import fresh_state
from agentgym_servers.webarena._sites.web import signed_in_cookie
from agentgym_servers.webarena._task import WebArenaTask
from agentgym_servers.webarena._templates import TEMPLATES
from agentgym_servers.webarena._world import world_of

__all__ = [
    "HEADER",
    "OWN_ADDRESSES",
    "SITES",
    "TEMPLATES",
    "ActionFailed",
    "CheckFailed",
    "Chromium",
    "DataWorld",
    "Judge",
    "Scoring",
    "SiteServer",
    "Tabs",
    "WebArenaBrowser",
    "WebArenaTask",
    "answer_is_right",
    "cleaned",
    "client_boxes",
    "fresh_state",
    "host_of",
    "includes",
    "judge_module",
    "matches_answer",
    "matches_url",
    "most_envs",
    "pages_are_right",
    "read_command",
    "signed_in_cookie",
    "wait_seconds",
    "world_of",
]
