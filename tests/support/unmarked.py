"""Prose without a mark, and a filter of marks by plain lists that shares nothing with the formats.

A mark is what the reading rule calls one: a label, a tag, a fence, a JSON object, the notation of a call, a
leading ``>``, reasoning, a turn or an invented observation. The filter is wider than the rule: it may leave
out a line that holds no mark, and never keeps one that does.
"""

from __future__ import annotations

import itertools
import unicodedata
from functools import cache
from pathlib import Path

_FILE = Path(__file__).resolve().parents[1] / "replies" / "sentences.txt"

SENTENCES = tuple(_FILE.read_text("utf-8").splitlines())
"""Ordinary sentences as models write them around actions, one on each line."""

# All lists are in lower case and without blanks, markdown and digits, as a line is when it is compared.
_LABELS = (  # also of languages that no format has
    *("action", "actioninput"),
    *("动作", "行动", "動作", "行動", "操作", "行为", "行為", "アクション", "행동", "동작", "액션", "조치"),
    *("aktion", "handlung", "aktionen", "handlungen"),
    *("acción", "accion", "acciones", "ação", "acao", "ações", "azione", "azioni", "acció", "acțiune"),
    *("actie", "acties", "handeling", "åtgärd", "handling", "toiminto", "toimenpide", "tegevus"),
    *("akcja", "działanie", "akce", "akcia", "akcija", "művelet", "veprim", "eylem", "aksiyon", "hareket"),
    *("действие", "действия", "дія", "дії", "действие", "акција", "ενέργεια", "δράση", "ενεργεια"),
    *("hànhđộng", "tindakan", "aksi", "kitendo", "การกระทำ", "การดำเนินการ", "कार्रवाई", "क्रिया", "কর্ম"),
    *("إجراء", "الإجراء", "الاجراء", "فعل", "פעולה", "הפעולה", "اقدام", "عمل", "کنش"),
)
_SIGNS = (":", "=", "->", "→", "⇒", "➡", "➜", "➔", "-", "–", "—", "]", "】", "|", ">")
_TAGS = (
    *("action", "tool", "function", "call", "invoke", "param", "arg", "name", "value", "json", "code"),
    *("think", "thought", "reason", "reflect", "scratchpad", "analysis", "channel", "seed", "plan"),
    *("search", "answer", "information", "observation", "result", "response", "output", "input"),
    *(
        "user",
        "human",
        "assistant",
        "system",
        "bot",
        "model",
        "turn",
        "message",
        "start",
        "end",
        "eos",
        "bos",
    ),
    *("s>", "|", "｜", "!", "execute", "python", "command", "step", "act>", "act ", "obs", "multi", "final"),
)
_ELSEWHERE = (
    *("```", "~~~", "{", "&lt;", "<|", "|>", "[tool", "[/tool", "[inst", "[/inst", "[action", "[args]"),
    *("[think", "[/think", "[call", "◁", "▷", "✿", "[[##", "thinking...", "thinking…", "donethinking"),
    *("functions.", "toolcall", "functioncall", "function=", "to=", "call:", "tool:", "withinput"),
)
_TURNS = (
    *(
        "observation",
        "obs",
        "result",
        "results",
        "output",
        "response",
        "feedback",
        "toolresult",
        "tooloutput",
    ),
    *("user", "human", "assistant", "system", "tool", "ai", "bot", "model", "environment", "env", "reply"),
    *("toolresponse", "functionresult", "functionresponse", "server", "role", "ipython", "developer"),
    *("观察", "观测", "观察结果", "觀察", "观测结果", "结果", "用户", "用戶", "观測", "観察", "観測", "結果"),
    *("ユーザー", "관찰", "결과", "사용자", "beobachtung", "ergebnis", "benutzer", "nutzer", "observación"),
    *("observacion", "resultado", "usuario", "observação", "observacao", "usuário", "osservazione"),
    *("risultato", "utente", "observatie", "observatie", "resultaat", "gebruiker", "observation"),
    *("résultat", "utilisateur", "наблюдение", "результат", "пользователь", "obserwacja", "wynik"),
    *(
        "użytkownik",
        "pozorování",
        "gözlem",
        "sonuç",
        "kullan\u0131c\u0131",
        "quansát",
        "kếtquả",
        "pengamatan",
    ),
    *(
        "observasi",
        "hasil",
        "ملاحظة",
        "الملاحظة",
        "مراقبة",
        "נתון",
        "תצפית",
        "अवलोकन",
        "การสังเกต",
        "παρατήρηση",
    ),
)
_QUOTES = (">", "&gt;", "»", "\u203a", "\u276f", "≫")
_ENDS = ("", "s", "is", "sis", "are", "sare", "n", "]", ")")
_MARKDOWN = frozenset("*_#~`\"'“”‘’0123456789.(),")
_HTML = ("<b>", "</b>", "<i>", "</i>", "<p>", "</p>", "<u>", "</u>", "<strong>", "</strong>", "<em>", "</em>")
_LIST_SIGNS = "-+•·‣◦–—|[]:"


@cache
def holds_mark(text):
    """Return whether a text may hold a mark in any of its lines."""
    return any(_marked(line) for line in dict.fromkeys([text, *text.splitlines()]))


def _marked(line):
    folded = unicodedata.normalize("NFKC", line).casefold()
    seen = [c for c in folded if not c.isspace() and unicodedata.category(c)[0] != "C"]
    text = "".join(seen)
    dense = "".join(c for c in seen if c not in _MARKDOWN)
    for tag in _HTML:
        dense = dense.replace(tag, "")
    start = dense.lstrip(_LIST_SIGNS)
    alone = dense.strip(_LIST_SIGNS + ">")
    return (
        any(sign in text for sign in _ELSEWHERE)
        or ("<" in text and _has_tag(text.replace("_", "").replace("-", "")))
        or start.startswith(_QUOTES)
        or any(_is_label(word, dense) for word in _LABELS if word in dense)
        or alone.endswith(_LABELS)
        or (start.startswith(_TURNS) and _is_turn(start))
        or alone in _TURNS
        or any(c == "(" and (b.isalnum() or b in "_]") for b, c in itertools.pairwise(folded))
    )


def _has_tag(text):
    return any(f"<{end}{tag}" in text for tag in _TAGS for end in ("", "/"))


def _is_label(word, text):
    return any(word + end + sign in text for end in _ENDS for sign in _SIGNS)


def _is_turn(text):
    return any(text.startswith(turn + sign) for turn in _TURNS for sign in _SIGNS)
