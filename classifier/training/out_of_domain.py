"""Generates texts that are not queries, for training: random keys, codes, records, unsupported scripts."""

import base64
import re
from random import Random
from string import ascii_letters, ascii_lowercase, digits, punctuation

_SCRIPTS = ((0x1200, 0x1248), (0x10D0, 0x10F0), (0x0E81, 0x0EAF), (0x1780, 0x17A2), (0x13A0, 0x13F0), (0x16A0, 0x16E0))
"""Ethiopic, Georgian, Lao, Khmer, Cherokee, runes: first letter and one past the last."""

_SYLLABLES = re.findall(
    r"\w+", "lor ip sum do sit am et con sec te tur ad ip is cing el ve ni am quis nos trud ul la mco bo ris"
)
_NAMES = re.findall(r"\w+", "i n x buf ptr self node item idx tmp res ctx args val key fn row acc src dst len")
_FORMS = (
    "{0} = {1}[{2}] + {3};",
    "if ({0} != {1}) {{ return {2}({3}); }}",
    "def {0}({1}, {2}=None): return {1}.{3}",
    "<{0} {1}='{2}'>{3}</{0}>",
    '{{"{0}": [{1}, "{2}"], "{3}": null}}',
    "import {0}; {1} = {0}.{2}(*{3})",
    "while {0} < {1} do {2}:{3}() end",
    "#define {0} (({1}) << {2} | {3})",
    "./{0} --{1} {2} | grep -v {3} > /dev/null 2>&1",
)


def out_of_domain_texts(count: int, rng: Random) -> list[str]:
    """Generate texts, cycling through all kinds."""
    kinds = (_keys, _nonsense, _encoded, _hexadecimal, _figures, _marks, _code, _foreign, _record)
    return [kinds[number % len(kinds)](rng) for number in range(count)]


def _letters(rng: Random, alphabet: str, fewest: int, most: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(fewest, most)))


def _keys(rng: Random) -> str:
    return " ".join(_letters(rng, ascii_lowercase, 3, 10) for _ in range(rng.randint(1, 8)))


def _nonsense(rng: Random) -> str:
    words = ("".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(1, 4))) for _ in range(rng.randint(3, 14)))
    return " ".join(words).capitalize()


def _encoded(rng: Random) -> str:
    return base64.b64encode(rng.randbytes(rng.randint(12, 60))).decode()


def _hexadecimal(rng: Random) -> str:
    return "-".join(rng.randbytes(rng.randint(2, 16)).hex() for _ in range(rng.randint(1, 4)))


def _figures(rng: Random) -> str:
    return " ".join(_letters(rng, digits + ".:/", 1, 9) for _ in range(rng.randint(1, 9)))


def _marks(rng: Random) -> str:
    return " ".join(_letters(rng, punctuation, 1, 6) for _ in range(rng.randint(1, 6)))


def _code(rng: Random) -> str:
    return " ".join(rng.choice(_FORMS).format(*rng.choices(_NAMES, k=4)) for _ in range(rng.randint(1, 3)))


def _foreign(rng: Random) -> str:
    first, end = rng.choice(_SCRIPTS)
    words = (
        "".join(chr(rng.randrange(first, end)) for _ in range(rng.randint(2, 7))) for _ in range(rng.randint(1, 7))
    )
    return " ".join(words)


def _record(rng: Random) -> str:
    fields = (
        f"{_letters(rng, ascii_letters, 2, 6).upper()}={_letters(rng, ascii_letters + digits, 2, 9)}" for _ in "abcd"
    )
    return rng.choice((";", "|", ",", "\t")).join(fields)
