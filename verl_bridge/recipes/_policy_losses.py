"""The policy losses of a recipe: what each sets in verl, with the sources.

Each is proportional to the advantage, as the equal weight of episodes with a row for each turn requires
(``verl_bridge._credit.joined_rows.weigh``; tests/verl/test_policy_losses.py). verl's losses ``dro`` and
``clip_cov`` are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["LOSSES", "LossSettings", "PolicyLoss"]

PolicyLoss: TypeAlias = Literal["vanilla", "clip-higher", "gspo", "cispo"]


@dataclass(frozen=True)
class LossSettings:
    """The settings of a loss, of the group ``actor_rollout_ref.actor``.

    Attributes:
        clip: ``clip_ratio_low`` and ``clip_ratio_high``; None for verl's, 0.2 and 0.2.
        source: The loss and the source of these values, for a comment.
        mode: ``policy_loss.loss_mode``; None for verl's, ``vanilla``.
        dual: ``clip_ratio_c``; None for verl's, 3.
        row_mean: Whether it is defined with the mean over sequences, ``seq-mean-token-mean``.
    """

    clip: tuple[float, float] | None = None
    source: str = ""
    mode: str | None = None
    dual: float | None = None
    row_mean: bool = False


LOSSES: Mapping[PolicyLoss, LossSettings] = {
    "vanilla": LossSettings(),
    "clip-higher": LossSettings(
        (0.2, 0.28),
        "PPO's loss with DAPO's clip-higher (arXiv 2503.14476): unlikely tokens may become likelier. As in "
        "verl's examples/sglang_multiturn/run_qwen3_4b_dapo_multiturn.sh.",
        dual=10.0,
    ),
    "gspo": LossSettings(
        (3e-4, 4e-4),
        "GSPO (arXiv 2507.18071, section 5.1): the ratio of a whole sequence is clipped, so these limits are "
        "narrow. As in verl's examples/gspo_trainer/test_gspo_3b_math.sh.",
        mode="gspo",
        row_mean=True,
    ),
    "cispo": LossSettings(
        (10.0, 0.2),
        "CISPO (arXiv 2506.13585): the ratio is clipped from above and no token loses its gradient; a lower "
        "limit of 10 never applies. As in the scripts of verl's examples/cispo_trainer.",
        mode="cispo",
    ),
}
"""By its name; verl 0.7.1 to 0.9.1 have all of them."""
