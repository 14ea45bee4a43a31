"""Patterns of texts that state relations, with the sides on which source and target stand."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from graph.dates import MONTHS, WEEKDAYS
from graph.stopwords import words

_WORD = (
    r"(?<!\w)(?:[A-Z]\.(?:\s?[A-Z]\.)*+|(?:Dr|Mr|Mrs|Ms|Prof|St|Mt)\."
    r"|[^\W\d_a-z\u00df-\u00f6\u00f8-\u00ff][\w-]*(?:['\u2019](?!(?:s|m|ve|ll|d|re)\b)\w[\w-]*)*)"
)
NAME = rf"{_WORD}(?:\s(?:(?:of|of\sthe|de|de\sla|van|van\sder|von|del|da|di|du|le|la|bin|al|&)\s)?{_WORD}){{0,6}}"
"""A capitalised name as a pattern; matches are checked further."""

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
"""A person's relation to a relative or pet, by the word for it."""

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
    """A pattern for a relative, as in "my older sister" but not "my sister-in-law"."""
    return rf"{_ADJECTIVES}(?P<{group}>{_RELATIVES})(?![\w-])"


_FOLLOWS = (
    r"(?:in|on|at|and|or|but|as|for|with|from|of|to|by|since|until|when|while|which|who|now|today|again|after|before"
    r"|because|so|where|starring|featuring|based|is|was|the)\b"
)
_OWNS = rf"['\u2019]s?\s(?!{_FOLLOWS})\w"
"""The end of a name whose owner is not meant, but something of theirs: "Ann's" in "Ann's bakery"."""


class RelationPattern(NamedTuple):
    """A pattern that states a relation.

    Attributes:
        relation: its canonical name.
        said: pattern of the words between the two sides.
        target: pattern of the right side, with a group `target`.
        who: the side of the relation's source: before the words, or after them ("directed by").
        persons: the grammatical person of the subjects that this verb form agrees with.
    """

    relation: str
    said: str
    target: str = rf"(?P<target>(?>{NAME}))(?!{_OWNS})"
    who: Literal["before", "after"] = "before"
    persons: Literal["any", "first", "third"] = "any"


_ENDS = rf"(?!{_OWNS})(?=\s*(?:[^\w\s\"\u201c]|\Z)|\s{_FOLLOWS})"
_THING = rf"(?:the\s)?(?P<target>(?>{NAME})){_ENDS}"
_PLACE = rf"{_WHERE}(?P<target>(?>{NAME}))(?!\s[a-z]+\sof\b)"
_WORK = rf"{_A_WORK}(?P<target>{_QUOTE}|(?>{NAME}){_ENDS})"
_MAKERS = rf"(?P<target>(?>{NAME})){_ENDS}(?:,?\sand\s(?P<second>(?>{NAME})){_ENDS})?"
_JOB = r"(?:\sas\san?\s[a-z][a-z -]{1,30})?\s(?:at|for)"

PATTERNS = (
    RelationPattern("married_to", r"married(?:\sto|(?=\s[A-Z]))"),
    RelationPattern("works_at", rf"work{_JOB}", _THING, persons="first"),
    RelationPattern("works_at", rf"(?:works|working){_JOB}", _THING),
    RelationPattern("works_at", r"(?:got|have|landed|started)\sa(?:\s[a-z]+){0,2}\sjob\sat", _THING),
    RelationPattern("lives_in", r"live\sin", _PLACE, persons="first"),
    RelationPattern("lives_in", r"(?:lives|living|resides)\sin", _PLACE),
    RelationPattern("lives_in", r"moved(?:\sback|\sover|\shere)?(?:\sfrom\s[A-Z]\w+)?\sto", _PLACE),
    RelationPattern("born_in", r"born(?:\sand\s(?:raised|bred))?(?:\son\s[\w\s,]{3,24})?\sin", _PLACE),
    RelationPattern("from", r"(?:am|is|['\u2019]m|come|comes|hails)(?:\soriginally)?\sfrom", _PLACE),
    RelationPattern("founded", r"(?:[Cc]o-?)?founded\s(?:in\s\d{4}\s)?by", _MAKERS, "after"),
    RelationPattern("owns", r"owned\sby", _THING, "after"),
    RelationPattern("directed", r"directed\sby", _MAKERS, "after"),
    RelationPattern("wrote", r"written\s(?:and\sdirected\s)?by", _MAKERS, "after"),
    RelationPattern("created", r"created\sby", _MAKERS, "after"),
    RelationPattern("founded", r"(?:[Cc]o-?)?founded", _THING),
    RelationPattern("owns", r"(?:owns|own)(?=\s(?:the\s)?[A-Z])", _THING),
    RelationPattern("directed", r"(?:[Cc]o-?)?directed", _WORK),
    RelationPattern("wrote", r"(?:[Cc]o-?)?(?:wrote|authored)", _WORK),
    RelationPattern("created", r"(?:[Cc]o-?)?(?:created|invented)", _WORK),
    RelationPattern(
        "capital_of", r"is\sthe\s(?:[a-z]+\s)?capital(?:\scity)?(?:\sand\s[a-z ]{3,30})?\sof", _PLACE, persons="third"
    ),
    RelationPattern("located_in", r"(?:located|situated|based|headquartered)\sin", _PLACE, persons="third"),
    RelationPattern("located_in", rf"is\san?\s(?:[a-z-]+\s){{0,3}}{_TOWN}\sin", _PLACE, persons="third"),
    RelationPattern("part_of", r"part\sof", _THING, persons="third"),
    RelationPattern("member_of", r"a\s(?:[a-z]+\s)?member\sof", _THING),
)

