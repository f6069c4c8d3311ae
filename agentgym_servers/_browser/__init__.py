"""The browser frame: one Chromium process, one context for each episode, pages as text, actions as text."""
