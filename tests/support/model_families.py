"""Replies as families of models write them, by the facts of their chat templates; written for these tests.

A family's reply is its reasoning, an answer or calls, and the end of its turn. Templates have ``«think»`` for
the reasoning, ``«answer»`` for the answer, and ``«name»``, ``«json»`` and one ``«key»``, ``«value»`` for each
argument of a call.
"""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class ModelFamily:
    """How a family of models writes a reply.

    Attributes:
        call: A call.
        argument: One argument in it, if its arguments are not one JSON object.
        think: The reasoning.
        answer: The frame of an answer in text.
        end: The end of the turn.
        string: A value that is text; other values are JSON.
        between: Text between two arguments.
    """

    call: str
    argument: str = ""
    think: str = ""
    answer: str = "«answer»"
    end: str = "<|im_end|>"
    string: str = "«value»"
    between: str = ""

    def reply(self, content: str, draft: str = "") -> str:
        """Return a reply with an answer in text, after reasoning that holds a draft."""
        return self._reasoning(draft) + self.answer.replace("«answer»", content) + self.end

    def reply_with_calls(self, calls: list[tuple[str, dict]], draft: str = "") -> str:
        """Return a reply with native calls, after reasoning that holds a draft."""
        return self._reasoning(draft) + "".join(self.call_of(*call) for call in calls) + self.end

    def call_of(self, name: str, arguments: dict) -> str:
        """Return one call in the family's notation."""
        written = [
            self.argument.replace("«key»", key).replace(
                "«value»",
                self.string.replace("«value»", value) if isinstance(value, str) else json.dumps(value),
            )
            for key, value in arguments.items()
        ]
        keywords = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        text = self.call.replace("«name»", name).replace("«keywords»", keywords)
        text = text.replace("«arguments»", self.between.join(written))
        return text.replace("«json»", json.dumps(arguments, ensure_ascii=False))

    def _reasoning(self, draft: str) -> str:
        return self.think.replace("«think»", f"I could write:\n{draft}\nBut not so.") if draft else ""


_THINK = "<think>\n«think»\n</think>\n\n"
_HERMES = '<tool_call>\n{"name": "«name»", "arguments": «json»}\n</tool_call>'
_OBJECT = '{"name": "«name»", "arguments": «json»}'
_INVOKE = '<P:invoke name="«name»">\n«arguments»</P:invoke>'
_PARAMETER = '<P:parameter name="«key»">«value»</P:parameter>\n'
_GLM = "<tool_call>«name»\n«arguments»</tool_call>"
_GLM_ARGUMENT = "<arg_key>«key»</arg_key>\n<arg_value>«value»</arg_value>\n"
_DSML_PARAMETER = '<｜DSML｜parameter name="«key»" string="true">«value»</｜DSML｜parameter>\n'

