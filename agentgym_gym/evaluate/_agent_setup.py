"""The agent of a run: its name and settings, its factory, and the engine of its model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_gym._logging import logger
from agentgym_gym.errors import ArgumentName, BadOption
from agentgym_gym.evaluate._agents import Agent, maker_from
from agentgym_gym.evaluate._chat.prompt import ChatPrompt
from agentgym_gym.evaluate._figures.prices import Price, price_of
from agentgym_gym.evaluate._resolve import find_modules_here
from agentgym_gym.evaluate._run import ChatOptions

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment
    from agentgym_gym.evaluate._chat.agent import ChatAgent
    from agentgym_gym.evaluate._chat.budget import RequestLimits
    from agentgym_gym.evaluate._engines import Engine
    from agentgym_gym.evaluate._run import Run
    from agentgym_gym.rollout._history import Message

__all__ = ["AgentSetup", "model_name"]

_NO_KEY = "AGENTGYM_ENGINE_API_KEY"  # a variable that is never set

_DIRECT = (
    *("tools", "history", "max_tokens", "stop", "system_role"),
    *("on_cut_reply", "keep_reasoning", "retry_seconds"),
)
"""The fields of `ChatOptions` that are arguments of `ChatAgent` as they are."""


@dataclass(frozen=True)
class AgentSetup:
    """The agent of a run.

    Attributes:
        name: The name of the agent in records and folders.
        agent: The agent, as the run states it, with the settings of its protocol.
        seed: Random seed; None for no seed.
        engine: The engine that serves the agent's model, or None.
    """

    name: str
    agent: str | ChatOptions | Callable[[], Agent]
    seed: int | None
    engine: Engine | None = None

    @classmethod
    def of(cls, run: Run, engines: dict[Any, Engine]) -> AgentSetup:
        """Return the agent of a run.

        Args:
            run: The run.
            engines: The engines of other runs, to which a new one is added: runs of one model share it.

        Raises:
            BadOption: The agent is not specified, or there is no model at its path.
        """
        agent = run.agent
        if not isinstance(agent, (str, ChatOptions)) and not callable(agent):
            raise BadOption("agent", agent, "a name, ChatOptions, or a callable that makes an agent")
        if not isinstance(agent, ChatOptions):
            named = agent if isinstance(agent, str) else getattr(agent, "name", None)
            return cls(run.name or str(named or getattr(agent, "__name__", agent)), agent, run.seed)
        if agent.launch is None:
            if agent.model_path is not None:
                raise BadOption(
                    "model_path",
                    agent.model_path,
                    problem=("needs ", ArgumentName("launch"), ", which serves it"),
                )
            if agent.model is None:
                raise BadOption(
                    ("a model needs a name, or an engine and a path: give ", ArgumentName("model"))
                )
            return cls(run.name or agent.model, agent, run.seed)
        key = (agent.launch, agent.model_path, tuple(agent.engine_arguments), agent.engine_python)
        if key not in engines:
            engines[key] = _engine(agent)
        engine = engines[key]
        return cls(run.name or agent.model or model_name(engine.model_path), agent, run.seed, engine)

    @property
    def is_model(self) -> bool:
        """Whether the agent is a model with an OpenAI-compatible chat API."""
        return isinstance(self.agent, ChatOptions)

    @property
    def uses_tools(self) -> bool:
        """Whether the agent uses native tool calls for its actions."""
        return isinstance(self.agent, ChatOptions) and self.agent.tools == "native"

    @property
    def model(self) -> str:
        """The name of a model on its server; empty for an engine's model, and for another agent."""
        return (self.agent.model if isinstance(self.agent, ChatOptions) else None) or ""

    @property
    def server_key(self) -> str:
        """A text that is equal for models on the same server."""
        if self.engine is not None:
            return f"engine of {self.name}"
        return self.agent.base_url or "" if isinstance(self.agent, ChatOptions) else ""

    @property
    def key_variable(self) -> str | None:
        """The environment variable with the API key of a model; None for another agent."""
        return (
            self.agent.api_key_variable or "OPENAI_API_KEY" if isinstance(self.agent, ChatOptions) else None
        )

    @property
    def history(self) -> str:
        """The part of the conversation that a model receives, as a text for `History.parse`."""
        return (self.agent.history if isinstance(self.agent, ChatOptions) else None) or "all"

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
        if isinstance(self.agent, str):
            find_modules_here()
            return maker_from(self.agent, environment, self.seed or 0)
        if not isinstance(self.agent, ChatOptions):
            return self.agent
        base_url = self.agent.base_url if self.engine is None else self.engine.base_url
        agent = self._chat_agent(self.agent, base_url, system_prompt)
        if limits is not None:
            agent.limits = limits
        return agent.clone

    async def check_server(self) -> None:
        """Check that the server of a model accepts connections; an engine is checked when it starts.

        Raises:
            SetupError: It does not.
        """
        if isinstance(self.agent, ChatOptions) and self.engine is None:
            await self._chat_agent(self.agent, self.agent.base_url, None).check_server()

    def messages_before(self, system_prompt: str | None) -> list[Message]:
        """Return the messages before the first observation that a model receives.

        Args:
            system_prompt: The system prompt of the environment, or its replacement.
        """
        path = self.agent.prompt if isinstance(self.agent, ChatOptions) else None
        prompt = ChatPrompt() if path is None else ChatPrompt.read(path)
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
        if self.engine is None or not isinstance(self.agent, ChatOptions):
            describe = getattr(self.maker(environment, system_prompt)(), "describe", None)
            return describe() if callable(describe) else None
        return {
            **self._chat_agent(self.agent, "http://127.0.0.1/v1", system_prompt).describe(),
            "base_url": None,  # unknown before the engine starts
            "model_path": self.engine.model_path,
            "engine": self.agent.launch,
            "engine_arguments": list(self.agent.engine_arguments),
        }

    def _chat_agent(self, options: ChatOptions, base_url: str | None, system_prompt: str | None) -> ChatAgent:
        from agentgym_gym.evaluate._chat.agent import ChatAgent  # noqa: PLC0415 - not always needed

        separate = {"temperature": options.temperature, "top_p": options.top_p}
        separate = {name: value for name, value in separate.items() if value is not None}
        twice = next((name for name in separate if name in options.sampling), None)
        if twice is not None:
            raise BadOption(
                twice,
                separate[twice],
                problem=("is given in ", ArgumentName("sampling"), f"={options.sampling} too; give it once"),
            )
        arguments: dict[str, Any] = {
            # An engine started by this process requires no key, and must not receive the user's.
            "api_key_variable": options.api_key_variable or (None if self.engine is None else _NO_KEY),
            "system_prompt": system_prompt,
            "prompt": None if options.prompt is None else ChatPrompt.read(options.prompt),
            "seed": self.seed,
            "timeout": options.model_timeout,
            **{name: getattr(options, name) for name in _DIRECT},
        }
        find_modules_here()  # for a function in the history
        try:
            agent = ChatAgent(
                self.engine.model if self.engine is not None else str(options.model),
                base_url=base_url,
                sampling={**separate, **options.sampling},
                **{name: value for name, value in arguments.items() if value not in (None, [], ())},
            )
        except BadOption as error:
            raise error.renamed({"timeout": "model_timeout"}) from error
        agent.name = self.name
        return agent


def model_name(path: str) -> str:
    """Return a name for a model: the last part of the path if it is a folder, otherwise the whole path."""
    return Path(path).name if Path(path).is_dir() else path


def _engine(agent: ChatOptions) -> Engine:
    """Return the engine of a model.

    Raises:
        BadOption: There is no model at the path, or there are several.
    """
    from agentgym_gym.evaluate._engines import Engine, checkpoints  # noqa: PLC0415 - not always needed

    if agent.model_path is None or agent.launch is None:
        raise BadOption("launch", agent.launch, problem=("needs ", ArgumentName("model_path")))
    paths = checkpoints(agent.model_path, merge=logger.info)
    if len(paths) > 1:
        raise BadOption(
            "model_path", agent.model_path, problem=f"matches {len(paths)} models: make a run of each"
        )
    return Engine(agent.launch, paths[0], arguments=agent.engine_arguments, python=agent.engine_python)
