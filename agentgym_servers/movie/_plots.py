"""What the films of the Movie world are about, in five languages."""

from __future__ import annotations

__all__ = ["ENDINGS", "LANGUAGES", "PLOTS", "overview"]

LANGUAGES = {
    "US": ("en", "English", "English"),
    "NL": ("nl", "Nederlands", "Dutch"),
    "DE": ("de", "Deutsch", "German"),
    "CN": ("zh", "普通话", "Mandarin"),
    "JP": ("ja", "日本語", "Japanese"),
}
"""By the country's code: the language's code, its name in itself, and its name in English."""

PLOTS: tuple[dict[str, str], ...] = (
    {
        "US": "After ten years abroad, {hero} comes home to {city} and finds the family house sold.",
        "NL": "Na tien jaar elders komt {hero} terug in {city}: het ouderlijk huis is verkocht.",
        "DE": "Nach zehn Jahren kehrt {hero} nach {city} zurück und findet das Elternhaus verkauft.",
        "CN": "{hero}在国外生活十年后回到{city}，发现老家的房子已经卖掉。",
        "JP": "{hero}は十年ぶりに{city}へ帰るが、実家はすでに売られていた。",
    },
    {
        "US": "A letter that was posted forty years ago leads {hero} to {city}.",
        "NL": "Een brief die veertig jaar geleden is gepost brengt {hero} naar {city}.",
        "DE": "Ein Brief, der vor vierzig Jahren abgeschickt wurde, führt {hero} nach {city}.",
        "CN": "一封四十年前寄出的信把{hero}带到了{city}。",
        "JP": "四十年前に出された一通の手紙が{hero}を{city}へ導く。",
    },
    {
        "US": "In {city}, {hero} takes a job as a night porter and sees what nobody should see.",
        "NL": "In {city} wordt {hero} nachtportier en ziet wat niemand mag zien.",
        "DE": "In {city} nimmt {hero} eine Stelle als Nachtportier an und sieht, was niemand sehen soll.",
        "CN": "{hero}在{city}当上夜班门房，看到了不该看到的事。",
        "JP": "{city}で夜勤の仕事に就いた{hero}は、見てはならないものを見てしまう。",
    },
    {
        "US": "When the last ferry to {city} is cancelled, {hero} decides to row.",
        "NL": "Als de laatste veerboot naar {city} uitvalt, besluit {hero} te gaan roeien.",
        "DE": "Als die letzte Fähre nach {city} ausfällt, beschließt {hero} zu rudern.",
        "CN": "开往{city}的末班渡轮取消后，{hero}决定划船前往。",
        "JP": "{city}行きの最終フェリーが欠航し、{hero}は自分で漕いで渡ることにする。",
    },
    {
        "US": "{hero} inherits a cinema in {city} and a debt that grows every week.",
        "NL": "{hero} erft een bioscoop in {city} en een schuld die elke week groeit.",
        "DE": "{hero} erbt ein Kino in {city} und Schulden, die jede Woche wachsen.",
        "CN": "{hero}继承了{city}的一家电影院和一笔每周都在增加的债务。",
        "JP": "{hero}は{city}の映画館と、毎週増えていく借金を相続する。",
    },
    {
        "US": "Nobody in {city} remembers the flood, except {hero}.",
        "NL": "Niemand in {city} herinnert zich de overstroming, behalve {hero}.",
        "DE": "Niemand in {city} erinnert sich an die Flut, nur {hero}.",
        "CN": "除了{hero}，{city}没有人记得那场洪水。",
        "JP": "{city}で洪水を覚えているのは{hero}だけだった。",
    },
    {
        "US": "A stolen violin is found in {city}, and {hero} has three days to prove who made it.",
        "NL": "In {city} duikt een gestolen viool op; {hero} moet in drie dagen bewijzen wie haar bouwde.",
        "DE": "In {city} taucht eine gestohlene Geige auf. {hero} muss in drei Tagen ihre Herkunft beweisen.",
        "CN": "一把被盗的小提琴在{city}出现，{hero}只有三天时间证明它出自谁手。",
        "JP": "盗まれたヴァイオリンが{city}で見つかり、{hero}は三日で作者を突き止めなければならない。",
    },
    {
        "US": "{hero} drives a bus through {city} for one winter and changes the lives of five passengers.",
        "NL": "Een winter lang rijdt {hero} op de bus in {city} en verandert het leven van vijf reizigers.",
        "DE": "Einen Winter lang fährt {hero} Bus in {city} und verändert das Leben von fünf Fahrgästen.",
        "CN": "{hero}在{city}开了一个冬天的公交车，改变了五位乘客的人生。",
        "JP": "{hero}は一冬のあいだ{city}でバスを運転し、五人の乗客の人生を変える。",
    },
)
"""First sentences by country; of the hero and the city."""

ENDINGS: tuple[dict[str, str], ...] = (
    {
        "US": "An old promise stands in the way.",
        "NL": "Een oude belofte staat in de weg.",
        "DE": "Ein altes Versprechen steht im Weg.",
        "CN": "一个旧日的承诺成了阻碍。",
        "JP": "古い約束が立ちはだかる。",
    },
    {
        "US": "The answer lies closer than anyone thinks.",
        "NL": "Het antwoord ligt dichterbij dan iedereen denkt.",
        "DE": "Die Antwort liegt näher, als alle glauben.",
        "CN": "答案比所有人想的都更近。",
        "JP": "答えは誰もが思うより近くにある。",
    },
    {
        "US": "Before spring, everything must be decided.",
        "NL": "Voor de lente moet alles beslist zijn.",
        "DE": "Vor dem Frühling muss alles entschieden sein.",
        "CN": "春天到来之前，一切都必须决定。",
        "JP": "春までにすべてを決めなければならない。",
    },
    {
        "US": "Then a stranger asks for help.",
        "NL": "Dan vraagt een onbekende om hulp.",
        "DE": "Dann bittet ein Fremder um Hilfe.",
        "CN": "这时，一个陌生人前来求助。",
        "JP": "そこへ見知らぬ人が助けを求めてくる。",
    },
)
"""Second sentences by country."""


def overview(plot: int, ending: int, country: str, *, hero: str, city: str) -> str:
    """Return what a film is about in the language of a country.

    Args:
        plot: Which of `PLOTS`.
        ending: Which of `ENDINGS`.
        country: One of `LANGUAGES`.
        hero: The name of the main character.
        city: Where it is set.
    """
    space = "" if country in {"CN", "JP"} else " "
    return f"{PLOTS[plot][country].format(hero=hero, city=city)}{space}{ENDINGS[ending][country]}"
