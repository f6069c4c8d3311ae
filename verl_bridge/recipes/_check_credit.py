"""Check the settings of credit by turn: ``turn_rewards``, penalties, and this library's estimators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from verl_bridge._credit.estimators import BY_TURN, GIGPO, OMEGA, SUMMING, TURN_GAE, number_error
from verl_bridge._run.loop_arguments import turn_credit
from verl_bridge.recipes._finding import Finding, ok, problem, warning

if TYPE_CHECKING:
    from verl_bridge.recipes._verl_settings import RlSettings

__all__ = ["check_credit"]

_WITH_LOOP = "write the folder again with --integration agent-loop"


def check_credit(settings: RlSettings, arguments: Mapping[str, Any], verl: str) -> Iterator[Finding]:
    """Check whether the estimator, the agent loop and the version of verl support credit by turn."""
    estimator = settings.estimator
    if estimator in BY_TURN:
        yield from _check_own(settings, arguments)
    if estimator != GIGPO and settings.omega is not None:
        yield warning(
            "credit",
            f"algorithm.{OMEGA} is not used with {estimator}",
            f"delete it, or set algorithm.adv_estimator: {GIGPO}",
        )
    for name in turn_credit(arguments):
        if settings.interactions:
            yield problem("credit", f"interactions pass no {name} to verl", _WITH_LOOP)
        elif name != "turn_rewards":
            yield ok(
                "credit", f"training subtracts {name}={arguments[name]} from the reward of each such turn"
            )
    if arguments.get("turn_rewards") is not True or settings.interactions:
        return
    if estimator in SUMMING:
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


def _check_own(settings: RlSettings, arguments: Mapping[str, Any]) -> Iterator[Finding]:
    estimator, numbers = settings.estimator, {"gamma": settings.gamma}
    if estimator == GIGPO:
        numbers[OMEGA] = 1.0 if settings.omega is None else settings.omega
        purpose = "compares turns of the same state"
    else:
        numbers["lam"] = settings.lam
        purpose = "gives each turn one advantage, from one value of the critic"
    wrong = [
        (error, f"set algorithm.{name}: 1.0")
        for name, value in numbers.items()
        if (error := number_error(name, value))
    ]
    if arguments.get("drop_reasoning") is True:
        wrong.append(
            (
                f"{estimator} needs the tokens of all turns, and drop_reasoning trains on one reply only",
                "delete drop_reasoning in agent_loop.yaml, or set another algorithm.adv_estimator",
            )
        )
    if settings.interactions:
        wrong.append((f"{estimator} needs the record of turns, which interactions do not have", _WITH_LOOP))
    if estimator == TURN_GAE and settings.critic_enabled is not True:
        wrong.append(
            (f"{estimator} needs a critic, and verl starts one only for gae", "set critic.enable: true")
        )
    for text, advice in wrong:
        yield problem("credit", text, advice)
    if not wrong:
        listed = ", ".join(f"{name.removeprefix('gym_gigpo_')}={value}" for name, value in numbers.items())
        yield ok("credit", f"{estimator} {purpose}, with {listed}")
