"""The agents of a run: their names and settings, their factories, and the engines of their models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_gym._cli.console import err, renamed
from agentgym_gym._cli.declared import marked
from agentgym_gym._cli.plans import AgentPlan, ChatArgument
from agentgym_gym._cli.resolve_env import find_modules_here
from agentgym_gym.errors import Argument, BadOption
from agentgym_gym.evaluate._agents import Agent, maker_from
from agentgym_gym.evaluate._chat.prompt import ChatPrompt
from agentgym_gym.evaluate._figures.prices import Price, price_of

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment
    from agentgym_gym.evaluate._chat.agent import ChatAgent
    from agentgym_gym.evaluate._chat.limits import RequestLimits
    from agentgym_gym.evaluate._engines import Engine
    from agentgym_gym.evaluate._protocol import AppliedProtocol
    from agentgym_gym.rollout._messages import Message

__all__ = ["Player", "players_of"]


_CHAT_ARGUMENTS = marked(AgentPlan, ChatArgument)
_NO_KEY = "AGENTGYM_ENGINE_API_KEY"  # a variable that is never set


@dataclass(frozen=True)
class Player:
    """One agent of a run.

    Attributes:
        name: The name of the agent in records and folders.
        plan: The agent's part of the run plan.
        seed: Random seed; None for no seed.
        engine: The engine that serves the agent's model, or None.
    """

    name: str
    plan: AgentPlan
    seed: int | None
    engine: Engine | None = None

    @property
    def is_model(self) -> bool:
        """Whether the agent is a model with an OpenAI-compatible chat API."""
        return self.plan.agent is None

    @property
    def uses_tools(self) -> bool:
        """Whether the agent uses native tool calls for its actions."""
        return self.plan.tools == "native"

    @property
    def server_key(self) -> str:
        """A text that is equal for models on the same server."""
        return self.plan.base_url or "" if self.engine is None else f"engine of {self.name}"

    def under(self, protocol: AppliedProtocol | None) -> Player:
        """Return the agent with the protocol's settings of a model."""
        if protocol is None or not self.is_model:
            return self
        return replace(self, plan=replace(self.plan, **protocol.model_settings))

    def price(self, prices: Mapping[str, Price]) -> Price | None:
        """Return the price of a model's tokens, or None."""
        return price_of(self.name, prices) if self.is_model else None

    def maker(
        self,
        environment: Environment | None,
        system_prompt: str | None = None,
        limits: RequestLimits | None = None,
    ) -> Callable[[], Agent]:
        """Return a factory for the agent; the runner calls it once per concurrent episode.

        Args:
            environment: The environment's entry in the catalogue; None for an environment of another library.
            system_prompt: System prompt for a model, in place of the environment's.
            limits: The limits of a model's requests.

        Raises:
            BadOption: The agent does not exist, or one of its options is invalid.
            MissingExtra: A package that the agent requires is not installed.
        """
        if self.plan.agent is not None:
            find_modules_here()
            return maker_from(self.plan.agent, environment, self.seed or 0)
        base_url = self.plan.base_url if self.engine is None else self.engine.base_url
        agent = self._chat_agent(base_url, system_prompt)
        if limits is not None:
            agent.limits = limits
        return agent.clone

    async def check_server(self) -> None:
        """Check that the server of a model accepts connections; an engine is checked when it starts.

        Raises:
            SetupError: It does not.
        """
        if self.is_model and self.engine is None:
            await self._chat_agent(self.plan.base_url, None).check_server()

    def messages_before(self, system_prompt: str | None) -> list[Message]:
        """Return the messages before the first observation that a model receives.

        Args:
            system_prompt: The system prompt of the environment, or its replacement.
        """
        prompt = ChatPrompt() if self.plan.prompt is None else ChatPrompt.read(self.plan.prompt)
        return list(prompt.messages(system_prompt))

    def settings(
        self, environment: Environment | None, system_prompt: str | None = None
    ) -> dict[str, Any] | None:
        """Return the settings that affect the replies, as JSON values; None if the agent has no ``describe``.

        Args:
            environment: As for `maker`.
            system_prompt: As for `maker`.

        Raises:
            BadOption: As for `maker`.
            MissingExtra: As for `maker`.
        """
        if self.engine is None:
            describe = getattr(self.maker(environment, system_prompt)(), "describe", None)
            return describe() if callable(describe) else None
        return {
            **self._chat_agent("http://127.0.0.1/v1", system_prompt).describe(),
            "base_url": None,  # unknown before the engine starts
            "model_path": self.engine.model_path,
            "engine": self.plan.launch,
            "engine_arguments": list(self.plan.engine_arguments),
        }

    def _chat_agent(self, base_url: str | None, system_prompt: str | None) -> ChatAgent:
        from agentgym_gym.evaluate._chat.agent import ChatAgent  # noqa: PLC0415 - not always needed

        plan = self.plan
        arguments: dict[str, Any] = {
            # An engine started by this process requires no key, and must not receive the user's.
            "api_key_variable": plan.api_key_variable or (None if self.engine is None else _NO_KEY),
            "system_prompt": system_prompt,
            "prompt": None if plan.prompt is None else ChatPrompt.read(plan.prompt),
            "seed": self.seed,
            **{mark.name or name: getattr(plan, name) for name, mark in _CHAT_ARGUMENTS.items()},
        }
        separate = {"temperature": plan.temperature, "top_p": plan.top_p}
        twice = sorted(
            name for name, value in separate.items() if value is not None and name in plan.sampling
        )
        if twice:
            (first, *_) = twice
            raise BadOption(
                Argument(first),
                f"={separate[first]}: given in ",
                Argument("sampling"),
                f"={plan.sampling} too; give it once",
            )
        try:
            agent = ChatAgent(
                self.engine.model if self.engine is not None else str(plan.model),
                base_url=base_url,
                sampling={
                    **{name: value for name, value in separate.items() if value is not None},
                    **plan.sampling,
                },
                **{name: value for name, value in arguments.items() if value not in (None, [])},
            )
        except BadOption as error:
            fields = {mark.name: name for name, mark in _CHAT_ARGUMENTS.items() if mark.name}
            raise BadOption(*renamed(error, fields)) from error
        agent.name = self.name
        return agent


