"""The native notations of function calls, reasoning and turns, by model family: data of one reader.

A package adds rows by entry points of the group ``agentgym.dialects``, a program by
:func:`~agentgym_gym.formats.register_dialect`.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DIALECTS", "NAME", "TAG", "Dialect"]

NAME = r"(?P<name>[A-Za-z_][\w.-]{0,80})"
TAG = r"(?:[\w｜|]{1,30}[:｜|])?"  # a prefix such as `minimax:`

_SEPARATOR = r"<[｜|]tool[▁_]sep[｜|]>"
_LABEL = r"(?:(?:function|tool)(?:[ _]name)?|✿FUNCTION✿)"
_INPUT_LABEL = r"(?:(?:function|tool)[ _]input|arguments|args|input|parameters|✿ARGS✿)"


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The marks of a model family around calls, reasoning and turns.

    The attributes up to ``end`` are regular expressions, which must match in linear time and have no other
    groups than the named ones. All others are marks, as written, of at most 40 characters; each begins with
    ``<``, ``[``, ``]``, ``to=`` or a character outside ASCII. Case makes no difference.

    Attributes:
        models: The models that write it.
        head: A function name before a JSON object of arguments, with the group ``name``.
        json: A mark before calls that are JSON with their names.
        python: A mark before calls that are Python.
        braces: A name before ``{key:value}``, with the group ``name``; it ends before the brace.
        tag: The beginning of a call whose arguments have marks of their own, with the group ``name``.
        argument: The beginning of such an argument, with the group ``key``. By default a tag as in XML.
        argument_end: The end of such an argument.
        end: The end of such a call.
        quote: The mark on both sides of text in ``braces``.
        reasoning: The marks before and after reasoning.
        frames: Marks around an answer.
        headers: Marks at the start of a reply.
        starts: Marks that start a turn.
        ends: Marks that end a turn.
    """

    models: str
    head: str = ""
    json: str = ""
    python: str = ""
    braces: str = ""
    tag: str = ""
    argument: str = ""
    argument_end: str = ""
    end: str = ""
    quote: str = ""
    reasoning: tuple[str, str] | None = None
    frames: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()


