"""What model servers do: reports from other projects, each as a small server, and what becomes of a run.

docs/model_errors.md shows the table. Each server is asked by one evaluation: four tasks of TextCraft, at most
three turns each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fake_model import call, completion, refused
from fake_server import hang_up, http, then_hang_up

USAGE = {"prompt_tokens": 9, "completion_tokens": 5}
TEXT = completion("Action:\ninventory", usage=USAGE)
CALL = completion(None, call("inventory", {}), usage=USAGE)
NATIVE = ("--tools", "native")

Answer = Any
Server = Callable[[Any], Answer]


@dataclass(frozen=True)
class Behaviour:
    """One behaviour of a model server.

    Attributes:
        name: The behaviour.
        report: The project and the number of a report of it; empty if there is none.
        server: Makes the server, which answers requests.
        cause: Who causes it: a key of `CAUSES`, or ``none`` where the run plays on in another form.
        printed: A part of what is printed.
        scored: Episodes of four that are scored.
        parse_errors: Turns with a parse error.
        options: Options of the evaluation.
        sent: What a field of the last request is; a field that is absent is None.
    """

    name: str
    report: str
    server: Callable[[], Server]
    cause: str
    printed: str = ""
    scored: int = 4
    parse_errors: int = 0
    options: tuple[str, ...] = ()
    sent: Mapping[str, Any] = field(default_factory=dict)


def error(message: str = "", **details: Any) -> dict[str, Any]:
    """Return an error in OpenAI's form."""
    return {"error": {"message": message, **details}}


def good(request: Any) -> Answer:
    """Return a completion: a call if the request has tools."""
    return CALL if request.json.get("tools") else TEXT


def always(status: int, body: Any) -> Callable[[], Server]:
    """Return a server that sends the same JSON each time."""
    return lambda: lambda request: (status, body)


def sends(answer: Answer) -> Callable[[], Server]:
    """Return a server that sends the same answer each time."""
    return lambda: lambda request: answer


def refuses(is_refused: Callable[[dict[str, Any]], Any], status: int, body: Any) -> Callable[[], Server]:
    """Return a server that rejects some requests."""
    return lambda: lambda request: (status, body) if is_refused(request.json) else good(request)


def without(name: str, status: int, body: Any) -> Callable[[], Server]:
    """Return a server that rejects requests with a field."""
    return refuses(lambda sent: name in sent, status, body)


def roles(*names: str) -> Callable[[dict[str, Any]], bool]:
    """Return whether a request has a message of one of these roles."""
    return lambda sent: any(message["role"] in names for message in sent["messages"])


def replies(is_bad: Callable[[list[Any]], bool]) -> Callable[[dict[str, Any]], bool]:
    """Return whether the replies in the history of a request are bad."""
    return lambda sent: is_bad([each for each in sent["messages"] if each["role"] == "assistant"])


def blank(messages: list[Any]) -> bool:
    """Whether a reply without calls has no text, or only blanks."""
    return any(not (each["content"] or "").strip() for each in messages if "tool_calls" not in each)


def bad_arguments(messages: list[Any]) -> bool:
    """Whether the arguments of a call are no JSON object."""
    made = [call["function"]["arguments"] for each in messages for call in each.get("tool_calls", ())]
    return not all(each.startswith("{") and each.endswith("}") for each in made)


def conversation(number: int, status: int, body: Any, *, turn: int = 2) -> Callable[[], Server]:
    """Return a server that rejects a turn of one conversation, counted from 1; of all with the number 0."""

    def make() -> Server:
        begun = [0]

        def answer(request: Any) -> Answer:
            replies = sum(message["role"] == "assistant" for message in request.json["messages"])
            begun[0] += not replies
            return (status, body) if replies == turn - 1 and number in {0, begun[0]} else good(request)

        return answer

    return make


def second_turns(answer: Answer) -> Callable[[], Server]:
    """Return a server that sends an answer for the second turn of each conversation."""

    def reply(request: Any) -> Answer:
        messages = request.json["messages"]
        turn = sum(message["role"] == "assistant" for message in messages)
        return answer if turn == 1 else good(request)

    return lambda: reply


