"""The skeleton of a query: its content words replaced by their role, function words kept.

"Who is the wife of the director of Jaws?" becomes `who is the R of the R of _E`: two relational nouns before a name
indicate a second hop, whatever the name.
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION_WORDS: Final = _words("""
    a about after all also an and any are as at be been before between both but by can could did
    do does during each for from get give given good had has have he her his how i if in into is it
    its just list many me more most much my name of on one or other our out over she should so some
    such tell than that the their them then there these they this those through to together under
    up us was we were what when where which who whom whose why will with would you your best first
    same suggest recommend like want need explain describe summary between i'm i've i'd what's
    der die das ein eine ist sind was wer wie wo warum welche und oder von in zu für mit ich mir
    le la les un une est sont que qui où pourquoi quel quelle et ou de du des à pour je me mon
    el los las es son qué quién dónde cuál y o del al para yo mi
    il lo gli è sono che chi dove quale e di per io""")
_RELATIONS = _words("""
    author writer director composer producer publisher creator founder inventor owner president chairman chief ceo
    leader head governor mayor capital currency language population anthem flag religion nationality ethnicity
    birthplace hometown birthday birthdate spouse wife husband father mother parent child children son daughter
    brother sister sibling cousin uncle aunt nephew niece grandfather grandmother friend colleague teacher pupil
    student mentor advisor successor predecessor rival neighbour neighbor boss girlfriend boyfriend partner actor
    actress star singer drummer guitarist bassist vocalist architect designer developer manufacturer distributor
    broadcaster network channel employer alma mater school university college profession occupation job party
    constituency region province county state country nation continent city town village municipality headquarters
    location place residence mouth source tributary mountain river lake sea border side time zone coach manager
    captain player team club league stadium ground mascot label genre album song series show film movie novel book
    character cast editor narrator illustrator cinematographer screenwriter performer artist painter award prize
    death burial resting height length area depth size age year date cause nickname title slogan motto theme origin
    industry subsidiary company firm sponsor engine system platform host presenter""")
_KINDS = _words("""
    person people man woman scientist politician footballer philosopher general bishop king queen emperor poet
    athlete driver swimmer comedian engineer physicist chemist astronaut group band orchestra magazine newspaper
    organisation organization institution airport bridge building museum church castle island station railway road
    ship aircraft car software game videogame musical opera play comic event war battle conflict festival tournament
    race season breed species animal plant food dish drink ingredient word term brand product hotel hospital theatre
    theater store shop website program programme""")
_PARTICIPLES = _words("""
    born died directed founded written wrote produced composed created designed built owned married played starred
    won invented discovered located based made published recorded sung sang led ruled governed studied worked lived
    killed buried named known called released developed edited influenced trained taught served fought joined formed
    hosted belongs belong flows run runs crosses borders operated""")
_SINGULARS = _RELATIONS | _KINDS
_FIRST_PERSON = frozenset(("i", "i'm", "i've", "i'd", "i'll"))
_CLAUSE_OPENERS = frozenset(("who", "which", "whose", "that", "where", "whom"))
_COUNTS = (("R", 4), ("T", 3), ("V", 3), ("clauses", 2), ("possessives", 2), ("hops", 5), ("joints", 4), ("nouns", 4))
"""What is counted, with the count at which each is capped."""

_MOST = tuple(most for _, most in _COUNTS)
_STARTS = tuple(accumulate((most + 1 for most in _MOST), initial=0))
"""The start index of each count, and of the flags after them."""

COUNT_DIM: Final = _STARTS[-1] + 3


def skeleton(tokens: Sequence[str], words: Sequence[str]) -> list[str]:
    """Mask the content words of a query: its tokens as written, and the same in lower case.

    One symbol per word, with runs of names and of content merged: `_E` a name, `_N` a number, `R` a relational noun,
    `T` another noun for a kind of thing (`Rs`, `Ts` in the plural), `V` a relational verb, `*` other content (with `d`,
    `g`, `y` for -ed, -ing, -ly), a function word itself; `'` marks a possessive.
    """
    masked: list[str] = []
    for position, (token, word) in enumerate(zip(tokens, words, strict=True)):
        part = _part(token, word, position == 0)
        if part not in ("_E", "*") or not masked or masked[-1] != part:
            masked.append(part)
    return masked


def counts(masked: Sequence[str], words: Sequence[str]) -> list[int]:
    """The counts of a query's parts, each one-hot over a few indices: ascending, in [0, COUNT_DIM)."""
    tally = Counter(masked).get
    relations = tally("R", 0) + tally("R'", 0) + tally("Rs", 0)
    kinds = tally("T", 0) + tally("T'", 0) + tally("Ts", 0)
    verbs = tally("V", 0) + tally("*d", 0)
    names, names_of = tally("_E", 0), tally("_E'", 0)
    clauses = sum(word in _CLAUSE_OPENERS for word in words[1:])
    possessives = names_of + tally("R'", 0) + tally("T'", 0) + tally("*'", 0)
    of = words.count("of")
    hops = relations + clauses + possessives
    found = (relations, kinds, verbs, clauses, possessives, hops, of + possessives + clauses, relations + kinds)
    places = [start + min(number, most) for start, number, most in zip(_STARTS, found, _MOST, strict=False)]
    flags = (not (names or names_of), len(words) <= 6 and hops >= 2, relations >= 2 and of)
    places.extend(place for place, flag in enumerate(flags, _STARTS[-1]) if flag)
    return places


@lru_cache(maxsize=4_096)
def _part(token: str, word: str, first: bool) -> str:
    if word[0].isdigit():
        return "_N"
    base, mark = (word[:-2], "'") if word.endswith("'s") else (word, "")
    if not first and token[0].isupper() and word not in _FIRST_PERSON:
        return f"_E{mark}"
    if base in _RELATIONS:
        return f"R{mark}"
    if word in FUNCTION_WORDS:
        return word
    if base in _KINDS:
        return f"T{mark}"
    return _inflected(base) or f"*{mark}"


def _inflected(base: str) -> str:
    """The role of a word determined by its ending, or ""."""
    if base in _PARTICIPLES:
        return "V"
    for ending, stem in (("ies", f"{base[:-3]}y"), ("es", base[:-2]), ("s", base[:-1])):
        if base.endswith(ending) and stem in _SINGULARS:
            return "Rs" if stem in _RELATIONS else "Ts"
    for ending, part in (("ed", "*d"), ("ing", "*g"), ("ly", "*y")):
        if base.endswith(ending):
            return part
    return ""
