"""Chat templates with native tool calls, as families of models have them; written for these tests."""

from __future__ import annotations

from chat_templates import Family

_CHATML = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
_TAGS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")

# The tools are in the system message, and results in a turn of the user.
_HERMES = (
    "<|im_start|>system\n{% if messages[0]['role'] == 'system' %}{{ messages[0]['content'] }}{% else %}"
    "You help.{% endif %}{% if tools %}\n\n# Functions\n{% for t in tools %}{{ t | tojson }}\n{% endfor %}"
    'Write {"name": ..., "arguments": ...} in tool_call tags.{% endif %}<|im_end|>\n'
    "{% for m in messages %}{% if m['role'] == 'tool' %}"
    "{% if loop.index0 == 0 or messages[loop.index0 - 1]['role'] != 'tool' %}<|im_start|>user{% endif %}"
    "{{ '\n' }}<tool_response>\n{{ m['content'] }}\n</tool_response>"
    "{% if loop.last or messages[loop.index0 + 1]['role'] != 'tool' %}<|im_end|>\n{% endif %}"
    "{% elif m['role'] == 'assistant' %}<|im_start|>assistant\nTHOUGHT{{ m['content'] }}"
    "{% for c in m['tool_calls'] or [] %}{% if m['content'] or not loop.first %}{{ '\n' }}{% endif %}"
    "<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>'
    "{% endfor %}<|im_end|>\n"
    "{% elif m['role'] == 'user' %}<|im_start|>user\n{{ m['content'] }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\nOPENED{% endif %}"
)

_LLAMA = (
    "<|begin_of_text|>{% set n = namespace(first=true) %}{% for m in messages %}"
    "{% if m['role'] == 'assistant' and m['tool_calls'] %}<|start_header_id|>assistant<|end_header_id|>\n\n"
    "{% if m['tool_calls'] | length > 1 %}{{ raise_exception('one call at a time') }}{% endif %}"
    "{% set c = m['tool_calls'][0].function %}"
    '{"name": "{{ c.name }}", "parameters": {{ c.arguments | tojson }}}<|eot_id|>'
    "{% else %}<|start_header_id|>{{ 'ipython' if m['role'] == 'tool' else m['role'] }}<|end_header_id|>\n\n"
    "{% if m['role'] == 'user' and n.first %}{% set n.first = false %}"
    "{% for t in tools or [] %}{{ t | tojson }}\n\n{% endfor %}{% endif %}"
    "{% if m['role'] == 'tool' %}{{ m['content'] | tojson }}{% else %}{{ m['content'] | trim }}{% endif %}"
    "<|eot_id|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)

_MISTRAL = (
    "<s>{% for t in tools or [] %}{% if loop.first %}[AVAILABLE_TOOLS]{% endif %}{{ t | tojson }}"
    "{% if loop.last %}[/AVAILABLE_TOOLS]{% endif %}{% endfor %}"
    "{% for m in messages %}{% if m['role'] == 'system' %}[SYSTEM_PROMPT]{{ m['content'] }}[/SYSTEM_PROMPT]"
    "{% elif m['role'] == 'user' %}[INST]{{ m['content'] }}[/INST]"
    "{% elif m['role'] == 'tool' %}{% if m['tool_call_id'] | length != 9 %}"
    "{{ raise_exception('an id has 9 letters and digits') }}{% endif %}"
    "[TOOL_RESULTS]{{ m['content'] }}[/TOOL_RESULTS]"
    "{% elif m['tool_calls'] %}{% for c in m['tool_calls'] %}[TOOL_CALLS]{{ c.function.name }}[ARGS]"
    "{{ c.function.arguments | tojson }}{% endfor %}</s>{% else %}{{ m['content'] }}</s>{% endif %}"
    "{% endfor %}"
)

# A message with text has no calls for this one.
_DEEPSEEK = (
    "<｜begin▁of▁sentence｜>{% for m in messages %}{% if m['role'] == 'system' %}{{ m['content'] }}"
    "{% if loop.first %}{% for t in tools or [] %}\n{{ t | tojson }}{% endfor %}{% endif %}"
    "{% elif m['role'] == 'user' %}<｜User｜>{{ m['content'] }}"
    "{% elif m['role'] == 'tool' %}"
    "{% if messages[loop.index0 - 1]['role'] != 'tool' %}<｜tool▁outputs▁begin｜>{% endif %}"
    "<｜tool▁output▁begin｜>{{ m['content'] }}<｜tool▁output▁end｜>"
    "{% if loop.last or messages[loop.index0 + 1]['role'] != 'tool' %}<｜tool▁outputs▁end｜>{% endif %}"
    "{% elif m['content'] is none %}<｜Assistant｜><｜tool▁calls▁begin｜>{% for c in m['tool_calls'] %}"
    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{{ c.function.name }}\n```json\n"
    "{{ c.function.arguments | tojson }}\n```<｜tool▁call▁end｜>{% endfor %}<｜tool▁calls▁end｜>"
    "<｜end▁of▁sentence｜>{% else %}<｜Assistant｜>{{ m['content'] }}<｜end▁of▁sentence｜>{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<｜Assistant｜>{% endif %}"
)


def _hermes(thought: str = "", opened: str = "") -> str:
    return _HERMES.replace("THOUGHT", thought).replace("OPENED", opened)


TOOL_FAMILIES = {
    "hermes": Family(_hermes(), _CHATML, _TAGS, eos="<|im_end|>", end="<|im_end|>"),
    # Writes an empty thought before each reply after the last message of the user.
    "qwen 3": Family(
        _hermes(
            "{% if loop.last or messages[loop.index0 + 1]['role'] == 'tool' %}<think>\n\n</think>\n\n"
            "{% endif %}",
            "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}",
        ),
        _CHATML,
        ("<think>", "</think>", *_TAGS),
        eos="<|im_end|>",
        end="<|im_end|>",
        options={"enable_thinking": False},
    ),
    "llama 3.1": Family(
        _LLAMA,
        ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
        eos="<|eot_id|>",
        end="<|eot_id|>",
    ),
    "mistral": Family(
        _MISTRAL,
        (
            *("<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[AVAILABLE_TOOLS]"),
            *("[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[ARGS]"),
        ),
    ),
    "deepseek": Family(
        _DEEPSEEK,
        (
            *(
                "<｜begin▁of▁sentence｜>",
                "<｜end▁of▁sentence｜>",
                "<｜tool▁calls▁begin｜>",
                "<｜tool▁calls▁end｜>",
            ),
            *("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>", "<｜tool▁outputs▁begin｜>"),
            *("<｜tool▁outputs▁end｜>", "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
        ),
        ("<｜User｜>", "<｜Assistant｜>"),
        eos="<｜end▁of▁sentence｜>",
        end="<｜end▁of▁sentence｜>",
    ),
}
"""By name."""

# The result names the function, as gpt-oss and Gemma write it; the result names the call, as Kimi does it.
NAMED = {
    "function": _hermes().replace(
        "<tool_response>\n",
        "<tool_response>\n{{ messages[loop.index0 - 1]['tool_calls'][0].function.name }}: ",
    ),
    "id": _hermes().replace("<tool_response>\n", "<tool_response>\n{{ m['tool_call_id'] }}: "),
}
"""Templates by what they write with a result."""