def on_empty_history(bad: Callable[[list[Any]], bool], status: int, body: Any) -> Callable[[], Server]:
    """Return a server whose model replies nothing at first, and that rejects its own reply in the history."""
    empty = completion("", usage={"prompt_tokens": 9, "completion_tokens": 1})

    def reply(request: Any) -> Answer:
        messages = [each for each in request.json["messages"] if each["role"] == "assistant"]
        if bad(messages):
            return status, body
        return good(request) if messages else empty

    return lambda: reply


UNSUPPORTED = "Unsupported parameter: '{}' is not supported with this model."
STREAMED = b'data: {"choices": [{"delta": {"content": "a"}}]}\n\ndata: [DONE]\n\n'
PAGE = b"<!DOCTYPE html><html><title>Sign in</title></html>"
NO_TOKENS = {"prompt_tokens": 9, "completion_tokens": 0}
ROLES = "Conversation roles must alternate user/assistant/user/assistant/..."
PUT_FIRST = "the system prompt is put into the first user message"
LAST = "After the optional system message, conversation roles must alternate user and assistant roles"
JINJA = (
    "\n------------\nWhile executing CallExpression at line 80\nError: Jinja Exception: Only user, assistant "
    "and tool roles are supported, got system."
)


def _model() -> list[Behaviour]:
    """Return errors about the model's own output."""

    def of(name: str, report: str, answer: Answer, *, errors: int = 4) -> Behaviour:
        return Behaviour(
            name, report, second_turns(answer), "model", "parse errors", parse_errors=errors, options=NATIVE
        )

    failed = "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details."
    groq = {"type": "invalid_request_error", "code": "tool_use_failed"}
    return [
        of(
            "HTTP 400 `tool_use_failed`, with the text",
            "groq/groq-typescript#28",
            (400, error(failed, **groq, failed_generation='```\n{"tool_calls": [{"id": "pending"')),
        ),
        of(
            "HTTP 400 `tool_use_failed`, with an empty text",
            "lucagrippa/obsidian-ai-tagger#34",
            (400, error(failed, **groq, failed_generation="")),
        ),
        of(
            "HTTP 400 `tool_use_failed`: arguments unlike the schema",
            "HunorLaczko/ha-groq-cloud-api#20",
            (400, error("tool call validation failed: parameters for tool get did not match schema", **groq)),
        ),
        of(
            "HTTP 400 `tool_use_failed`, with a readable call",
            "groq/groq-typescript#103",
            (400, error(failed, **groq, failed_generation='{"name": "inventory", "arguments": {}}')),
        ),
        of(
            "HTTP 500 `Failed to parse input at pos`",
            "ggml-org/llama.cpp#23838",
            (
                500,
                error(
                    "Failed to parse input at pos 395: <|tool_call_start|>[look(a='b')]<|tool_call_end|>",
                    code=500,
                    type="server_error",
                ),
            ),
        ),
        of(
            "HTTP 500 `Failed to parse input at pos`, over several lines",
            "ggml-org/llama.cpp#24644",
            (500, error("Failed to parse input at pos 13: <tool_call>\n<function=write>\n", code=500)),
        ),
        of(
            "HTTP 500: the output does not match the expected format",
            "ggml-org/llama.cpp#25072",
            (500, error("The model produced output that does not match the expected peg-gemma4 format")),
        ),
        of(
            "HTTP 500: arguments of a call are not JSON",
            "noonghunna/club-3090#1195",
            (500, error("Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] …")),
        ),
        of(
            "HTTP 500 `error parsing tool call`",
            "ollama/ollama#12064",
            (500, error("error parsing tool call: invalid character ']' after object key:value pair")),
        ),
        of(
            "HTTP 500 `error parsing tool call`, with the text",
            "ollama/ollama#17638",
            (
                500,
                error('error parsing tool call: raw=\'{"input":"*** Begin Patch"}]\', err=invalid character'),
            ),
        ),
        of(
            "HTTP 500 as a text without an object",
            "continuedev/continue#10221",
            (
                500,
                {"error": "error parsing tool call: raw='ls -R\n', err=invalid character 'l' looking for …"},
            ),
        ),
        of(
            "HTTP 500 of harmony: tokens in a header",
            "vllm-project/vllm#23567",
            (500, error('unexpected tokens remaining in message header: Some("to=functions.web")', code=500)),
        ),
        of(
            "HTTP 500 of harmony: unexpected token",
            "vllm-project/vllm#22515",
            (500, error("Unexpected token 12606 while expecting start token 200006", code=500)),
        ),
        of(
            "HTTP 200 with an error of harmony in the body",
            "tenstorrent/vllm#386",
            (200, error("HarmonyError('Unknown role: assistantassistant')", code=400)),
        ),
        of(
            "HTTP 400 `Failed to parse tool call`",
            "lmstudio-ai/lmstudio-bug-tracker#942",
            (400, {"error": "Failed to parse tool call: Unexpected end of content."}),
        ),
        of(
            "HTTP 500 `Tool error`",
            "huggingface/text-generation-inference#2145",
            (500, {"error": "Tool error: EOF while parsing an object at line 1", "error_type": "tool_error"}),
        ),
        of(
            "HTTP 422 with the generated text",
            "huggingface/text-generation-inference#2353",
            (
                422,
                {
                    "error": 'Tool error: Failed to parse generated text: EOF while parsing "{"',
                    "error_type": "x",
                },
            ),
        ),
        of(
            "HTTP 400: calls that are not JSON",
            "sgl-project/sglang#4300",
            (
                400,
                {
                    "object": "error",
                    "message": "Failed to parse fc related info to json format!",
                    "code": 400,
                },
            ),
        ),
        of(
            "the `finish_reason` of a malformed call, no content and no token",
            "langchain-ai/langchain-google#725",
            completion(None, finish_reason="MALFORMED_FUNCTION_CALL", usage=NO_TOKENS),
        ),
        of(
            "a lost call: no content, but 40 tokens",
            "ollama/ollama#17274",
            completion("", usage={"prompt_tokens": 9, "completion_tokens": 40}),
        ),
        of(
            "reasoning without a reply",
            "thedotmack/claude-mem#3569",
            completion("", reasoning_content="Nothing to say.", usage=USAGE),
        ),
        of(
            "`content` null, and no token counts",
            "vectorize-io/hindsight#1355",
            completion(None),
        ),
    ]


