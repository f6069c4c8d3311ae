"""Words of other languages than English by which a reply takes an action back, or only supposes one.

Alternatives of regular expressions, for text in small letters and with plain marks. A language is added here
alone: the patterns in `_phrases.py` take them in.
"""

# ruff: noqa: RUF001 - models write these characters, too

from __future__ import annotations

__all__ = ["DOUBTS", "EXAMPLES", "MISTAKES", "NEGATIONS", "OPENINGS", "OTHER_DOUBTS", "OTHER_EXAMPLES"]
__all__ += ["OTHER_MISTAKES", "OTHER_OPENINGS", "OTHER_SUPPOSITIONS", "SUPPOSITIONS"]

# At the beginning of a sentence, these stand against what was said before. Those of the second kind need no
# end of a word behind them.
OPENINGS = (
    r"non[,.!…]|non (?:posso|va)\b|attend(?:ez|s)\b|en fait\b|pardon\b|désolée?s?\b|oubli(?:e|ez|ons)\b"
    r"|plutôt\b|à la réflexion\b|oups\b"
    r"|espere?[ns]?[,. !]|espera[,. !]|no (?:es|está|puedo|funciona|sirve)\b|perd[óo]n(?:a|e|en)?\b"
    r"|lo siento\b|en realidad\b|mejor no\b|olvid[ae]\b|pensándolo bien\b"
    r"|não[,.!…]|não (?:é|está|posso|funciona)\b|descul(?:pe|pa|pem)\b|na verdade\b|esque[cç][ae]\b"
    r"|pensando bem\b|ops\b|ups\b"
    r"|warte?n?\b|nein\b|halt[,.! ]|doch nicht\b|moment[,.! ]|entschuldigung\b|verzeihung\b|vergiss\b"
    r"|korrektur\b|aspetta\b|scusa(?:te)?\b|anzi\b|dimentica\b|in realtà\b"
    r"|nee[,.!]|wacht\b|nie[,.!]|czekaj\w*|hayır\b|bekle\b|dur[,.!]|khoan\b|không[,.!]|tunggu\b|bukan\b"
    r"|maaf\b|počkej\w*|ne[,.!]|nej[,.!]|vänta\b"
)
OTHER_OPENINGS = (
    r"подожди\w*|нет[,.!…]|стоп|извини\w*|прости\w*|забудь\w*|на самом деле|не[,.] |отмена|ні[,.!]|зачекай\w*"
    r"|انتظر|لا[،,]|عذر|آسف|रुक|नहीं|माफ|क्षमा|不[,. !]|いえ[,、]|いや[,、]|아니"
)

# Anywhere, these say that it was a mistake.
MISTAKES = (
    r"me suis trompée?s?|c'est (?:faux|incorrect|une erreur)|(?:n'est|est) pas (?:possible|ça|bon|correct"
    r"|juste)|(?:une|mon) erreur|annul(?:e|ez|er|ons) (?:ça|cela|cette)|je corrige"
    r"|me equivoqu[ée]|(?:eso|esto) (?:no )?(?:es|está|era) (?:mal|incorrect\w+|correct\w+|un error"
    r"|imposible)|está mal|un error|cancel[ao] (?:eso|esto)|corrijo"
    r"|me enganei|errei|(?:isso|isto) (?:não )?(?:é|está|era) (?:err\w+|incorret\w+|cert\w+|corret\w+"
    r"|um erro)|um erro"
    r"|das (?:ist|war) (?:falsch|ein fehler|nicht richtig|verkehrt)|habe mich (?:geirrt|vertan)"
    r"|mi sono sbagliat[oa]|è sbagliat[oa]|un errore|sbagliato"
    r"|(?:is|was) fout|klopt niet|błąd|pomyłka|pomyliłem|yanlış|hata(?:lı|ydı)?|sai rồi|nhầm|salah|špatně"
    r"|fel (?:av|där)"
)
OTHER_MISTAKES = (
    r"помилка|ошиб(?:ся|лась|ка|очн)|неправильно|неверно|отменя"
    r"|等等|等一下|不对|不對|不行|错了|錯|算了|抱歉|取消|撤回|搞错|弄错|更正|改正|收回|不过先|但是先|而不是|只是示例"
    r"|只是例子|待って|違う|違い|間違|すみません|やっぱり|取り消|訂正|しまった"
    r"|잠깐|잘못|틀렸|틀린|취소|죄송|정정|실수|خطأ|ألغ|تراجع|गलत|रद्द"
)

# At the beginning of a sentence, these suppose what it says; anywhere, the examples do.
SUPPOSITIONS = (
    r"si|s'ils?|quand|lorsque|dès que|une fois|sauf si|supposons|imaginons|cuando|una vez|a menos que"
    r"|salvo que|supongamos|se|quando|assim que|caso|suponha\w*|wenn|falls|sobald|angenommen|wäre|hätte"
    r"|qualora|appena|если|когда|как только|допустим|إذا|لو|عندما|अगर|यदि|जब"
)
EXAMPLES = (
    r"(?:(?:je|on|il|elle|nous|vous|ils|elles) |j')\w+r(?:ais|ait|ions|iez|aient)"
    r"|\w{2,20}ría(?:s|mos|n)?|eu \w{2,20}ria|(?:würde|könnte|wäre|hätte|müsste)\w*"
    r"|(?:ne|n') ?\w+ (?:pas|plus|jamais|rien)|par exemple|por ejemplo|por exemplo|zum beispiel|beispiel"
    r"|per esempio|например|примера?|бы|nếu|eğer|jeśli|gdyby|якби|kdyby"
)
OTHER_EXAMPLES = r"مثال|مثلا|उदाहरण|例如|例えば|比如|示例|格式|の例|예를 들|예시"
OTHER_SUPPOSITIONS = (
    r"[가-힣]면[ ,]|[れけ]ば[、,]|たら[、,]|なら[、,]|如果|若是|要是|假如|假设|等到|もし|만약"
)

# In the clause that leads to it: what may be, and what is not done.
DOUBTS = (
    r"könnte|würde|vielleicht|wenn|falls|beispiel|nicht|kein\w*|pourra\w+|peut-être|exemple|serait|ne|pas|si"
    r"|podría\w*|quizás?|tal vez|ejemplo|poderia|talvez|exemplo|não|potrei|forse|esempio|non|бы|если|например"
    r"|не|возможно"
)
OTHER_DOUBTS = r"不|例如|比如|如果|可能|可以|也许|或|还没|格式|もし|例えば|かもしれ|ない|예를|만약"
NEGATIONS = (
    r"no (?:voy|vamos|puedo|debo|debemos|quiero|har[ée]|hagas?|hay que|se (?:debe|puede))"
    r"|niet|nie|ikke|inte|non \w+"
)
