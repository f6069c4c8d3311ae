"""verl's trainer for supervised fine-tuning, on a CPU: ``python -m verl_bridge.cpu.sft KEY=VALUE ...``.

It accepts the settings of ``verl.trainer.sft_trainer``. That module's own entry point does not work: it opens
the process group with a backend that torch rejects on a CPU, and opens it again if one is open already.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from verl_bridge.cpu._plugin import install
from verl_bridge.cpu.overrides import sft_overrides

_SETTING = re.compile(r"[~+]{0,2}[\w.@]+=")  # a path after an option begins differently


def train(config: Any) -> None:
    """Train with a configuration, in this process only.

    Args:
        config: verl's configuration, composed by hydra.
    """
    import torch.distributed as dist
    from verl.trainer.sft_trainer import SFTTrainer

    # verl's workers read these; a store in memory never uses the address.
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        SFTTrainer(config=config).fit()
    finally:
        dist.destroy_process_group()


def with_overrides(arguments: list[str], overrides: list[str]) -> list[str]:
    """Return a command line of hydra with settings inserted before its own.

    hydra requires all settings in one place: they cannot be both before and after ``--config-path``.

    Args:
        arguments: The command line.
        overrides: The settings to add.
    """
    first = (index for index, word in enumerate(arguments) if _SETTING.match(word))
    position = next(first, len(arguments))
    return [*arguments[:position], *overrides, *arguments[position:]]


def main() -> None:
    """Train with the settings for a CPU, which settings on the command line override.

    Raises:
        SystemExit: it was started as one of several processes.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise SystemExit(
            "verl_bridge.cpu.sft trains in one process: start it with python -m, not with torchrun"
        )
    import hydra

    install()
    sys.argv[1:] = with_overrides(sys.argv[1:], sft_overrides())
    run = hydra.main(
        config_path="pkg://verl.trainer.config", config_name="sft_trainer_engine", version_base=None
    )
    run(train)()


if __name__ == "__main__":
    main()