def _history() -> list[Behaviour]:
    """Return servers that reject replies in the history."""
    none = "Assistant message must have either content or tool_calls, but not none."

    def empty(name: str, report: str, status: int, body: Any, bad: Callable[[list[Any]], bool]) -> Behaviour:
        server = on_empty_history(bad, status, body)
        return Behaviour(name, report, server, "model", "parse errors", parse_errors=4, options=NATIVE)

    def calls(name: str, report: str, status: int, body: Any, bad: Callable[[Any], bool]) -> Behaviour:
        is_bad = replies(lambda messages: any(bad(each.get("content", 0)) for each in messages))
        return Behaviour(name, report, refuses(is_bad, status, body), "none", options=NATIVE)

    return [
        empty(
            "rejects an empty reply",
            "OpenHands/OpenHands#8685",
            400,
            {"object": "error", "message": none, "type": "invalid_request_error"},
            blank,
        ),
        empty(
            "rejects a blank text block",
            "BerriAI/litellm#20575",
            400,
            error("messages: text content blocks must be non-empty", type="invalid_request_error"),
            blank,
        ),
        calls(
            "rejects an empty text beside calls",
            "epam/ai-dial-adapter-bedrock#248",
            400,
            error("messages.1: text content blocks must be non-empty"),
            lambda content: content == "",
        ),
        calls(
            "rejects null beside calls",
            "abetlen/llama-cpp-python#1805",
            422,
            {
                "detail": [
                    {"loc": ["body", "messages", 2, "content"], "msg": "Input should be a valid string"}
                ]
            },
            lambda content: content is None,
        ),
        calls(
            "requires a text beside calls",
            "NousResearch/hermes-agent#37841",
            400,
            error("text is not set"),
            lambda content: not content,
        ),
        Behaviour(
            "rejects arguments in the history that are not JSON",
            "vllm-project/vllm#43995",
            lambda: _broken_call,
            "model",
            "parse errors",
            parse_errors=4,
            options=NATIVE,
        ),
        Behaviour(
            "sends calls without ids, and rejects results without",
            "lmstudio-ai/lmstudio-bug-tracker#830",
            lambda: _no_ids,
            "none",
            options=NATIVE,
        ),
    ]


