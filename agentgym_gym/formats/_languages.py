"""Words of many languages by which a reply takes an action back, or only supposes one.

The readers of words and of calls look for them beside their own patterns, so that a language is added once.
"""

# ruff: noqa: RUF001 - models write these characters, too

from __future__ import annotations

import re

__all__ = ["NEGATED", "SUPPOSED", "TAKEN_BACK"]

# At the beginning of a sentence, these stand against what was said before.
_OPENINGS = (
    r"non[,.!…]|non (?:posso|va)\b|attend(?:ez|s)\b|en fait\b|pardon\b|désolée?s?\b|oubli(?:e|ez|ons)\b"
    r"|plutôt\b|à la réflexion\b|oups\b"
    r"|espere?[ns]?[,. !]|espera[,. !]|no[,.!…—]|no ?[–—-]|but\b|not (?:this|that|so)\b|better\b|argh\b|ugh\b"
    r"|damn\b|whoops\b|edit\b|no (?:es|está|puedo|funciona|sirve)\b|perd[óo]n(?:a|e|en)?\b|lo siento\b"
    r"|en realidad\b|mejor no\b|olvid[ae]\b"
    r"|pensándolo bien\b|não[,.!…]|não (?:é|está|posso|funciona)\b|descul(?:pe|pa|pem)\b|na verdade\b"
    r"|esque[cç][ae]\b|pensando bem\b|ops\b|ups\b"
    r"|warte?n?\b|nein\b|halt[,.! ]|doch nicht\b|moment[,.! ]|entschuldigung\b|verzeihung\b|vergiss\b"
    r"|korrektur\b"
    r"|aspetta\b|scusa(?:te)?\b|anzi\b|dimentica\b|in realtà\b|подожди\w*|нет[,.!…]|стоп|извини\w*"
    r"|прости\w*|забудь\w*"
    r"|на самом деле|не[,.] |отмена|انتظر|لا[،,]|عذر|آسف|रुक|नहीं|माफ|nee[,.!]|wacht\b|sorry[,.!]"
    r"|nie[,.!]|czekaj\w*|stop[,.!]|hayır\b|bekle\b|dur[,.!]|khoan\b|không[,.!]|tunggu\b|bukan\b|maaf\b"
    r"|ні[,.!]|зачекай\w*|počkej\w*|ne[,.!]|nej[,.!]|vänta\b|please (?:ignore|disregard|skip|wait"
    r"|do not|don['’]t)\b|(?:do not|don['’]t) \w|क्षमा|不[,，。! ]|いえ[,、]|いや[,、]|아니"
)
# Anywhere, these say that it was a mistake.
_MISTAKES = (
    r"\b(?:(?:just|only) a (?:suggestion|proposal|thought|guess|possibility)|you decide"
    r"|regret\w*|overrul\w*|would never"
    r"|another (?:one|action|move|call)|(?:erase|delete|replace|remove) (?:this|that|it)"
    r"|to be replaced|wrong|mistak(?:e|en)|typo|erroneous|retract\w*|revoke\w*|void|undo|aloud|seriously"
    r"|reconsider\w*|on reflection"
    r"|come to think|i meant|not meant|i(?: would|['’]d)? (?:prefer|rather)|would (?:be|have been) better"
    r"|(?:as soon as|until|once) you)\b"
    # A question that asks for consent; what, where and how only ask for what comes next.
    r"|(?:\A|[.!?,\n(])\W{0,6}(?:(?:do|are|would|could) you|(?:shall|should|can|may|could|do) (?:i|we)"
    r"|(?:is|was|does|would|will) (?:this|that))\b"
    r"[^.!?\n]{0,120}[?？]|\b(?:ok|okay|right|agreed|yes|correct)[?？]"
    r"|\bmy (?:bad|mistake|error|fault)\b|\b(?:confirmation|approval|permission|go-ahead|consent)\b"
    r"|\b(?:this|that) (?:(?:will|would|does|did|can|could|is|was) not|(?:wo|would|does|did|ca|could|is"
    r"|was)n['’]t|cannot|never)\b"
    r"|\btake (?:this|that|it) back\b|\b(?:(?:scratch|scrap|strike|undo|revert|discard|belay"
    r"|withdraw) (?:that|this|it)|me suis trompée?s?|c['’]est (?:faux|incorrect|une erreur)|(?:n['’]est"
    r"|est) pas (?:possible|ça|bon|correct|juste)"
    r"|(?:une|mon) erreur|annul(?:e|ez|er|ons) (?:ça|cela|cette)|je corrige"
    r"|me equivoqu[ée]|(?:eso|esto) (?:no )?(?:es|está|era) (?:mal|incorrect\w+|correct\w+|un error"
    r"|imposible)|está mal"
    r"|un error|cancel[ao] (?:eso|esto)|corrijo|me enganei|errei|(?:isso|isto) (?:não )?(?:é|está"
    r"|era) (?:err\w+|incorret\w+"
    r"|cert\w+|corret\w+|um erro)|um erro|das (?:ist|war) (?:falsch|ein fehler|nicht richtig|verkehrt)"
    r"|habe mich (?:geirrt|vertan)"
    r"|mi sono sbagliat[oa]|è sbagliat[oa]|un errore|sbagliato|(?:is|was) fout|klopt niet|błąd|pomyłka"
    r"|pomyliłem|yanlış|hata(?:lı|ydı)?|sai rồi|nhầm|salah|помилка|špatně|fel (?:av|där)|ошиб(?:ся|лась"
    r"|ка|очн\w+)|неправильно|неверно|отменя\w+)\b"
    r"|等等|等一下|不对|不對|不行|错了|錯|算了|抱歉|取消|撤回|搞错|弄错|更正|改正|收回"
    r"|待って|違う|違い|間違|すみません|やっぱり|取り消|訂正|撤回|しまった"
    r"|잠깐|잘못|틀렸|틀린|취소|죄송|정정|실수|خطأ|ألغ|تراجع|गलत|रद्द"
)
TAKEN_BACK = re.compile(
    rf"(?:^|[.!?…\n。！？(—])[\s*_\"'>-]{{0,8}}(?:{_OPENINGS})|{_MISTAKES}", re.IGNORECASE
)
"""A sentence that takes back what was said before it."""

