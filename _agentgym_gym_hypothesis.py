"""What hypothesis runs when it is imported, so that ``st.from_type`` knows typed actions.

It lies outside the package: to import anything inside is to import all of the core, and gymnasium with it,
and hypothesis is to stay cheap for who tests something else.
"""

from __future__ import annotations

import sys


def setup() -> None:
    """Make the typed actions known that there are; later ones do it themselves when they are made."""
    templates = sys.modules.get("agentgym_gym._templates")
    if templates is not None:
        templates.register_all()
