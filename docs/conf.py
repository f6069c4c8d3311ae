"""Sphinx settings of the documentation; ``make site`` builds it into build/site. Nothing is downloaded."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import agentgym_gym

DOCS = Path(__file__).parent
ROOT_FILES = {"index": "README.md", "changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}

project = "agentgym-gym"
author = "The contributors of agentgym-gym"
version = release = agentgym_gym.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["plans", "records"]  # for developers: plans until they are done, and raw results

html_theme = "furo"
html_title = "agentgym-gym"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_show_copyright = False
copybutton_prompt_text = "$ "  # not copied
myst_heading_anchors = 4  # links such as many.md#leases, as on code hosts

autodoc_member_order = "groupwise"
autodoc_typehints = "description"  # types next to the description of each argument
autodoc_typehints_description_target = "documented"
autodoc_mock_imports = [  # large dependencies of verl_bridge, which the site does not show
    *("hydra", "omegaconf", "ray", "tensordict", "torch", "transformers", "verl"),
]
nitpick_ignore_regex = [  # references without a target on this site
    ("py:.*", r"(?!agentgym_gym|verl_bridge)\w+\..*"),  # of Python and of other libraries
    ("py:class", ".*"),  # in annotations: private classes, and names of types
    ("py:obj", r".*\.T"),  # type variables
]
default_role = "code"  # `name` in a docstring
napoleon_custom_sections = [("Class attributes", "attributes")]
napoleon_use_ivar = True


def plain_property(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:  # noqa: ARG001 - Sphinx's
    """Keep napoleon from reading the first words of a property, up to a colon, as its type."""
    if what == "property":
        lines[:0] = ["..", ""]


def from_root(app: Any, docname: str, content: list[str]) -> None:  # noqa: ARG001 - Sphinx's
    """Include a file of the root in the page that represents it, with links relative to docs/."""
    if docname not in ROOT_FILES:
        return
    text = (DOCS.parent / ROOT_FILES[docname]).read_text("utf-8")
    text = re.sub(r"(?<=\]\()(?!https?:|#)", "../", text).replace("](../docs/", "](")
    for page, file in ROOT_FILES.items():
        text = text.replace(f"](../{file}", f"]({page}.md")
    order = content[0][content[0].index("```{toctree}") :] if docname == "index" else ""
    content[0] = f"{text}\n{order}"


def pages_of_environments(app: Any, docname: str, content: list[str]) -> None:  # noqa: ARG001 - Sphinx's
    """List the page of each environment below the table of all of them."""
    if docname == "environments/README":
        content[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"


def scripts_of_search(app: Any, pagename: str, *_: object) -> None:
    """Add the scripts for search excerpts to the page of the search only; the texts are large."""
    if pagename == "search":
        app.add_js_file("page_texts.js")
        app.add_js_file("search_excerpts.js")


def write_page_texts(app: Any, exception: Exception | None) -> None:
    """Write the text of each page as a script, which a browser loads from the disk too."""
    if exception or app.builder.format != "html":
        return
    texts = {
        app.builder.get_target_uri(name): app.env.get_doctree(name).astext() for name in app.env.found_docs
    }
    script = f"window.pageTexts = {json.dumps(texts, ensure_ascii=False)};\n"
    (Path(app.outdir) / "_static" / "page_texts.js").write_text(script, "utf-8")


def setup(app: Any) -> None:
    """Register the callbacks; napoleon has the priority 500."""
    app.connect("source-read", from_root)
    app.connect("source-read", pages_of_environments)
    app.connect("autodoc-process-docstring", plain_property, priority=400)
    app.connect("html-page-context", scripts_of_search)
    app.connect("build-finished", write_page_texts)
