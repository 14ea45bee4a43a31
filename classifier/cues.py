"""Hand-made cues of a query's intent, from its words and its form.

Patterns are matched against the words of the query (lower case, joined by single spaces, with a space at both ends),
so that ` both ` matches the word. They cover English, and the question words and clearest signals of German, French,
Spanish and Italian.
"""

import re
from typing import Final

FIRST_WORD: Final[dict[str, str]] = {
    "who": r"who|who's|whom|wer|wen|wem|qui|quién|quien|chi",
    "whose": r"whose|wessen",
    "what": r"what|what's|whats|wat|waht|que|qué|cosa|che|quoi",
    "which": r"which|wich|welche|welcher|welches|welchen|quel|quelle|quels|quelles|cuál|cuáles"
    r"|quale|quali|lequel|laquelle",
    "when": r"when|wann|quand|cuándo|quando",
    "where": r"where|wo|woher|wohin|où|dónde|dove",
    "why": r"why|wy|warum|wieso|weshalb|pourquoi|perché|perche",
    "how": r"how|hw|wie|comment|cómo|como|come",
    "be": r"is|are|was|were|am|isn't|aren't|ist|sind|est|è|es|son|sono",
    "do": r"do|does|did|has|have|had|hat|haben",
    "can": r"can|could|kannst|können|peux|pouvez|puedes|puoi|può",
    "would": r"would|will|shall|might|may|würde|würdest",
    "should": r"should|shoud|shud|sollte|soll|sollen|faut|debería|deberíamos|dovrei|dovremmo",
    "name": r"name|list|count|state|indicate|identify|nenne|nomme|nombra|elenca",
    "give": r"give|tell|show|find|get|gib|donne|dame|dammi",
    "explain": r"explain|explane|describe|discuss|analyse|analyze|compare|elaborate|outline"
    r"|evaluate|interpret|argue|justify|provide|write|walk|help|teach|erkläre|explique|explica"
    r"|explícame|spiegami|explique-moi",
    "summarise": r"summarise|summarize|summary|recap|overview|sum|fasse|résume|resume|riassumi",
    "suggest": r"suggest|sugest|recommend|recomend|propose|any|need|got|best|suche|busco|cerco",
    "if": r"if|suppose|imagine|assume|given|since|considering|based|for|as|after|with",
    "i": r"i|i'm|im|i've|i'd|i'll|my|we|we're|we've|our|ich|je|yo|io",
    "reply": r"thanks|ok|okay|hmm|great|interesting|no|yes|but|and|so|that|that's|this",
    "the": r"the|a|an|both|these|those",
    "preposition": r"in|on|at|by|from|to|between|during|under|through|among|within",
}
"""Groups of openings; a query has exactly one or none."""

