"""How texts state relations: the words that do it, and who stands on which side of them."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from graph.dates import MONTHS, WEEKDAYS
from graph.stopwords import words

_WORD = (
    r"(?:[A-Z]\.(?:\s?[A-Z]\.)*|(?:Dr|Mr|Mrs|Ms|Prof|St|Mt)\."
    r"|[^\W\d_a-z\u00df-\u00f6\u00f8-\u00ff][\w-]*(?:['\u2019](?!(?:s|m|ve|ll|d|re)\b)\w[\w-]*)*)"
)
NAME = rf"{_WORD}(?:\s(?:(?:of|of\sthe|de|de\sla|van|van\sder|von|del|da|di|du|le|la|bin|al|&)\s)?{_WORD}){{0,6}}"
"""A capitalised name as a pattern; what it catches is still to be checked."""

_QUOTE = r"[\"\u201c](?![a-z\s])[^\"\u201c\u201d\n]{2,80}(?<!\s)[\"\u201d]"
_ADJECTIVES = (
    r"(?:(?:best|good|great|close|dear|old|older|oldest|elder|eldest|younger|youngest|little|big|twin|baby|only|first|new"
    r"|wonderful|lovely|beautiful|amazing|beloved)\s){0,2}"
)
KIN = {
    **dict.fromkeys(("wife", "husband", "spouse", "hubby"), "married_to"),
    **dict.fromkeys(("sister", "brother", "sibling", "twin", "sis", "bro"), "sibling_of"),
    **dict.fromkeys(("mother", "father", "mom", "mum", "mama", "dad", "papa", "parent"), "child_of"),
    **dict.fromkeys(("son", "daughter", "kid", "child"), "parent_of"),
    **dict.fromkeys(("friend", "bestie", "buddy", "pal", "mate", "bff"), "friend_of"),
    **dict.fromkeys(("colleague", "coworker", "co-worker", "workmate", "boss", "manager"), "colleague_of"),
    **dict.fromkeys(("dog", "cat", "pup", "puppy", "kitten", "kitty", "parrot", "hamster", "rabbit"), "has_pet"),
    **dict.fromkeys(("turtle", "tortoise", "horse", "pony", "goldfish", "snake", "lizard", "pet"), "has_pet"),
}
"""What the one who has such a relative is to them."""

_RELATIVES = "|".join(sorted(map(re.escape, KIN), key=len, reverse=True))
_TOWN = (
    r"(?:city|town|village|suburb|district|municipality|commune|county|parish|borough|province|region|neighbou?rhood"
    r"|river|lake|mountain|island|museum|university|college|school|hospital|park|church|airport|stadium|castle)"
)
_WHERE = (
    r"(?:the\s)?(?:(?:city|town|village|state|province|county|district)\sof\s)?"
    r"(?:(?:north|south|east|west|central)[a-z]{0,7}\s)?"
)
_A_WORK = (
    r"(?:(?:the|a|an)\s(?:[a-z-]+\s){0,2}(?:album|app|book|comic|documentary|film|game|memoir|movie|musical|novel|opera|play"
    r"|poem|series|show|single|song|story)\s(?:called\s)?|the\s)?"
)


def _relative(group: str) -> str:
    """A relative as a pattern, as in "my older sister", not "my sister-in-law"."""
    return rf"{_ADJECTIVES}(?P<{group}>{_RELATIVES})(?![\w-])"


class Wording(NamedTuple):
    """A way to state a relation.

    Attributes:
        relation: its canonical name.
        said: the words between the two sides.
        target: what may follow, as a pattern with a group `target`.
        who: whose deed it is: the one before the words, or the one after them (directed "by").
        persons: which subjects go with this form of the verb.
    """

    relation: str
    said: str
    target: str = rf"(?P<target>{NAME})"
    who: Literal["before", "after"] = "before"
    persons: Literal["any", "first", "third"] = "any"


_ENDS = (
    r"(?=\s*(?:[^\w\s\"\u201c]|\Z)|\s(?:in|on|at|and|or|but|as|for|with|from|of|to|by|since|until|when|while|which|who|now"
    r"|today|again|after|before|because|so|where|starring|featuring|based|is|was|the)\b)"
)
_THING = rf"(?:the\s)?(?P<target>(?>{NAME})){_ENDS}"
_PLACE = rf"{_WHERE}(?P<target>(?>{NAME}))(?!\s[a-z]+\sof\b)"
_WORK = rf"{_A_WORK}(?P<target>{_QUOTE}|(?>{NAME}){_ENDS})"
_MAKERS = rf"(?P<target>(?>{NAME})){_ENDS}(?:,?\sand\s(?P<second>(?>{NAME})){_ENDS})?"
_JOB = r"(?:\sas\san?\s[a-z][a-z -]{1,30})?\s(?:at|for)"

WORDINGS = (
    Wording("married_to", r"married\sto"),
    Wording("married_to", r"married(?=\s[A-Z])"),
    Wording("works_at", rf"work{_JOB}", _THING, persons="first"),
    Wording("works_at", rf"(?:works|working){_JOB}", _THING),
    Wording("works_at", r"(?:got|have|landed|started)\sa(?:\s[a-z]+){0,2}\sjob\sat", _THING),
    Wording("lives_in", r"live\sin", _PLACE, persons="first"),
    Wording("lives_in", r"(?:lives|living|resides)\sin", _PLACE),
    Wording("lives_in", r"moved(?:\sback|\sover|\shere)?(?:\sfrom\s[A-Z]\w+)?\sto", _PLACE),
    Wording("born_in", r"born(?:\sand\s(?:raised|bred))?(?:\son\s[\w\s,]{3,24})?\sin", _PLACE),
    Wording("from", r"(?:am|is|['\u2019]m|come|comes|hails)(?:\soriginally)?\sfrom", _PLACE),
    Wording("founded", r"(?:[Cc]o-?)?founded\s(?:in\s\d{4}\s)?by", _MAKERS, "after"),
    Wording("owns", r"owned\sby", _THING, "after"),
    Wording("directed", r"directed\sby", _MAKERS, "after"),
    Wording("wrote", r"written\s(?:and\sdirected\s)?by", _MAKERS, "after"),
    Wording("created", r"created\sby", _MAKERS, "after"),
    Wording("founded", r"(?:[Cc]o-?)?founded", _THING),
    Wording("owns", r"(?:owns|own)(?=\s(?:the\s)?[A-Z])", _THING),
    Wording("directed", r"(?:[Cc]o-?)?directed", _WORK),
    Wording("wrote", r"(?:[Cc]o-?)?(?:wrote|authored)", _WORK),
    Wording("created", r"(?:[Cc]o-?)?(?:created|invented)", _WORK),
    Wording(
        "capital_of", r"is\sthe\s(?:[a-z]+\s)?capital(?:\scity)?(?:\sand\s[a-z ]{3,30})?\sof", _PLACE, persons="third"
    ),
    Wording("located_in", r"(?:located|situated|based|headquartered)\sin", _PLACE, persons="third"),
    Wording("located_in", rf"is\san?\s(?:[a-z-]+\s){{0,3}}{_TOWN}\sin", _PLACE, persons="third"),
    Wording("part_of", r"part\sof", _THING, persons="third"),
    Wording("member_of", r"a\s(?:[a-z]+\s)?member\sof", _THING),
)

TARGETS = tuple(re.compile(wording.target) for wording in WORDINGS)

_BEGINS = (
    r"(?=['\u2019]|[Mm]y\s|a\s|and\sI\s|adopted|am\s|authored|based|born|[Cc]o|created|directed|founded|got|ha[ivs]|headquartered"
    r"|invented|is\s|landed|liv|located|married|moved|own|part|resides|situated|started|was\s|work|written|wrote)"
)
"""How all that follows a word's edge there begins: with this first, most words are passed by at once."""

