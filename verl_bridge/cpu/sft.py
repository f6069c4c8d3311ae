"""verl's trainer for supervised fine-tuning, on a CPU: ``python -m verl_bridge.cpu.sft KEY=VALUE ...``.

It takes the settings of ``verl.trainer.sft_trainer``. That module's own entry cannot be used: it opens the
process group by a backend that torch refuses on a CPU, and opens it again where it is open already.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from verl_bridge.cpu._plugin import install
from verl_bridge.cpu.overrides import sft_overrides

_SETTING = re.compile(r"[~+]{0,2}[\w.@]+=")  # a path that follows an option begins otherwise


def train(config: Any) -> None:
    """Train as the configuration says, in this one process.

    Args:
        config: verl's, composed by hydra.
    """
    import torch.distributed as dist
    from verl.trainer.sft_trainer import SFTTrainer

    # verl's workers read these, though with a store in memory nobody dials the address.
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        SFTTrainer(config=config).fit()
    finally:
        dist.destroy_process_group()


def with_overrides(arguments: list[str], overrides: list[str]) -> list[str]:
    """Return a command line of hydra with settings before its own.

    hydra takes settings in one place alone, so that they cannot stand before ``--config-path`` while others
    stand behind it.

    Args:
        arguments: The command line.
        overrides: The settings to add.
    """
    first = (at for at, word in enumerate(arguments) if _SETTING.match(word))
    place = next(first, len(arguments))
    return [*arguments[:place], *overrides, *arguments[place:]]


def main() -> None:
    """Read the command line: what it says comes after, and so beats, the settings for a CPU.

    Raises:
        SystemExit: it was started as one of several processes.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise SystemExit("verl_bridge.cpu.sft trains in one process: start it by python -m, not by torchrun")
    import hydra

    install()
    sys.argv[1:] = with_overrides(sys.argv[1:], sft_overrides())
    run = hydra.main(
        config_path="pkg://verl.trainer.config", config_name="sft_trainer_engine", version_base=None
    )
    run(train)()


if __name__ == "__main__":
    main()