PATTERNS: Final[dict[str, str]] = {
    "how_quantity": r" (how|hwo|wie|quanti|quante|quanto|combien|cuántos|cuántas) "
    r"(many|much|old|long|far|tall|high|big|deep|fast|often|large|heavy|viele?|alt|hoch|lange|"
    r"meny|hot|de|anni|è) ",
    "how_to": r" (how to|how (do|can|should|would|could|does) (i|you|we|one|someone|a|an)|"
    r"steps to|way to|wie kann man|wie \w+ (ich|man)|comment|cómo|come si) ",
    "how_does": r" how (does|do|did|is|are|was|were|has|have) ",
    "why": r" (why|wy|warum|wieso|pourquoi|por qué|perché) ",
    "what_kind": r" what (kind|kinds|type|types|sort|sorts|style|genre|genres) of ",
    "what_be": r" what(| is| are| was| were|'s) the ",
    "what_some": r" what (are|were) (some|a few) ",
    "which_noun": r" which (?!of |is |are |one )\w+ ",
    "name_of": r" (name|names|title|date|year|number|time|price|address|color|colour|size) ",
    "both": r" (both|boht|beide|beiden|tous les deux|ambos|ambas|entrambi|entrambe) ",
    "each_other": r" (each other|one another|mutual|mutually|einander) ",
    "in_common": r" (common|gemeinsam|commun|común|comune|share|shares|shared|sharing|same) ",
    "together": r" (together|zusammen|ensemble|juntos|insieme) ",
    "relation": r" (relationship|relation|related|connection|connected|link|linked|links|ties|"
    r"know each|introduced|between) ",
    "family": r" (wife|husband|spouse|mother|father|brother|sister|son|daughter|children|parents|"
    r"sibling|siblings|cousin|friend|friends|colleague|boss|frau|mann|femme|esposa|moglie) ",
    "comparison": r" (older|younger|taller|longer|larger|bigger|higher|earlier|later|first|more|"
    r"further|better|recently|than|fewer|älter|zuerst|premier|antes|prima) .* (or|oder|ou|o) ",
    "or": r" (or|oder|ou|o) ",
    "whose": r" whose ",
    "relative": r" \w+ (who|whom|which|that|whose|where) (?!i |you |we )\w+",
    "participle_by": r" \w+(ed|en|wn|lt|de) (by|in|at|for|from|on) ",
    "with_and": r" and ",
    "role": r" (director|author|founder|creator|writer|producer|composer|singer|inventor|coach|"
    r"architect|actor|actress|star|starred|starring|player|owner|screenwriter|performer|president|"
    r"predecessor|successor|narrator|artist|band|team|company|university|film|movie|song|album|"
    r"novel|series) ",
    "role_of": r" (director|author|founder|creator|writer|producer|composer|singer|inventor|"
    r"coach|architect|actor|actress|owner|screenwriter|performer|leader|head|capital|city|country|"
    r"birthplace|wife|husband|spouse|father|mother|place|nationality|headquarters) (of|where|in) ",
    "also": r" (also|besides|other) ",
    "recommend": r" (recommend\w*|recomend\w*|suggest\w*|sugest\w*|propose|advise|empfehlen|"
    r"empfiehlst|vorschlagen|conseill\w+|sugger\w+|recomiend\w+|consigli\w*) ",
    "ideas": r" (ideas?|idées?|idee|tips?|tipp|thoughts|recommendations?|suggestions?|inspiration|"
    r"options|alternatives|picks?) ",
    "any_ideas": r" any (good |other |new |nice |cool |decent |book |movie |gift )?(ideas?|tips?|"
    r"thoughts|recommendations?|suggestions?|advice|recomendations?|sugestions?|others?) ",
    "looking_for": r" (looking (for|to)|in the mood|craving|interested in|thinking (of|about)|"
    r"planning|considering|hoping to|want to|would love|i'd (like|love)|i need|i want) ",
    "should_i": r" (should|shoud|shud|could|can|might|would) (i|we|my) ",
    "for_me": r" (for (me|us|my|our|someone|a)|to me|mir|me|mi) ",
    "would_like": r" (would|might|could|will) .*(like|enjoy|prefer|love|appreciate|suit|be "
    r"(interested|open|considered|likely)|rather|want) ",
    "taste": r" (prefer\w*|favou?rite|taste|tastes|enjoy\w*|likes?|love|loves|suits?|suitable|"
    r"interested|gefallen|plairait|gustaría|piacerebbe) ",
    "superlative": r" (good|best|nice|great|fun|cozy|cosy|affordable|reliable|top|cheap|unique|"
    r"interesting|healthy|decent|effective) ",
    "food": r" (restaurants?|dinner|lunch|breakfast|meals?|recipes?|dish|dishes|eat|cook|food|"
    r"hungry|hotels?|gift|gifts|present|trip|vacation|weekend|visit|stay) ",
    "somebody": r" (my (mom|mum|mother|dad|father|wife|husband|partner|friend|sister|brother|son|"
    r"daughter|niece|nephew|boss|colleague|kids?|family)) ",
    "first_person": r" (i|i'm|im|i've|i'd|i'll|me|my|mine|myself|we|us|our|ich|mein|meine|je|mon|"
    r"ma|mes|mi|mis|mio|mia) ",
    "second_person": r" (you|your|you'd|you've|u|du|tu|te) ",
    "remind": r" (remind me|you (mentioned|said|told|recommended|gave|listed|quoted|explained|"
    r"provided|suggested|showed)|previous (chat|conversation|discussion)|we (discussed|talked|"
    r"spoke)|last (week|time)|do you remember|did i (say|mention|tell)|did you say|remember|"
    r"earlier|again) ",
    "my_fact": r" (did|do|have|was|is|does|had) (i|my) ",
    "summary": r" (summar\w+|recap|overview|sum up|account of|our conversations|over time|"
    r"progress\w*|so far|evolved|developed|developing|zusammen|résumé|bring me up|"
    r"up to date|journey) ",
    "explain": r" (explain\w*|describe\w*|discuss|elaborate|walk me|tell me about|understand|"
    r"meaning|meant|works?|erkläre|explique|explica|spiegami) ",
    "pros_cons": r" (pros|cons|advantages?|disadvantages?|benefits?|risks?|arguments?|criticisms?|"
    r"challenges?|drawbacks?|vorteile?|avantages|ventajas) ",
    "abstract": r" (impacts?|effects?|influence\w*|roles?|importance|significance|implications?|"
    r"consequences?|causes?|factors?|methods?|approach\w*|strateg\w+|measures?|process|purpose|"
    r"differences?|evidence|ethical|theor\w+|future|reasons?|steps|considered|treatment|symptoms|"
    r"technique\w*|practices|mechanisms?|principles?|developments?|society) ",
    "opinion": r" (opinion|think|believe|views?|ethical|moral|worth|overrated|justified|right to|"
    r"debate|society|really|actually|ever) ",
    "modal": r" (should|could|would|can|may|might|must) ",
    "should_third": r"^ (should|is it|are there|can|could|will|does|do) (?!i |we |you |my )\w+",
    "hypothetical": r" (if|suppose|imagine|assuming|in case|scenario) ",
    "happen": r" (happens?|happened|happening|wrong|problem|issue|error|fix|solve|deal|prevent|"
    r"improve|avoid|reduce|handle|manage|stop) ",
    "did": r" (did|was|were|hat|had) ",
    "of_of": r" of .* of ",
    "determiner": r" (the|a|an|this|these) ",
}
"""Independent boolean cues."""

_FIRST_GROUPS = {word: number for number, words in enumerate(FIRST_WORD.values()) for word in words.split("|")}
_SEARCHES = [(number, re.compile(pattern).search) for number, pattern in enumerate(PATTERNS.values(), len(FIRST_WORD))]

CUE_COUNT: Final = len(FIRST_WORD) + len(PATTERNS)


def cue_numbers(words: list[str]) -> list[int]:
    """The cues of a query's lower-cased words: ascending indices in [0, CUE_COUNT); empty for no words."""
    if not words:
        return []
    joined = f" {' '.join(words)} "
    first = [_FIRST_GROUPS[words[0]]] if words[0] in _FIRST_GROUPS else []
    return first + [number for number, search in _SEARCHES if search(joined)]