def _broken_call(request: Any) -> Answer:
    messages = [each for each in request.json["messages"] if each["role"] == "assistant"]
    if bad_arguments(messages):
        return 400, error("Expecting ',' delimiter: line 1 column 54 (char 53)", code=400)
    return good(request) if messages else completion(None, call("get", '{"item": "a'), usage=USAGE)


def _no_ids(request: Any) -> Answer:
    results = [each for each in request.json["messages"] if each["role"] == "tool"]
    if not all(each.get("tool_call_id") for each in results):
        return 400, error("Invalid 'messages' in payload")
    return completion(None, call("inventory", {}, ""), usage=USAGE)


def _fields() -> list[Behaviour]:
    """Return servers that refuse fields of the request."""

    def of(
        name: str, report: str, field: str, value: Any, status: int, body: Any, printed: str, **sent: Any
    ) -> Behaviour:
        options = value if isinstance(value, tuple) else (f"--{field.replace('_', '-')}", str(value))
        return Behaviour(
            *(name, report, without(field, status, body), "none", printed),
            options=options,
            sent={field: None, **sent},
        )

    def unsupported(field: str) -> dict[str, Any]:
        details = {"type": "invalid_request_error", "param": field, "code": "unsupported_parameter"}
        return error(UNSUPPORTED.format(field), **details)

    only_default = (
        "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is "
        "supported."
    )
    forbidden = {"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}
    both = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
    newer = UNSUPPORTED.format("max_tokens") + " Use 'max_completion_tokens' instead."
    older = "Unrecognized request argument supplied: max_completion_tokens"
    no_store = "property 'store' is unsupported, did you mean 'stop'?"
    unknown = 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'
    drop = "ollama does not support parameters: {'seed': 1}, for model=llama3:latest. To drop these, set …"
    no_seed = "seed is not sent"
    return [
        of(
            "`max_tokens`, for the newer name",
            "anomalyco/opencode#37964",
            *(
                "max_tokens",
                64,
                400,
                error(newer, param="max_tokens"),
                "max_tokens is sent as max_completion_tokens",
            ),
            max_completion_tokens=64,
        ),
        of(
            "`max_completion_tokens`, for the older name",
            "openai/openai-python#1724",
            "max_completion_tokens",
            ("--sampling", '{"max_completion_tokens": 64}'),
            *(400, error(older, param=None), "max_completion_tokens is sent as max_tokens"),
            max_tokens=64,
        ),
        of(
            "`temperature` 0",
            "gabrii/Cursor-Azure-GPT-5#33",
            *("temperature", 0, 400, error(only_default, param="temperature", code="unsupported_value")),
            "temperature=0.0 is not sent",
        ),
        of(
            "`temperature`, of any value",
            "BeehiveInnovations/pal-mcp-server#78",
            *("temperature", 0.2, 400, unsupported("temperature"), "temperature=0.2 is not sent"),
        ),
        of(
            "`stop`",
            "huggingface/smolagents#1893",
            *("stop", "Observation", 400, unsupported("stop"), "stop=['Observation'] is not sent"),
        ),
        of(
            "`parallel_tool_calls`",
            "evalstate/fast-agent#279",
            "parallel_tool_calls",
            NATIVE,
            400,
            unsupported("parallel_tool_calls"),
            "parallel_tool_calls=False is not sent",
        ),
        of(
            "`seed`, as a list of details",
            "langchain-ai/langchain-azure#82",
            "seed",
            1,
            422,
            {"detail": [forbidden]},
            no_seed,
        ),
        of(
            "`seed`, with details inside the message",
            "Vali-98/ChatterUI#143",
            "seed",
            1,
            422,
            {"object": "error", "message": {"detail": [forbidden]}, "type": "invalid_request_error"},
            no_seed,
        ),
        of(
            "`seed`, in a list of errors",
            "Vali-98/ChatterUI#227",
            "seed",
            1,
            400,
            [error(unknown, code=400, status="INVALID_ARGUMENT")],
            no_seed,
        ),
        of("`seed`, with HTTP 500", "BerriAI/litellm#3923", "seed", 1, 500, error(drop, code=500), no_seed),
        of(
            "a parameter that it does not know",
            "fanenr/chatbot#21",
            "store",
            ("--sampling", '{"store": true}'),
            400,
            error(no_store, type="invalid_request_error"),
            "store=True is not sent",
        ),
        of(
            "a parameter, without a reason",
            "campfirein/byterover-cli#43",
            "top_k",
            ("--sampling", '{"top_k": 5}'),
            400,
            error("Provider returned error", code=400),
            "top_k=5 is not sent",
        ),
        Behaviour(
            "`temperature` and `top_p` together",
            "Vali-98/ChatterUI#564",
            refuses(lambda sent: {"temperature", "top_p"} <= sent.keys(), 400, error(both)),
            *("none", "top_p=0.9 is not sent"),
            options=("--temperature", "0.5", "--top-p", "0.9"),
            sent={"temperature": 0.5, "top_p": None},
        ),
        Behaviour(
            "a value that no server accepts",
            "",
            refuses(
                lambda sent: sent.get("temperature", 0) > 2,
                400,
                error(
                    "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3."
                ),
            ),
            *("settings", "Expected a value <= 2, but got 3", 0),
            options=("--temperature", "3"),
        ),
    ]


def _system() -> list[Behaviour]:
    """Return models without a system role."""

    def of(name: str, report: str, status: int, body: Any) -> Behaviour:
        server = refuses(roles("system"), status, body)
        return Behaviour(name, report, server, "none", PUT_FIRST)

    role = "Unsupported value: 'messages[0].role' does not support 'system' with this model."
    instruction = "Developer instruction is not enabled for models/gemini-2.0-flash-exp"
    return [
        of(
            "Gemma 2 in vLLM",
            "vllm-project/vllm#2964",
            400,
            {
                "object": "error",
                "message": "System role not supported",
                "type": "BadRequestError",
                "code": 400,
            },
        ),
        of(
            "Gemma 2, with the template's error",
            "huggingface/chat-ui#1386",
            400,
            error("Error in applying chat template from request: System role not supported"),
        ),
        of("Mistral 7B", "microsoft/autogen#1037", 400, {"object": "error", "message": ROLES}),
        of("Ministral in llama.cpp, HTTP 500", "anomalyco/opencode#5034", 500, error(JINJA, code=500)),
        of("o1-mini", "janhq/jan#4392", 400, error(role, param="messages[0].role", code="unsupported_value")),
        of(
            "Gemini and Gemma, behind a gateway", "QuantumNous/new-api#989", 400, error(instruction, code=400)
        ),
        of(
            "in a sentence of its own",
            "openai/openai-dotnet#330",
            400,
            error("Model does not support system role."),
        ),
    ]


def _settings() -> list[Behaviour]:
    """Return servers that reject every request, and other programs."""

    def of(name: str, report: str, answer: Answer, printed: str, *options: str) -> Behaviour:
        return Behaviour(name, report, sends(answer), "settings", printed, 0, options=options)

    stream = "This model only support stream mode, please enable the stream parameter to access the model."
    auto = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
    quota = "You exceeded your current quota, please check your plan and billing details."
    tools = "registry.ollama.ai/library/qwen3.5:0.8b does not support tools"
    credits_ = "This request requires more credits, or fewer max_tokens."
    ollama = {"model": "m", "message": {"role": "assistant", "content": "a"}, "done": True}
    anthropic = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "a"}]}
    completed = {"object": "text_completion", "choices": [{"text": "a", "index": 0, "finish_reason": None}]}
    html = (b"<html>\n<head><title>404 Not Found</title></head></html>", "404 Not Found")
    return [
        of(
            "HTTP 401",
            "cline/cline#444",
            (401, error("Access denied due to invalid subscription key")),
            "HTTP 401",
        ),
        of(
            "HTTP 429 `insufficient_quota`",
            "langchain-ai/langchainjs#1929",
            (429, error(quota, code="insufficient_quota")),
            "the quota is used up",
        ),
        of("HTTP 402", "QwenLM/qwen-code#73", (402, error(credits_)), "the quota is used up"),
        of(
            "HTTP 404, an unknown deployment",
            "BerriAI/litellm#8572",
            (404, error("Resource not found", code="404")),
            "no model 'm', or no chat completions",
        ),
        of(
            "HTTP 404, a page",
            "tsundereraws/aisub-translator#2",
            http(*html),
            "check that the base URL ends in /v1",
        ),
        of(
            "HTTP 400, stream only",
            "infiniflow/ragflow#5912",
            (400, error(stream)),
            "only support stream mode",
        ),
        of(
            "HTTP 400, no tool parser",
            "vllm-project/vllm#9986",
            (400, error(auto, code=400)),
            "--enable-auto-tool-choice",
            *NATIVE,
        ),
        of(
            "HTTP 400, a model without tools",
            "ollama/ollama#14795",
            (400, error(tools)),
            "does not support tools",
            *NATIVE,
        ),
        of(
            "HTTP 500, no `--jinja`",
            "defilantech/LLMKube#126",
            (500, error("tools param requires --jinja flag", code=500)),
            "requires --jinja flag",
            *NATIVE,
        ),
        of(
            "HTTP 422, tools of another schema",
            "RooCodeInc/Roo-Code#10334",
            (422, {"message": "Tools with mixed values for 'strict' are not allowed."}),
            "mixed values",
            *NATIVE,
        ),
        of(
            "a stream in place of a reply",
            "nguyenphutrong/quotio#450",
            http(STREAMED),
            "the server sends a stream",
        ),
        of("a web page", "cline/cline#240", http(PAGE), "the server sends a web page"),
        of("Ollama's native reply", "BerriAI/litellm#13823", (200, ollama), "Ollama's native reply"),
        of(
            "Ollama's native stream",
            "ollama/ollama#12064",
            http(b'{"done": false}\n{"done": true}\n'),
            "a stream",
        ),
        of("a reply of Anthropic's API", "", (200, anthropic), "Anthropic's Messages API"),
        of(
            "a text completion",
            "MicrosoftDocs/azure-docs#109589",
            (200, completed),
            "sends a text completion",
        ),
        of(
            "a redirect",
            "",
            refused("307 Temporary Redirect", None, "Location: https://login.example/"),
            "login.example",
        ),
    ]


