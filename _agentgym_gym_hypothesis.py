"""The entry point that hypothesis calls when it is imported, so that ``st.from_type`` supports typed actions.

It is outside the package, because an import of any module inside imports the whole core and gymnasium, and
the import of hypothesis must stay fast for tests of other software.
"""

from __future__ import annotations

import sys


def setup() -> None:
    """Make the typed actions known that there are; later ones do it themselves when they are made."""
    templates = sys.modules.get("agentgym_gym._template_text")
    if templates is not None:
        templates.register_all()