_CALLS = (
    Dialect(
        models="DeepSeek V3 and R1, with a fence; V3.1, without one",
        head=rf"<[｜|]tool[▁_]call[▁_]begin[｜|]>(?:function{_SEPARATOR})?{NAME}(?:\s|```\w*|{_SEPARATOR})*",
    ),
    Dialect(
        models="DeepSeek without special tokens",
        head=rf"(?:\A|\n)function ?(?:{_SEPARATOR})?{NAME}\n```(?:json)?\s*",
    ),
    Dialect(models="Kimi K2", head=rf"functions?\.{NAME}:\d{{1,6}}(?:\s|<\|tool_call_argument_begin\|>)*"),
    Dialect(
        models="Kimi K2 without the namespace",
        head=rf"<\|tool_call_begin\|>\s*{NAME}(?::\d{{1,6}})?(?:\s|<\|tool_call_argument_begin\|>)*",
    ),
    Dialect(
        models="Kimi K3, arguments as JSON",
        head=(
            r"<\|open\|>call tool=\"(?P<name>[^\"<>\n]{1,80})\"[^<>\"\n]{0,20}(?:\"\d{1,6}\")?<\|sep\|>\s*"
            r"<\|open\|>json[^<>\n]{0,40}<\|sep\|>\s*"
        ),
    ),
    Dialect(
        models="Kimi K3",
        tag=(
            r"<\|open\|>call tool=\"(?P<name>[^\"<>\n]{1,80})\"[^<>\n]{0,40}<\|sep\|>"
            r"(?=\s*<\|(?:open\|>argument|close\|>call))"
        ),
        argument=r"<\|open\|>argument key=\"(?P<key>[^\"<>\n]{1,80})\"[^<>\n]{0,80}<\|sep\|>",
        argument_end=r"<\|close\|>argument(?:<\|sep\|>)?",
        end=r"<\|close\|>call(?:<\|sep\|>)?",
        reasoning=("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
        frames=("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
        ends=("<|close|>message<|sep|>", "<|end_of_msg|>"),
    ),
    Dialect(
        models="Mistral, since version 11 of its tokenizer",
        head=rf"\[TOOL_CALLS\]\s*{NAME}(?:\s|\[CALL_ID\]\s*\w+|\[ARGS\])*",
    ),
    Dialect(models="Mistral without its first token", head=rf"\b{NAME}(?:\[CALL_ID\]\w{{1,40}})?\[ARGS\]\s*"),
    Dialect(
        models="gpt-oss",
        head=(
            r"\bto=(?:functions?\.)?(?P<name>[A-Za-z_][\w.-]{0,80}?)"
            r"(?:\s|commentary|json|code|<\|(?:channel|constrain|message)\|>)*"
        ),
    ),
    Dialect(models="Hunyuan", head=rf"<tool_call>\s*(?:function)?(?:<tool_sep>)?\s*{NAME}\s*```(?:json)?\s*"),
    Dialect(models="Llama 3", head=rf"<function\s*=\s*[\"']?{NAME}[\"']?\s*[>(]\s*"),
    Dialect(
        models="PLaMo 3",
        head=(
            rf"<\|plamo:begin_tool_name:plamo\|>\s*{NAME}\s*<\|plamo:end_tool_name:plamo\|>"
            r"(?:\s|<\|plamo:begin_tool_arguments:plamo\|>)*"
        ),
        reasoning=("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
        ends=("<|plamo:tag|>",),
    ),
    Dialect(
        models="models with a name in an attribute of a tag",
        head=rf"<{TAG}(?:function|invoke|tool|tool_call)\s+name\s*=\s*[\"']{NAME}[\"']\s*>\s*",
    ),
    Dialect(
        models="models with a tag around the name, and optionally one around the arguments",
        head=(
            rf"<(?:tool|tool_name|name|function|function_name)>\s*{NAME}\s*</\w{{1,20}}>"
            r"(?:\s|<(?:args|arguments|parameters|input|tool_input)>)*"
        ),
    ),
    Dialect(
        models="agents of Qwen and LangChain, and others that write labels",
        head=(
            rf"(?:\A|\n)[ \t>*_`#-]*{_LABEL}[ \t*_`]*[:：][ \t*`]*{NAME}"
            rf"(?:[\s*`()#]|with\b)*{_INPUT_LABEL}(?:[*_:：\s]|`+(?:json)?)*"
        ),
    ),
    Dialect(
        models="Claude, DeepSeek since V3.2, dots, GigaChat 3.5, MiniCPM, MiniMax M2 and M3, Muse, Step 3",
        tag=(
            rf"<{TAG}(?:invoke|function|tool|tool_call|function_call)\s+name\s*=\s*"
            r"[\"']?(?P<name>[^\"'<>\s]{1,80})[\"']?[^<>]{0,80}>"
        ),
    ),
    Dialect(
        models="Qwen3-Coder, MiMo, Seed-OSS",
        tag=r"<function\s*=\s*[\"']?(?P<name>[^\"'<>\n]{1,80}?)[\"']?\s*>",
    ),
    Dialect(
        models="GLM since 4.5, Hunyuan 3 and 4, IQuest, K2 Horizon, LongCat",
        tag=(
            rf"<{TAG}(?:[a-z]{{1,20}}_)?tool_call(?::\w{{1,16}})?>\s*{NAME}\s*"
            rf"(?:<tool_sep(?::\w{{1,16}})?>\s*)?(?=<{TAG}(?:[a-z]{{1,20}}_)?arg_key"
            rf"|</{TAG}(?:[a-z]{{1,20}}_)?tool_call)"
        ),
    ),
    Dialect(
        models="Claude 2", tag=r"<invoke>\s*<tool_name>\s*(?P<name>[\w. -]{1,80})</tool_name>\s*<parameters>"
    ),
    Dialect(
        models="Solar Open 2",
        tag=r"<\|tool_call:start\|>\s*(?P<name>[\w.-]{1,80})[ \t]*(?=\s*<\|tool_)",
        argument=r"<\|tool_arg:start\|>\s*(?P<key>[^<>\n|]{1,80}?)\s*<\|tool_arg:value\|>",
        argument_end=r"<\|tool_arg:end\|>",
        end=r"<\|tool_call:end\|>",
    ),
    Dialect(
        models="FunctionGemma",
        braces=r"\bcall:(?P<name>[A-Za-z_][\w.-]{0,80})",
        quote="<escape>",
        ends=("<start_function_response>",),
    ),
    Dialect(
        models="Gemma 4",
        quote='<|"|>',
        reasoning=("<|channel>", "<channel|>"),
        starts=("<|turn>", "<|tool_response>"),
        ends=("<turn|>",),
    ),
    Dialect(models="Llama 3 and 4", python=r"<\|python_(?:tag|start)\|>"),
    Dialect(models="LFM2", python=r"<\|tool_call_start\|>"),
    Dialect(models="OLMo 3", python="<function_calls>"),
    Dialect(models="models with Hermes's tag", python="<tool_call>", json="<tool_call>"),
    Dialect(models="Gemini, Gemma", python=r"```tool_(?:code|call)\b"),
    Dialect(models="CodeAct and other agents", python="<(?:tool_code|execute|code|python)>"),
    Dialect(models="models with Mistral's brackets", python=r"\[PYTHON\]"),
    Dialect(models="gpt-oss", python=r"\bto=python\b[^<\n]{0,40}<\|message\|>"),
    Dialect(models="Mistral", json=r"\[TOOL_CALLS\]|\[ARGS\]"),
    Dialect(
        models="openPangu",
        json=r"\[unused11\]",
        reasoning=("[unused16]", "[unused17]"),
        ends=("[unused10]",),
    ),
    Dialect(models="HyperCLOVA X", json="-> tool/function_call", ends=("<|stop|>",)),
    Dialect(models="RWKV", json=r"\*\*Tool Call:\*\*"),
    Dialect(models="Qwen-Agent", json="✿ARGS✿:"),
    Dialect(
        models="any, as a mark whose name has such a word",
        json=(
            r"<[|｜]?[/\w:｜▁|-]{0,40}(?:tool|TOOL|function|FUNCTION|action_start|ACTION|plugin|python_)"
            r"[\w:｜▁|-]{0,40}>"
        ),
    ),
)

_ROLES = ("user", "system", "assistant", "observation", "chatbot", "bot", "human", "ipython", "tool")

_TURNS = (
    Dialect(
        models="Qwen and others with ChatML",
        headers=("<|im_sep|>",),
        starts=("<|im_start|>",),
        ends=("<|im_end|>", "<|endoftext|>", "<|im_stop|>"),
    ),
    Dialect(
        models="Llama",
        headers=("<|end_header_id|>", "<|header_end|>"),
        starts=("<|start_header_id|>", "<|header_start|>", "<|begin_of_text|>"),
        ends=("<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|eom|>", "<|end_of_text|>"),
    ),
    Dialect(models="Mistral", starts=("[INST]", "[/INST]")),
    Dialect(
        models="DeepSeek",
        starts=("<｜User｜>", "<｜Assistant｜>", "<｜begin▁of▁sentence｜>"),
        ends=("<｜end▁of▁sentence｜>",),
    ),
    Dialect(models="Gemma", starts=("<start_of_turn>", "<bos>"), ends=("<end_of_turn>", "<eos>")),
    Dialect(
        models="gpt-oss",
        headers=("<|message|>", "<|start|>"),
        starts=("<|startoftext|>",),
        ends=("<|end|>", "<|return|>", "<|call|>"),
    ),
    Dialect(
        models="Muse",
        reasoning=("to=self<|message|>", "<|eom|>"),
        frames=("to=user<|message|>",),
    ),
    Dialect(
        models="Inkling",
        reasoning=("<|content_thinking|>", "<|end_message|>"),
        headers=("<|message_model|>", "<|content_text|>"),
        starts=("<|message_user|>", "<|message_tool|>", "<|message_system|>"),
        ends=("<|end_message|>",),
    ),
    Dialect(
        models="Granite",
        headers=("<|end_of_role|>",),
        starts=("<|start_of_role|>",),
    ),
    Dialect(
        models="Command",
        headers=("<|CHATBOT_TOKEN|>",),
        frames=("<|START_RESPONSE|>", "<|START_TEXT|>"),
        starts=("<|START_OF_TURN_TOKEN|>", "<|USER_TOKEN|>", "<|SYSTEM_TOKEN|>"),
        ends=("<|END_OF_TURN_TOKEN|>", "<|END_RESPONSE|>", "<|END_TEXT|>"),
    ),
    Dialect(models="Phi, GLM", starts=tuple(f"<|{role}|>" for role in _ROLES)),
    Dialect(models="GLM with images", frames=("<|begin_of_box|>", "<|end_of_box|>")),
    Dialect(
        models="EXAONE",
        starts=tuple(f"[|{role}|]" for role in _ROLES),
        ends=("[|endofturn|]",),
    ),
    Dialect(models="HyperCLOVA X", ends=("<|endofturn|>",)),
    Dialect(
        models="MiniMax", frames=("]<]minimax[>[",), starts=("]~b]",), ends=("[e~[", "<end_of_sentence>")
    ),
    Dialect(models="Hunyuan", ends=("<|hy_eos|>", "<|eos|>")),
    Dialect(models="Seed-OSS", ends=("<seed:eos>",)),
    Dialect(models="Ling", starts=("<role>", "<|role_start|>"), ends=("<|role_end|>",)),
    Dialect(models="ERNIE", ends=("<|end_of_sentence|>",)),
    Dialect(models="Nemotron", starts=("<SPECIAL_10>", "<SPECIAL_11>"), ends=("<SPECIAL_12>",)),
    Dialect(models="LongCat", ends=("</longcat_s>",)),
    Dialect(models="Apertus", ends=("<|assistant_end|>",)),
    Dialect(models="Kimi VL", reasoning=("◁think▷", "◁/think▷")),
    Dialect(models="MedGemma", reasoning=("<unused94>", "<unused95>")),
    Dialect(models="SmolVLM", ends=("<end_of_utterance>",)),
    Dialect(models="GigaChat 3", frames=("<|role_sep|>", "<|message_sep|>")),
    Dialect(
        models="OpenThinker",
        frames=("<|begin_of_solution|>",),
        ends=("<|end_of_solution|>", "<|end_of_turn|>", "<|endofresponse|>"),
    ),
)

DIALECTS = (*_CALLS, *_TURNS)
"""The table, except Llama's list of calls and bare names. The first row that fits is used."""