def _server() -> list[Behaviour]:
    """Return faults of the server."""

    def of(name: str, report: str, answer: Answer, kind: str) -> Behaviour:
        return Behaviour(name, report, sends(answer), "server", f"4 ended by {kind}; not scored", 0)

    raw = {"raw": "m is temporarily rate-limited upstream", "provider_name": "P"}
    upstream = "Provider API error: bad response status code 500 (request id: 2025)"
    timed_out = error("Gateway timeout.", code=524, type="cf_gateway_timeout")
    half = then_hang_up(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"choices": [')
    return [
        of(
            "no content and no token",
            "diegosouzapw/OmniRoute#10404",
            completion(None, usage=NO_TOKENS),
            "BadCompletion",
        ),
        of("`choices` null", "decolua/9router#2727", (200, {"id": None, "choices": None}), "BadCompletion"),
        of(
            "HTTP 200 with an error",
            "Aider-AI/aider#3550",
            (200, error("Rate limited", code=429)),
            "ModelBusy",
        ),
        of(
            "HTTP 429 with the reason in the metadata",
            "open-webui/computer#293",
            (429, error("Provider returned error", code=429, metadata=raw)),
            "ModelBusy",
        ),
        of("HTTP 502, a page", "yoheinakajima/babyagi#64", http(PAGE, "502 Bad Gateway"), "ModelError"),
        of("HTTP 522, a page", "Helicone/helicone#798", http(PAGE, "522 Timed Out"), "ModelError"),
        of("HTTP 524", "neo4j-labs/llm-graph-builder#561", refused("524 Timeout", timed_out), "ModelError"),
        of("HTTP 500 without a reason", "HabanaAI/vllm-fork#773", (500, error(upstream)), "ModelError"),
        of("a connection that closes", "", hang_up, "ModelError"),
        of("half a reply", "anomalyco/opencode#35163", half, "BadCompletion"),
    ]


def _conversation() -> list[Behaviour]:
    """Return errors that one conversation meets, or all."""
    passed = "The `reasoning_content` in the thinking mode must be passed back to the API."
    extra = error("messages.3.assistant.reasoning_content: Extra inputs are not permitted")
    of_one = "1 ended by ConversationRejected; not scored"
    missing = "an assistant message with 'tool_calls' must be followed by tool messages"
    return [
        Behaviour(
            "HTTP 400 for a message in one conversation",
            "charmbracelet/crush#1590",
            conversation(2, 400, extra),
            "conversation",
            of_one,
            3,
        ),
        Behaviour(
            "HTTP 400 for the order of messages in one",
            "charmbracelet/crush#3408",
            conversation(3, 400, error(missing)),
            "conversation",
            of_one,
            3,
        ),
        Behaviour(
            "HTTP 500 of the template in one",
            "ggml-org/llama.cpp#19851",
            conversation(2, 500, error(f"Jinja Exception: {LAST}", code=500), turn=3),
            "conversation",
            of_one,
            3,
        ),
        Behaviour(
            "HTTP 400 for the second turn of each",
            "JohnnyZ93/oai-compatible-copilot#202",
            conversation(0, 400, error(passed)),
            "conversation",
            "in 3 conversations in a row",
            0,
        ),
    ]


def _endings() -> list[Behaviour]:
    """Return conversations that are too long, or filtered."""

    def of(name: str, report: str, ending: str, status: int, body: Any) -> Behaviour:
        return Behaviour(name, report, conversation(0, status, body), "model", f"4 ended by {ending}")

    longest = "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens"
    exceeds = "the request exceeds the available context size. try increasing the context size"
    azure = {"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}
    managed = (
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
    )
    inspected = "Input data may contain inappropriate content."
    return [
        of(
            "too long, in vLLM",
            "vllm-project/vllm#20409",
            "context_overflow",
            400,
            {"object": "error", "message": longest, "code": 400},
        ),
        of(
            "too long, in llama.cpp",
            "ggml-org/llama.cpp#15780",
            "context_overflow",
            500,
            error(exceeds, type="exceed_context_size_error", code=500),
        ),
        of(
            "too long, in llama-cpp-python",
            "abetlen/llama-cpp-python#416",
            "context_overflow",
            400,
            error("Requested tokens (516) exceed context window of 512"),
        ),
        of(
            "filtered by Azure",
            "browser-use/browser-use#4783",
            "content_filter",
            400,
            error(managed, **azure),
        ),
        of(
            "filtered by Azure, behind LiteLLM",
            "BerriAI/litellm#16231",
            "content_filter",
            400,
            error(f"litellm.BadRequestError: AzureException - {managed}", code="400"),
        ),
        of(
            "filtered by DeepSeek",
            "666ghj/BettaFish#108",
            "content_filter",
            400,
            error("Content Exists Risk"),
        ),
        of(
            "filtered by DeepSeek, in FastAPI's form",
            "deepseek-ai/DeepSeek-V2#30",
            "content_filter",
            400,
            {"detail": "Content Exists Risk"},
        ),
        of(
            "filtered by Qwen's API",
            "langgenius/dify#7932",
            "content_filter",
            400,
            error(inspected, code="data_inspection_failed"),
        ),
    ]


BEHAVIOURS = {
    "The model's own output": _model(),
    "Replies in the history": _history(),
    "Fields of the request": _fields(),
    "No system role": _system(),
    "Rejected settings and other APIs": _settings(),
    "Faults of the server": _server(),
    "One conversation": _conversation(),
    "Long and filtered conversations": _endings(),
}
"""The behaviours by subject."""