SUPPOSED = re.compile(
    r"\A[^\w]*(?:si|s['’]ils?|quand|lorsque|dès que|une fois|sauf si|supposons|imaginons|cuando|una vez"
    r"|a menos que"
    r"|salvo que|supongamos|se|quando|assim que|caso|suponha\w*|wenn|falls|sobald|angenommen|wäre|hätte"
    r"|qualora|appena"
    r"|если|когда|как только|допустим|إذا|لو|عندما|अगर|यदि|जब)\b"
    r"|\b(?:(?:je|on|il|elle|nous|vous|ils|elles) |j['’])\w+r(?:ais|ait|ions|iez|aient)\b"
    r"|\b\w{2,20}ría(?:s|mos|n)?\b|\beu \w{2,20}ria\b|\b(?:würde|könnte|wäre|hätte|müsste)\w*"
    r"|\b(?:ne|n['’]) ?\w+ (?:pas|plus|jamais|rien)\b|\b(?:par exemple|por ejemplo|por exemplo"
    r"|zum beispiel|per esempio"
    r"|например|пример)\b|\bпримера?\b|\bбы\b|مثال|مثلا|उदाहरण"
    r"|[가-힣]면[ ,]|[れけ]ば[、,]|たら[、,]|なら[、,]|nếu\b|eğer\b|jeśli\b|gdyby\b|якби\b|kdyby\b"
    r"|\b(?:anything but|the opposite of)\b"
    r"|如果|若是|要是|假如|假设|例如|比如|示例|等到|もし|例えば|の例|만약|예를 들|예시",
    re.IGNORECASE,
)
"""A sentence that only supposes what follows it, makes it wait for something, or shows it as an example."""

NEGATED = re.compile(
    r"\b(?:no to|banned|prohibited|ruled out)\b|\bno (?:voy|vamos|puedo|debo|debemos|quiero"
    r"|har[ée]|hagas?|hay que|se (?:debe|puede))\b"
    r"|\b(?:não|niet|nicht|nie|не|ikke|inte)\b|\bnon \w+",
    re.IGNORECASE,
)
"""A clause that says what is not done."""
