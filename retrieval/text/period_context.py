"""What stands beside a month's name or a number, and whether it makes it a date: "in May", but not "you may"."""

from __future__ import annotations

from graph.stopwords import words
from retrieval.text.period_tokens import Tokens

_WORDS_TOO = frozenset({"may", "march"})  # besides the short forms: "dec" and "sep" are words of programs
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
    """Whether a month's name is shortened, so that a full stop after it is its own."""
    return len(name) < 5 and name not in {"may", "june", "july"}


def leads_to_day(tokens: Tokens, at: int) -> bool:
    """Whether what stands before a day and month says that they are a date."""
    return tokens.low(at - 1) in _LEADS_TO_DAYS


def counts(tokens: Tokens, at: int) -> bool:
    """Whether what follows a number says that it counts or measures: "miles", "%", ":30"."""
    word = tokens.low(at)
    return word in _COUNTED or word in _SIGNS or (word in _SIGNS_BETWEEN and tokens.low(at + 1).isdecimal())


def is_named(tokens: Tokens, at: int, short: bool) -> bool:
    """Whether a month's name beside a number can only be one."""
    return tokens.capital(at) or not (short or tokens.low(at) in _WORDS_TOO)


def is_month(tokens: Tokens, at: int, short: bool) -> bool:
    """Whether a month's name without day and year is one."""
    name, lead, next_word = tokens.low(at), tokens.low(at - 1), tokens.low(at + 1)
    leads = _LEADS_TO_NAMES if name in _NAMES_TOO or name in _WORDS_TOO else _LEADS
    if next_word == "of" or (lead not in leads and (lead != "of" or tokens.low(at - 2) != "month")):
        return False
    if not tokens.capital(at) and (short or (name in _WORDS_TOO and (lead == "between" or next_word in _MODAL))):
        return False
    return not (tokens.capital(at) and next_word in _SECOND_NAMES)


def leads_to_year(tokens: Tokens, at: int) -> bool:
    """Whether what stands before a year says that it is one; "from 2000 to 3000" has been seen to be no range."""
    lead = tokens.low(at - 1)
    return lead in _LEADS_TO_YEARS and not (lead == "from" and tokens.low(at + 1) == "to")


def is_counted(tokens: Tokens, at: int) -> bool:
    """Whether a number of four digits counts something: "2022 items", "by 2000"."""
    lead, next_word = tokens.low(at - 1), tokens.low(at + 1)
    touches = tokens[at + 1].start == tokens[at].end
    if counts(tokens, at + 1) or (touches and next_word in {".", ","} and tokens.low(at + 2).isdecimal()):
        return True
    return lead in {"by", "to", "from", "of"} and tokens.low(at - 2) in _BEFORE_COUNTS