TRIGGER = re.compile(
    rf"\b{_BEGINS}(?:"
    r"(?:" + "|".join(rf"(?P<w{at}>{wording.said})" for at, wording in enumerate(WORDINGS)) + r")\s"
    rf"|[Mm]y\s{_relative('mine')}"
    rf"|(?:is|was)\s(?:the|an?)\s{_relative('of')}\sof\s"
    rf"|(?:have|has|['\u2019]ve\sgot|got|adopted)\san?\s(?:[a-z]+\s){{0,2}}{_relative('has')}\s(?:named|called)\s"
    r"|and\sI\s(?:are|were|am)\s(?:[a-z]+\s)?(?P<both>friends|married|siblings|colleagues|coworkers|sisters|brothers)\b"
    r")"
    rf"|(?<=\w)['\u2019]s\s{_relative('whose')}"
)
"""Where a text may state something: `w<n>` of `WORDINGS`, or a word for a relative."""

BOTH = {
    **dict.fromkeys(("siblings", "sisters", "brothers"), "sibling_of"),
    **dict.fromkeys(("colleagues", "coworkers"), "colleague_of"),
    "friends": "friend_of",
    "married": "married_to",
}

CALLED = re.compile(rf"(?:(?:\sis|\swas)?\s(?:named|called)\s|['\u2019]s\sname\sis\s|\s\(?)(?P<target>{NAME})")
"""What comes between "my sister" and her name."""

