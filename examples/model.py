"""Let a model play a TextCraft task, over any server that supports OpenAI's chat protocol.

``OPENAI_BASE_URL=http://127.0.0.1:8000/v1 OPENAI_API_KEY=EMPTY python examples/model.py MODEL``
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from openai import OpenAI

from agentgym_gym import AgentGymEnv

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionMessageParam

with OpenAI() as client, AgentGymEnv("TextCraft", max_turns=20) as env:
    observation, info = env.reset(options={"task_id": 0})
    messages: list[ChatCompletionMessageParam] = [{"role": "system", "content": env.system_prompt}]
    done = False
    while not done:
        messages.append({"role": "user", "content": observation})
        completion = client.chat.completions.create(model=sys.argv[1], messages=messages)
        reply = completion.choices[0].message.content or ""
        messages.append({"role": "assistant", "content": reply})
        observation, reward, terminated, truncated, info = env.step(reply)
        print(f"{info['action']} -> {observation.splitlines()[0]}")
        done = terminated or truncated
    print(f"success={info['success']} turns={info['turn']}", info.get("fault", ""))