MODEL_FAMILIES = {
    "Qwen 3": ModelFamily(_HERMES, think=_THINK),
    "Qwen 3.5, opened by the template": ModelFamily(_HERMES, think="«think»\n</think>\n\n"),
    "Qwen 3 Coder, MiMo": ModelFamily(
        "<tool_call>\n<function=«name»>\n«arguments»</function>\n</tool_call>",
        "<parameter=«key»>\n«value»\n</parameter>\n",
    ),
    "Qwen-Agent": ModelFamily("✿FUNCTION✿: «name»\n✿ARGS✿: «json»\n"),
    "Llama 3": ModelFamily('{"name": "«name»", "parameters": «json»}', end="<|eot_id|>"),
    "Llama 3, with a token": ModelFamily(
        '<|python_tag|>{"name": "«name»", "parameters": «json»}', end="<|eom_id|>"
    ),
    "Llama 4": ModelFamily("[«name»(«keywords»)]", end="<|eot|>"),
    "Mistral": ModelFamily("[TOOL_CALLS]«name»[ARGS]«json»", think="[THINK]«think»[/THINK]", end="</s>"),
    "Mistral 7B": ModelFamily(f"[TOOL_CALLS] [{_OBJECT}]", end="</s>"),
    "DeepSeek V3": ModelFamily(
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>«name»\n```json\n«json»\n```"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        think=_THINK,
        end="<｜end▁of▁sentence｜>",
    ),
    "DeepSeek V3.1": ModelFamily(
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>«name»<｜tool▁sep｜>«json»<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜>",
        think="«think»</think>",
        end="<｜end▁of▁sentence｜>",
    ),
    "DeepSeek V3.2": ModelFamily(
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="«name»">\n«arguments»</｜DSML｜invoke>\n'
        "</｜DSML｜function_calls>",
        _DSML_PARAMETER,
        think="«think»</think>",
        end="<｜end▁of▁sentence｜>",
    ),
    "DeepSeek V4": ModelFamily(
        '\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="«name»">\n«arguments»</｜DSML｜invoke>\n'
        "</｜DSML｜tool_calls>",
        _DSML_PARAMETER,
        think="<think>«think»</think>",
        end="<｜end▁of▁sentence｜>",
    ),
    "DeepSeek V4, bars of ASCII": ModelFamily(
        '<|DSML|tool_calls>\n<|DSML|invoke name="«name»">\n«arguments»</|DSML|invoke>\n</|DSML|tool_calls>',
        _DSML_PARAMETER.replace("｜", "|"),
    ),
    "GigaChat 3": ModelFamily(
        f"<|message_sep|>\n\nfunction call<|role_sep|>\n{_OBJECT}", end="<|message_sep|>\n\n"
    ),
    "GigaChat 3.5": ModelFamily(
        '<｜GCML｜tool_calls>\n<｜GCML｜invoke name="«name»">\n«arguments»</｜GCML｜invoke>\n'
        "</｜GCML｜tool_calls>",
        _DSML_PARAMETER.replace("DSML", "GCML"),
        end="</s>",
    ),
    "Gemma 3": ModelFamily("```tool_code\n«name»(«keywords»)\n```", end="<end_of_turn>"),
    "FunctionGemma": ModelFamily(
        "<start_function_call>call:«name»{«arguments»}<end_function_call>",
        "«key»:«value»",
        end="<start_function_response>",
        string="<escape>«value»<escape>",
        between=",",
    ),
    "Gemma 4": ModelFamily(
        "<|tool_call>call:«name»{«arguments»}<tool_call|>",
        "«key»:«value»",
        think="<|channel>thought\n«think»\n<channel|>",
        end="<turn|>",
        string='<|"|>«value»<|"|>',
        between=",",
    ),
    "Gemma 4, before a result": ModelFamily(
        "<|tool_call>call:«name»{«arguments»}<tool_call|>",
        "«key»:«value»",
        think="<|channel>thought\n«think»\n<channel|>",
        end="<|tool_response>",
        string='<|"|>«value»<|"|>',
        between=",",
    ),
    "Gemma 4, special tokens dropped": ModelFamily(
        "call:«name»{«arguments»}", "«key»:«value»", end="", between=","
    ),
    "gpt-oss": ModelFamily(
        "<|start|>assistant<|channel|>commentary to=functions.«name» <|constrain|>json<|message|>«json»",
        think="<|channel|>analysis<|message|>«think»<|end|>",
        answer="<|start|>assistant<|channel|>final<|message|>«answer»",
        end="<|call|>",
    ),
    "gpt-oss, recipient in the role": ModelFamily(
        "<|start|>assistant to=functions.«name»<|channel|>commentary json<|message|>«json»",
        think="<|channel|>analysis<|message|>«think»<|end|>",
        answer="<|start|>assistant<|channel|>final<|message|>«answer»",
        end="<|return|>",
    ),
    "Kimi K2": ModelFamily(
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.«name»:0<|tool_call_argument_begin|>"
        "«json»<|tool_call_end|><|tool_calls_section_end|>",
        think="<think>«think»</think>",
    ),
    "Kimi K3": ModelFamily(
        '<|open|>tools<|sep|><|open|>call tool="«name»" index="1"<|sep|>«arguments»<|close|>call<|sep|>'
        "<|close|>tools<|sep|>",
        '<|open|>argument key="«key»" type="string"<|sep|>«value»<|close|>argument<|sep|>',
        think="<|open|>think<|sep|>«think»<|close|>think<|sep|>",
        answer="<|open|>response<|sep|>«answer»<|close|>response<|sep|>",
        end="<|close|>message<|sep|><|end_of_msg|>",
    ),
    "Kimi K3, opened by the template": ModelFamily(
        '<|open|>response<|sep|><|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="«name»" '
        'index="1"<|sep|><|open|>json type="object"<|sep|>«json»<|close|>json<|sep|><|close|>call<|sep|>'
        "<|close|>tools<|sep|>",
        think="«think»<|close|>think<|sep|>",
        answer="<|open|>response<|sep|>«answer»<|close|>response<|sep|>",
        end="<|close|>message<|sep|>",
    ),
    "MiniMax M1": ModelFamily(
        f"<tool_calls>\n{_OBJECT}\n</tool_calls>", think=_THINK, end="<end_of_sentence>"
    ),
    "MiniMax M2": ModelFamily(
        f"<minimax:tool_call>\n{_INVOKE}\n</minimax:tool_call>".replace("P:", ""),
        _PARAMETER.replace("P:", ""),
        think="<think>\n«think»\n</think>\n\n",
        end="[e~[",
    ),
    "MiniMax M3": ModelFamily(
        ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="«name»">«arguments»]<]minimax[>[</invoke>\n'
        "]<]minimax[>[</tool_call>",
        "]<]minimax[>[<«key»>«value»]<]minimax[>[</«key»>",
        think="<mm:think>«think»</mm:think>",
        end="[e~[",
    ),
    "Hunyuan A13B": ModelFamily(
        f"<tool_calls>[{_OBJECT}]</tool_calls>",
        think="<think>\n«think»\n</think>\n",
        answer="<answer>\n«answer»\n</answer>",
        end="<|eos|>",
    ),
    "Hunyuan 3": ModelFamily(
        "<tool_calls>\n<tool_call>«name»<tool_sep>\n«arguments»</tool_call>\n</tool_calls>",
        _GLM_ARGUMENT,
        think=_THINK,
        end="<|hy_eos|>",
    ),
    "Hunyuan 4, tokens with a suffix": ModelFamily(
        "<tool_calls:6124c78e><tool_call:6124c78e>«name»«arguments»</tool_call:6124c78e></tool_calls:6124c78e>",
        "<arg_key:6124c78e>«key»</arg_key:6124c78e><arg_value:6124c78e>«value»</arg_value:6124c78e>",
        think="<think:6124c78e>«think»</think:6124c78e>",
        end="<|hy_eos:6124c78e|>",
    ),
    "MiniCPM": ModelFamily(
        '<function name="«name»">«arguments»</function>',
        '<param name="«key»"><![CDATA[«value»]]></param>',
        think=_THINK,
    ),
    "GLM-4.5": ModelFamily(_GLM, _GLM_ARGUMENT, think="<think>«think»</think>\n", end="<|observation|>"),
    "GLM-4.7": ModelFamily(
        _GLM.replace("\n", ""), _GLM_ARGUMENT.replace("\n", ""), think="«think»</think>", end="<|user|>"
    ),
    "GLM-4.5V": ModelFamily(
        _GLM,
        _GLM_ARGUMENT,
        think="<think>«think»</think>",
        answer="<answer><|begin_of_box|>«answer»<|end_of_box|></answer>",
        end="<|user|>",
    ),
    "GLM-4.6V": ModelFamily(_GLM, _GLM_ARGUMENT, answer="<|begin_of_box|>«answer»<|end_of_box|>", end=""),
    "GLM-4": ModelFamily("«name»\n«json»", end="<|observation|>"),
    "Seed-OSS": ModelFamily(
        "<seed:tool_call>\n<function=«name»>\n«arguments»</function>\n</seed:tool_call>",
        "<parameter=«key»>«value»</parameter>\n",
        think="<seed:think>«think»</seed:think>\n",
        end="<seed:eos>",
    ),
    "Granite 3": ModelFamily(f"<|tool_call|>[{_OBJECT}]", end="<|end_of_text|>"),
    "Granite 3.3": ModelFamily(
        f"<|tool_call|>[{_OBJECT}]",
        think="<think>«think»</think>",
        answer="<response>«answer»</response>",
        end="<|end_of_text|>",
    ),
    "Granite 4": ModelFamily(_HERMES, end="<|end_of_text|>"),
    "ERNIE 4.5": ModelFamily(
        f"\n{_HERMES}\n",
        think="<think>\n«think»\n</think>\n\n\n",
        answer="<response>\n«answer»\n</response>\n",
        end="<|end_of_sentence|>",
    ),
    "Command R": ModelFamily(
        'Action:\n```json\n[\n    {\n        "tool_name": "«name»",\n        "parameters": «json»\n'
        "    }\n]```",
        end="<|END_OF_TURN_TOKEN|>",
    ),
    "Command A": ModelFamily(
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "«name»", "parameters": «json»}\n]'
        "<|END_ACTION|>",
        think="<|START_THINKING|>«think»<|END_THINKING|>",
        answer="<|START_RESPONSE|>«answer»<|END_RESPONSE|>",
        end="<|END_OF_TURN_TOKEN|>",
    ),
    "Command A Plus": ModelFamily(
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "«name»", "parameters": «json»}\n]'
        "<|END_ACTION|>",
        think="<|START_THINKING|>«think»<|END_THINKING|>",
        answer="<|START_TEXT|>«answer»<|END_TEXT|>",
        end="<|END_OF_TURN_TOKEN|>",
    ),
    "xLAM": ModelFamily(f"[{_OBJECT}]", think=_THINK, end="<|eot_id|>"),
    "Nemotron": ModelFamily(f"<TOOLCALL>[{_OBJECT}]</TOOLCALL>", think=_THINK, end="<SPECIAL_12>"),
    "Phi-4-mini": ModelFamily(f"<|tool_call|>[{_OBJECT}]<|/tool_call|>", end="<|end|>"),
    "EXAONE 4": ModelFamily(_HERMES, think="<think>\n«think»\n</think>\n\n", end="[|endofturn|]"),
    "EXAONE Deep": ModelFamily(
        _HERMES, think="<thought>\n«think»\n</thought>\n\n", end="[|endofturn|]\n[|user|]"
    ),
    "Apertus": ModelFamily(
        '<|tools_prefix|>[{"«name»": «json»}]<|tools_suffix|>',
        think="<|inner_prefix|>«think»<|inner_suffix|>",
        end="<|assistant_end|>",
    ),
    "LFM2": ModelFamily("<|tool_call_start|>[«name»(«keywords»)]<|tool_call_end|>"),
    "OLMo 3": ModelFamily("<function_calls>«name»(«keywords»)</function_calls>", think=_THINK),
    "Solar Open 2": ModelFamily(
        "<|tool_call:start|>«name»\n«arguments»<|tool_call:end|>",
        "<|tool_arg:start|>«key»<|tool_arg:value|>«value»<|tool_arg:end|>\n",
        think="<|think:start|>«think»<|think:end|>",
        end="<|im:end|>",
    ),
    "PLaMo 3": ModelFamily(
        "<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>"
        "«name»<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>«json»"
        "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|>",
        think="<|plamo:begin_think:plamo|>«think»<|plamo:end_think:plamo|>",
        end="<|plamo:tag|>",
    ),
    "Step 3": ModelFamily(
        "<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜>"
        f"{_INVOKE}<｜tool_call_end｜>\n<｜tool_calls_end｜>".replace("P:", "steptml:"),
        _PARAMETER.replace("P:", "steptml:"),
        think=_THINK,
        end="<|EOT|>",
    ),
    "InternLM": ModelFamily(
        '<|action_start|><|plugin|>\n{"name": "«name»", "parameters": «json»}<|action_end|>'
    ),
    "LongCat": ModelFamily(
        f"<longcat_tool_call>{_OBJECT}</longcat_tool_call>",
        think="<longcat_think>\n«think»\n</longcat_think>\n",
        end="</longcat_s>",
    ),
    "LongCat, arguments in tags": ModelFamily(
        "<longcat_tool_call>«name»\n«arguments»</longcat_tool_call>",
        "<longcat_arg_key>«key»</longcat_arg_key>\n<longcat_arg_value>«value»</longcat_arg_value>\n",
        end="</longcat_s>",
    ),
    "K2 Horizon": ModelFamily(
        "<ifm|tool_calls>\n<ifm|tool_call>«name»\n«arguments»</ifm|tool_call>\n</ifm|tool_calls>",
        "<ifm|arg_key>«key»</ifm|arg_key>\n<ifm|arg_value>«value»</ifm|arg_value>\n",
        think="<ifm|think>«think»</ifm|think>",
    ),
    "Muse": ModelFamily(
        "<|start|>assistant to=«name»<|message|><atem:function_calls>\n"
        f"{_INVOKE}\n</atem:function_calls>".replace("P:", "atem:"),
        _PARAMETER.replace("P:", "atem:"),
        end="<|eot|>",
    ),
    "Inkling": ModelFamily(
        '<|message_model|>«name»<|content_invoke_tool_json|>{"name": "«name»", "args": «json»}',
        think="<|content_thinking|>«think»<|end_message|>",
        answer="<|message_model|><|content_text|>«answer»",
        end="<|end_message|>",
    ),
    "dots": ModelFamily(
        f"<dots_function_call>\n{_INVOKE}\n</dots_function_call>".replace("P:", ""),
        _PARAMETER.replace("P:", ""),
        end="<|endofassistant|>",
    ),
    "IQuest": ModelFamily(
        "<iquest_tool_call>«name»«arguments»</iquest_tool_call>", _GLM_ARGUMENT.replace("\n", "")
    ),
    "openPangu": ModelFamily(
        f"[unused11][{_OBJECT}][unused12]", think="[unused16]«think»[unused17]", end="[unused10]"
    ),
    "HyperCLOVA X": ModelFamily(f" -> tool/function_call\n[{_OBJECT}]", end="<|im_end|><|stop|>"),
    "Jamba": ModelFamily(f"<tool_calls>[{_OBJECT}]</tool_calls>", end="<|eom|>"),
    "Claude": ModelFamily(
        f"<function_calls>\n{_INVOKE}\n</function_calls>".replace("P:", ""),
        _PARAMETER.replace("P:", ""),
        think="<thinking>\n«think»\n</thinking>\n",
        end="",
    ),
    "Functionary": ModelFamily(">>>«name»\n«json»", end="<|eot_id|>"),
    "RWKV": ModelFamily(
        f"**Tool Call:**\n```json\n{_OBJECT}\n```", think="<think>«think»</think>", end="\n\n"
    ),
}
"""By name."""