TARGETS = tuple(re.compile(pattern.target) for pattern in PATTERNS)

TRIGGER = re.compile(
    r"\b(?:(?:" + "|".join(rf"(?P<w{position}>{pattern.said})" for position, pattern in enumerate(PATTERNS)) + r")\s"
    rf"|[Mm]y\s{_relative('mine')}"
    rf"|(?:is|was)\s(?:the|an?)\s{_relative('of')}\sof\s"
    rf"|(?:have|has|['\u2019]ve\sgot|got|adopted)\san?\s(?:[a-z]+\s){{0,2}}{_relative('has')}\s(?:named|called)\s"
    r"|and\sI\s(?:are|were|am)\s(?:[a-z]+\s)?(?P<both>friends|married|siblings|colleagues|coworkers|sisters|brothers)\b"
    r")"
    rf"|(?<=\w)['\u2019]s\s{_relative('whose')}"
)
"""Where a text may state a relation: `w<n>` is an index of `PATTERNS`; the other groups are words for relatives."""

BOTH = {
    **dict.fromkeys(("siblings", "sisters", "brothers"), "sibling_of"),
    **dict.fromkeys(("colleagues", "coworkers"), "colleague_of"),
    "friends": "friend_of",
    "married": "married_to",
}

CALLED = re.compile(rf"(?:(?:\sis|\swas)?\s(?:named|called)\s|['\u2019]s\sname\sis\s|\s\(?)(?P<target>{NAME})")
"""The words between "my sister" and her name."""

IS_OWNER = re.compile(_OWNS)
POSSESSOR = re.compile(rf"(?P<name>{NAME})\Z")
IS_BEFORE = re.compile(rf"(?P<name>{NAME})(?:\s(?:is|was)\s(?:also\s)?|['\u2019]s\s|,\s)\Z")
"""The name in "Ann is my sister", up to the "my"."""

SUBJECT = re.compile(
    rf"(?:(?<![\w'\u2019])(?P<me>[Ii]|[Ww]e|Im|Ive)|(?P<name>{NAME})(?:\s\([^()]*\))?(?:,\s(?:who|which))?)\s?(?:\(\s?)?\Z"
)
BORNE_BY = re.compile(
    r"(?:\b(?:of|by|with|from|to|for|in|at|and|or|nor|than|like|about|on|both|between|if|does|did|do|is|was|are)\s|[/&]\s?)\Z"
)
"""Words before a name that show it is not the subject: "a friend of Ann"."""

QUOTED_WORK = re.compile(r"[\"\u201c]([^\"\u201c\u201d]{2,80})[\"\u201d]\s(?:is|was)\s\Z")
ANOTHER_WORK = re.compile(
    r"\b(?:based|adapt\w+|inspired|sequel|version|cover|remake|soundtrack|episode|character|spin-off|story)\b"
)
"""Words after which a passive is about another work than the subject of the sentence."""

NO_LONGER = re.compile(r"\b(?:any\s?more|no\slonger|no\smore|until|isn['\u2019]t\strue)\b")

DENIED = re.compile(
    r"\b(?:[Nn]ot|[Nn]ever|no\slonger|[Nn]obody|[Nn]either|[Ww]ithout|[Ii]f|[Ww]ish(?:ed)?|[Ii]magin\w+|[Pp]retend\w*|[Ss]uppose"
    r"|[Uu]nless|[Ww]hether|anymore|[Ww]onder\w*|[Dd]ont|[Dd]idnt|[Dd]oesnt|[Ii]snt|[Ww]asnt|[Nn]o\sone)\b|n['\u2019]t\b"
)
"""Words that negate or suspend a sentence, so that nothing in it is stated."""

UNSURE = re.compile(
    r"\b(?:used\sto|would|could|should|might|may|[Mm]aybe|[Pp]erhaps|[Pp]robably|hop(?:e|es|ed|ing)|want(?:s|ed)?|dream\w*"
    r"|almost|nearly|plan(?:s|ned|ning)?|going\sto|gonna|will|doubt\w*|rumou?r\w*|allegedly|claim(?:s|ed)?|thought|guess"
    r"|until|before|pretty\smuch|love\sto|like\sto|have\sto|about\sto|think|believe|joke[ds]?)\b|['\u2019](?:d|ll)\b"
)
"""Words that make a statement a wish, a guess or a plan; "my sister Ann" still counts."""

NOT_NAMED_SO = WEEKDAYS.union(
    MONTHS,
    words(
        "english spanish french german italian chinese japanese korean latin dutch portuguese russian arabic hindi"
        " christmas easter thanksgiving halloween god lord facebook instagram"
    ),
)
"""Capitalised words that are hardly ever a relative's name: "taught my mom English"."""