POSSESSOR = re.compile(rf"(?P<name>{NAME})\Z")
IS_BEFORE = re.compile(rf"(?P<name>{NAME})(?:\s(?:is|was)\s(?:also\s)?|['\u2019]s\s|,\s)\Z")
"""Who "is my sister", up to the "my"."""

SUBJECT = re.compile(
    rf"(?:(?<![\w'\u2019])(?P<me>[Ii]|[Ww]e|Im|Ive)|(?P<name>{NAME})(?:\s\([^()]*\))?(?:,\s(?:who|which))?)\s?(?:\(\s?)?\Z"
)
BORNE_BY = re.compile(
    r"(?:\b(?:of|by|with|from|to|for|in|at|and|or|nor|than|like|about|on|both|between|if|does|did|do|is|was|are)\s|[/&]\s?)\Z"
)
"""Before a name that is not the subject itself: "a friend of Ann"."""

QUOTED_WORK = re.compile(r"[\"\u201c]([^\"\u201c\u201d]{2,80})[\"\u201d]\s(?:is|was)\s\Z")
ANOTHER_WORK = re.compile(
    r"\b(?:based|adapt\w+|inspired|sequel|version|cover|remake|soundtrack|episode|character|spin-off|story)\b"
)
"""Words after which a passive is about some other work than the one that the sentence is about."""

NO_LONGER = re.compile(r"\b(?:any\s?more|no\slonger|no\smore|until|isn['\u2019]t\strue)\b")

DENIED = re.compile(
    r"\b(?:[Nn]ot|[Nn]ever|no\slonger|[Nn]obody|[Nn]either|[Ww]ithout|[Ii]f|[Ww]ish(?:ed)?|[Ii]magin\w+|[Pp]retend\w*|[Ss]uppose"
    r"|[Uu]nless|[Ww]hether|anymore|[Ww]onder\w*|[Dd]ont|[Dd]idnt|[Dd]oesnt|[Ii]snt|[Ww]asnt|[Nn]o\sone)\b|n['\u2019]t\b"
)
"""Words of a sentence in which nothing is stated."""

UNSURE = re.compile(
    r"\b(?:used\sto|would|could|should|might|may|[Mm]aybe|[Pp]erhaps|[Pp]robably|hop(?:e|es|ed|ing)|want(?:s|ed)?|dream\w*"
    r"|almost|nearly|plan(?:s|ned|ning)?|going\sto|gonna|will|doubt\w*|rumou?r\w*|allegedly|claim(?:s|ed)?|thought|guess"
    r"|until|before|pretty\smuch|love\sto|like\sto|have\sto|about\sto|think|believe|joke[ds]?)\b|['\u2019](?:d|ll)\b"
)
"""Words after which something is wished, guessed or planned, not stated; "my sister Ann" stands all the same."""

NOT_NAMED_SO = (
    WEEKDAYS
    | frozenset(MONTHS)
    | frozenset(
        words(
            "english spanish french german italian chinese japanese korean latin dutch portuguese russian arabic hindi"
            " christmas easter thanksgiving halloween god lord facebook instagram"
        )
    )
)
"""Capitalised words that a relative is hardly ever called by: "taught my mom English"."""
