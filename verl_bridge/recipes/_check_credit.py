"""Check the settings of credit by turn: ``turn_rewards`` and the estimator ``gym_gigpo``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from verl_bridge._credit.estimators import GIGPO, OMEGA, SUMMING, number_error
from verl_bridge.recipes._finding import Finding, ok, problem, warning

if TYPE_CHECKING:
    from verl_bridge.recipes._verl_settings import RlSettings

__all__ = ["check_credit"]

_WITH_LOOP = "write the folder again with --integration agent-loop"


def check_credit(settings: RlSettings, arguments: Mapping[str, Any], verl: str) -> Iterator[Finding]:
    """Check whether the estimator, the agent loop and the version of verl support credit by turn."""
    estimator = settings.estimator
    if estimator == GIGPO:
        yield from _check_gigpo(settings, arguments)
    elif settings.omega is not None:
        yield warning(
            "credit",
            f"algorithm.{OMEGA} is not used with {estimator}",
            f"delete it, or set algorithm.adv_estimator: {GIGPO}",
        )
    if arguments.get("turn_rewards") is not True:
        return
    if settings.interactions:
        yield problem("credit", "interactions pass no turn_rewards to verl", _WITH_LOOP)
    elif estimator in SUMMING:
        yield warning(
            "credit",
            f"turn_rewards changes nothing with {estimator}, which sums the rewards of an episode",
            "delete turn_rewards, or set algorithm.adv_estimator: gae, or another with a discount",
        )
    elif estimator == "reinforce_plus_plus" and verl.startswith(("0.7.", "0.8.")):
        yield warning(
            "credit",
            "reinforce_plus_plus of this verl restarts its sum of rewards at each observation: a turn gets "
            "credit for its own reward only, and none for what follows it",
            "use verl 0.9, or algorithm.adv_estimator: gae",
        )
    else:
        yield ok("credit", f"{estimator} gets each turn's reward at its last token")


def _check_gigpo(settings: RlSettings, arguments: Mapping[str, Any]) -> Iterator[Finding]:
    numbers = {"gamma": settings.gamma, OMEGA: 1.0 if settings.omega is None else settings.omega}
    wrong = [
        (error, f"set algorithm.{name}: 1.0")
        for name, value in numbers.items()
        if (error := number_error(name, value))
    ]
    if arguments.get("drop_reasoning") is True:
        wrong.append(
            (
                f"{GIGPO} compares the tokens of all turns, and drop_reasoning trains on the last reply only",
                "delete drop_reasoning in agent_loop.yaml, or set algorithm.adv_estimator: grpo",
            )
        )
    if settings.interactions:
        wrong.append((f"{GIGPO} needs the record of turns, which interactions do not have", _WITH_LOOP))
    for text, advice in wrong:
        yield problem("credit", text, advice)
    if not wrong:
        gamma, omega = numbers.values()
        yield ok("credit", f"{GIGPO} compares turns of the same state, with gamma={gamma}, omega={omega}")