def players_of(plans: Iterable[AgentPlan], seed: int | None) -> list[Player]:
    """Return the agents of a run; a pattern of model paths may yield several.

    Raises:
        BadOption: Two agents have the same name, or there is no model at a path.
    """
    players: list[Player] = []
    for plan in plans:
        players += _players(plan, seed)
    names = [player.name for player in players]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadOption(f"two agents are called {twice[0]!r}: give one of them another name in a run file")
    return players


def _players(plan: AgentPlan, seed: int | None) -> list[Player]:
    if plan.agent is not None:
        if plan.launch is not None or plan.model is not None:
            raise BadOption(f"agent {plan.agent!r:.80} has a model or launch too: keep one of the three keys")
        return [Player(plan.name or plan.agent, plan, seed)]
    if plan.launch is not None:
        if plan.model_path is None:
            raise BadOption(f"launch = {plan.launch!r} needs a model_path")
        from agentgym_gym.evaluate._engines import Engine, checkpoints  # noqa: PLC0415 - not always needed

        kind: Any = plan.launch  # validated by `Engine`
        paths = checkpoints(plan.model_path, merge=_print_line)
        if plan.name and len(paths) > 1:
            raise BadOption(
                f"name {plan.name!r} is for one model, and {plan.model_path} matches {len(paths)}: remove it"
            )
        return [
            Player(
                plan.name or plan.model or _model_name(path),
                plan,
                seed,
                Engine(kind, path, arguments=plan.engine_arguments, python=plan.engine_python),
            )
            for path in paths
        ]
    if plan.model is None:
        raise BadOption("an agent needs one of agent, model and launch")
    return [Player(plan.name or plan.model, plan, seed)]


def _print_line(line: str) -> None:
    err.print(line)


def _model_name(path: str) -> str:
    """Return a name for a model: the last part of the path if it is a folder, otherwise the whole path."""
    return Path(path).name if Path(path).is_dir() else path
