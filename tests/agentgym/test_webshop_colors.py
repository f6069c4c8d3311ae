"""The colours of WebShop's reward beside those of the WebShop that AgentGym ships."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import needs
from agentgym_servers._frame.data_files import read_json
from agentgym_servers.webshop._products import RequiredOption
from agentgym_servers.webshop._reward import option_matches


def test_each_colour_of_normalize_py_is_ours_in_the_same_order():
    needs.skip_without("agentgym")
    file = "agentenv-webshop/webshop/web_agent_site/engine/normalize.py"
    spec = importlib.util.spec_from_file_location("normalize", Path(os.environ["AGENTGYM"], file))
    theirs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(theirs)
    assert read_json("webshop", "colors.json") == theirs.COLOR_SET
    values = [f"{first} {second}" for first in theirs.COLOR_SET for second in theirs.COLOR_SET[::5]]
    for value in values:
        assert option_matches([value], [RequiredOption(theirs.normalize_color(value))]) == 1, value
