"""The pages of MiniWoB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["LIKE_TRAIN", "TASK_NAMES", "TRAIN_VARIATIONS", "UNSEEN_NAMES", "VARIATIONS"]

VARIATIONS = 100
"""The number of seeds of each page."""

TRAIN_VARIATIONS = 80
"""The number of the seeds that are for training; the others are for tests."""

TASK_NAMES = (
    "ascending-numbers",
    "buy-ticket",
    "choose-date",
    "choose-date-easy",
    "choose-date-medium",
    "choose-date-nodelay",
    "choose-list",
    "click-button",
    "click-button-sequence",
    "click-checkboxes",
    "click-checkboxes-large",
    "click-checkboxes-transfer",
    "click-collapsible",
    "click-collapsible-2",
    "click-collapsible-2-nodelay",
    "click-collapsible-nodelay",
    "click-dialog",
    "click-dialog-2",
    "click-link",
    "click-menu",
    "click-option",
    "click-tab",
    "click-tab-2",
    "click-tab-2-easy",
    "click-tab-2-hard",
    "click-tab-2-medium",
    "click-test",
    "click-test-2",
    "click-test-transfer",
    "click-widget",
    "copy-paste",
    "copy-paste-2",
    "email-inbox",
    "email-inbox-delete",
    "email-inbox-forward",
    "email-inbox-important",
    "email-inbox-noscroll",
    "email-inbox-reply",
    "email-inbox-star-reply",
    "enter-date",
    "enter-password",
    "enter-text",
    "enter-text-2",
    "enter-text-dynamic",
    "enter-time",
    "find-greatest",
    "find-word",
    "focus-text",
    "focus-text-2",
    "form-sequence-2",
    "generate-number",
    "guess-number",
    "login-user",
    "login-user-popup",
    "multi-layouts",
    "multi-orderings",
    "navigate-tree",
    "odd-or-even",
    "order-food",
    "phone-book",
    "read-table",
    "read-table-2",
    "scroll-text",
    "search-engine",
    "sign-agreement",
    "simple-algebra",
    "simple-arithmetic",
    "social-media",
    "social-media-all",
    "social-media-some",
    "terminal",
    "text-transform",
    "unicode-test",
    "use-autocomplete",
    "use-autocomplete-nodelay",
)
"""The names of the pages, in the order of their task ids."""

UNSEEN_NAMES = (
    "click-tab-2",
    "email-inbox",
    "focus-text-2",
    "login-user-popup",
    "multi-layouts",
    "read-table-2",
)
"""The names of the pages whose tasks are kept out of training."""

LIKE_TRAIN: Mapping[str, Sequence[int]] = {
    **dict.fromkeys(
        (
            "ascending-numbers",
            "click-button-sequence",
            "click-test",
            "click-test-2",
            "click-test-transfer",
            "focus-text",
            "guess-number",
        ),
        range(TRAIN_VARIATIONS, VARIATIONS),
    ),
    "choose-date": (80, 85),
    "choose-date-easy": (80, 81, 83, 85, 86, 87, 88, 89, 90, 91, 92, 93, 95, 96, 97, 98, 99),
    "choose-date-medium": (80, 81, 85, 86, 87, 88, 90, 91, 95, 96, 97, 98),
    "choose-date-nodelay": (80, 85),
    "enter-text": (80, 83, 84, 85, 86, 87, 90, 91, 92, 93, 98, 99),
    "enter-text-2": (84, 85, 87, 90, 92, 93, 98, 99),
    "enter-text-dynamic": (91,),
    "enter-time": (82, 88, 94),
    "form-sequence-2": (85, 93, 94),
    "generate-number": (83, 87, 90, 93, 97),
    "multi-layouts": (73, 75),
    "order-food": (80, 81, 82, 83, 84, 87, 88, 90, 91, 93, 95, 97),
    "simple-arithmetic": (90, 91, 93, 95, 96, 97, 98),
}
"""Seeds of test tasks, by page, that an agent cannot distinguish from a training task.

Their texts, without the address of the page, and their winning actions are the same. The tests compare them
on some of the pages.
"""
