"""The labels of ReAct in several languages: the only table of words that the parsers depend on."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LABELS", "Labels"]


class Labels(NamedTuple):
    """The labels of one language, in lower case, as alternatives of a regular expression.

    Attributes:
        action: Labels of an action.
        thought: Labels of a thought, a plan and similar text.
        observation: Labels of text by an environment or another speaker.
        before: Words between the start of a line and the label of an action, such as "next".
        after: Words between that label and its colon.
    """

    action: str
    thought: str = ""
    observation: str = ""
    before: str = ""
    after: str = ""


LABELS = {
    "English": Labels(
        "action|act",
        "thoughts?|thinking|reasons?|reasoning|rationale|explanations?|reflections?|plan|notes?|comments?"
        "|analysis|justification|questions?|(?:final[ _])?answer|next steps?|why",
        "observations?|obs|environment|env|user|human|system"
        "|tool|tool[ _]response|tool[ _]result|tool[ _]output"
        "|feedback|game|server|results?|response|output|assistant|ai",
        "the|my|next|final|chosen|selected",
        "is|to take",
    ),
    "Arabic": Labels("(?:ال)?إجراء|(?:ال)?فعل", "(?:ال)?تفكير|فكرة", "(?:ال)?ملاحظة"),
    "Chinese": Labels(
        "动作|行动|操作|動作|行動",
        "思考|想法|理由|分析|解释|计划|注",
        "观察|观测|結果|结果|环境|用户|反馈|觀察",
        "最终|下一步|下一个|我的|接下来的|当前|选择的|执行|最終",
    ),
    "Czech": Labels("akce", "myšlenka", "pozorování"),
    "Dutch": Labels("actie", "gedachte", "observatie|waarneming", "volgende|mijn|de"),
    "French": Labels("action|act", "pensées?|réflexion|raisonnement", "observations?", "la|mon|ma|prochaine"),
    "German": Labels(
        "aktion|handlung", "gedanken?|überlegung|begründung", "beobachtung", "nächste|meine|die|finale"
    ),
    "Hindi": Labels("क्रिया|कार्रवाई", "विचार", "अवलोकन"),
    "Indonesian": Labels("tindakan|aksi", "pemikiran|pikiran", "pengamatan|observasi"),
    "Italian": Labels("azione", "pensiero|ragionamento", "osservazione", "la|mia|prossima|finale"),
    "Japanese": Labels("アクション|行動|動作|行為", "思考|考え", "観察", "次の|最終"),
    "Korean": Labels("액션|행동|동작", "생각", "관찰", "다음|최종"),
    "Polish": Labels("akcja|działanie", "myśl", "obserwacja", "następna|moja"),
    "Portuguese": Labels("ação|acao", "pensamento|raciocínio", "observação", "a|minha|próxima"),
    "Russian": Labels("действие", "мысль|размышление", "наблюдение", "следующее|мое|моё"),
    "Spanish": Labels("acción|accion", "pensamiento|razonamiento", "observación", "la|mi|próxima"),
    "Turkish": Labels("eylem", "düşünce", "gözlem"),
    "Ukrainian": Labels("дія", "думка", "спостереження"),
    "Vietnamese": Labels("hành động", "suy nghĩ", "quan sát"),
}
