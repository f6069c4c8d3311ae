"""The recipe, as numbers. It was fixed before the runs that docs/training/maze.md counts."""

from __future__ import annotations

SYSTEM = "You are in a maze. Reach the goal."

# The episodes.

TURNS = 20
"""Turn limit. The farthest start is 13 moves from the goal."""

REPLY_TOKENS = 8
"""A move is one token and the end of the turn another."""

PROMPT_LENGTH, RESPONSE_LENGTH = 64, 640

# What is shown beforehand.

SHOWN_STARTS = (1, 4, 9, 13, 21)
"""Tasks whose oracle games the model is fine-tuned on: one in five of the 25, near and far."""

SFT_REPEATS = 32
SFT_BATCH = 8
SFT_EPOCHS = 2
"""So 40 steps, whatever comes of them: the rule for how much is that it is the same for each seed."""
SFT_LEARNING_RATE = 3e-3

# What is learned.

GRPO_STEPS = 24
PROMPTS, ROLLOUTS = 16, 8
MINI_BATCH = 8
LEARNING_RATE = 5e-4
WARMUP_STEPS = 3
VALIDATE_EVERY = 4

# What is measured.

EPISODES_A_START = 8
"""200 episodes over all 25 starts, sampled at temperature 1."""

PHRASES = (
    SYSTEM,
    "The goal is at position ",
    ". Your current position is at position ",
    ". There are walls ",
    ". There is a wall ",
    "to your right",
    "to your left",
    "above you",
    "below you",
    "Your reply was not carried out: ",
    "A reply looks like this:",
    "move up",
    "move down",
    "move left",
    "move right",
)
"""What is said word for word again and again, each one token."""
