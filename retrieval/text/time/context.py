"""Whether the words around a month's name or a number make it a date: "in May", but not "you may"."""

from __future__ import annotations

from graph.stopwords import words
from retrieval.text.time.tokens import TimeTokens

_WORDS_TOO = frozenset({"may", "march"})  # besides the abbreviations; "dec" and "sep" are also words of programs
_NAMES_TOO = frozenset({"april", "may", "june", "august", "jan", "mar"})
_LEADS_TO_NAMES = frozenset(words("in during since until till throughout early mid late between"))
_LEADS = _LEADS_TO_NAMES | {"from", "before", "after"}
_LEADS_TO_DAYS = frozenset(words("on by since until till before after from between of the for"))
_LEADS_TO_YEARS = _LEADS | {"by", "of", "year"}
_MODAL = frozenset(words("be have not also i we you he she they it never only as well still or"))
_COUNTED = frozenset(
    words(
        "items people points dollars euros pounds words rows steps pieces km kilometers kilometres miles mile meters",
        "metres feet calories characters tokens users files lines songs votes employees records seconds minutes hours",
        "days weeks months years times percent pages bytes members students copies units blocks kg mg ml pm am x",
    )
)
_SIGNS = frozenset(words("% $ € £"))
_SIGNS_BETWEEN = frozenset(words("* / : + ="))
_SECOND_NAMES = frozenset(words("madness court wilson"))  # March Madness, August Wilson
_BEFORE_COUNTS = frozenset(
    words(
        "increase increased decrease decreased reduce reduced grow grew cut up down rose fell population total number",
        "size length limit maximum minimum height width count average sum resolution value budget price cost salary",
    )
)


def is_short(name: str) -> bool:
    """Whether a month's name is abbreviated, so that a full stop after it belongs to it."""
    return len(name) < 5 and name not in {"may", "june", "july"}


def leads_to_day(tokens: TimeTokens, position: int) -> bool:
    """Whether the preceding word shows that a day and month are a date."""
    return tokens.low(position - 1) in _LEADS_TO_DAYS


def counts(tokens: TimeTokens, position: int) -> bool:
    """Whether what follows a number makes it a count or a measure: "miles", "%", ":30"."""
    word = tokens.low(position)
    return word in _COUNTED or word in _SIGNS or (word in _SIGNS_BETWEEN and tokens.low(position + 1).isdecimal())


def is_named(tokens: TimeTokens, position: int, short: bool) -> bool:
    """Whether a month's name next to a number is certainly one."""
    return tokens.capital(position) or not (short or tokens.low(position) in _WORDS_TOO)


def is_month(tokens: TimeTokens, position: int, short: bool) -> bool:
    """Whether a month's name without a day and year is a month."""
    name, lead, next_word = tokens.low(position), tokens.low(position - 1), tokens.low(position + 1)
    leads = _LEADS_TO_NAMES if name in _NAMES_TOO or name in _WORDS_TOO else _LEADS
    if next_word == "of" or (lead not in leads and (lead != "of" or tokens.low(position - 2) != "month")):
        return False
    if not tokens.capital(position) and (short or (name in _WORDS_TOO and (lead == "between" or next_word in _MODAL))):
        return False
    return not (tokens.capital(position) and next_word in _SECOND_NAMES)


def leads_to_year(tokens: TimeTokens, position: int) -> bool:
    """Whether the preceding word shows that a number is a year; "from 2000 to 3000" is not read as a range."""
    lead = tokens.low(position - 1)
    return lead in _LEADS_TO_YEARS and not (lead == "from" and tokens.low(position + 1) == "to")


def is_counted(tokens: TimeTokens, position: int) -> bool:
    """Whether a four-digit number is a count: "2022 items", "by 2000"."""
    lead, next_word = tokens.low(position - 1), tokens.low(position + 1)
    touches = tokens[position + 1].start == tokens[position].end
    if counts(tokens, position + 1) or (touches and next_word in {".", ","} and tokens.low(position + 2).isdecimal()):
        return True
    return lead in {"by", "to", "from", "of"} and tokens.low(position - 2) in _BEFORE_COUNTS
