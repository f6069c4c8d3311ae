"""Execute the notebook of the docs and store its outputs: ``python docs/notebook.py``.

It needs ``nbclient`` and ``ipykernel``. Paths, times and versions of the machine are not stored.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parent / "howto" / "notebook.ipynb"


def executed(notebook: Any, folder: Path) -> Any:
    """Execute the cells of a notebook in a new kernel, in a folder, and return the notebook.

    Raises:
        nbclient.exceptions.CellExecutionError: A cell raises an error.
    """
    notebook.metadata = {"language_info": {"name": "python"}}
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources=resources, record_timing=False
    ).execute()
    notebook.metadata = {"language_info": {"name": "python"}}
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [_plain(output) for output in cell.outputs if output.output_type != "stream"]
    return notebook


def _plain(output: Any) -> Any:
    """Return an output without ids of the session, and without plain text beside HTML or an image."""
    output.pop("transient", None)
    if "metadata" in output:
        output.metadata = {}
    if len(output.get("data", ())) > 1:
        output.data.pop("text/plain", None)
    return output


def main() -> None:
    """Execute the notebook and write it back."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        executed(notebook, Path(folder))
    nbformat.write(notebook, NOTEBOOK)
    sys.stdout.write(f"wrote {NOTEBOOK.name}\n")


if __name__ == "__main__":
    main()
