"""Synthetic sample texts, to calibrate the quantisation and to measure its accuracy.

Generated from a small grammar over word lists, so that the repository needs no third-party corpus. They mix what a
retrieval server sees: questions, chat turns, facts, notes, code, other languages, symbols, and passages long enough to
be truncated at 256 word pieces.
"""

import random
import re
from collections.abc import Sequence

FIDELITY_TEXTS = 1000
FIDELITY_SEED = 0
CALIBRATION_TEXTS = 300
CALIBRATION_SEED = 1
_RANDOM_TEXTS = 200
_MOST_RANDOM_PIECES = 59
_START, _END = 101, 102
_FIRST_WORD, _VOCABULARY = 999, 30522

_WORDS = {
    "person": "Maria|Tom Okafor|Dr. Lindqvist|Priya|Yusuf Demir|Aunt Carol|Sergei|Chloé|Jin-ho|"
    "Amara Nwosu|old Mr. Hale|Beatriz|the new intern|Kofi|my sister|Professor Tanaka|Ingrid",
    "place": "Lisbon|the Perito Moreno glacier|Nairobi|a village near Kraków|Osaka|the harbour|"
    "Route 66|the public library|Patagonia|Reykjavík|the third floor|Chennai|New Orleans|Lake Como",
    "organisation": "Northwind Traders|the city council|Acme GmbH|the chess club|UNESCO|"
    "a small start-up|St. Mary's Hospital|the Riverside Theatre|Orbital Dynamics|the tax office",
    "thing": "a cello|the red bicycle|sourdough starter|a telescope|running shoes|an espresso "
    "machine|the lease|two concert tickets|a vintage Leica|the garden shed|insulin pump|tax return|"
    "a wool coat|the fishing licence|watercolours|her thesis|the router|a first aid kit|mushrooms",
    "animal": "a greyhound|two cats|the parrot|honeybees|an old tortoise|a rescue horse|salmon",
    "food": "lentil soup|pad thai|gluten-free bread|oysters|dark chocolate|kimchi|blueberry pie|"
    "strong coffee|peanuts|grilled aubergine|ramen|goat cheese",
    "hobby": "bouldering|choir practice|birdwatching|restoring furniture|playing chess|pottery|"
    "trail running|learning Portuguese|astronomy|salsa dancing|knitting|woodworking",
    "feeling": "thrilled|anxious|a bit tired|grateful|furious|relieved|homesick|curious|bored|proud",
    "time": "last Tuesday|in 1987|on 3 May 2023|at half past six|next spring|two weeks ago|tomorrow|"
    "during the war|every weekend|around 10:45 p.m.|in the 19th century|since January|yesterday",
    "number": "3|17|42.5|1,200|a dozen|0.05|90 percent|six million|-12|$3,450|€99|2^16|half",
    "topic": "photosynthesis|interest rates|plate tectonics|the French Revolution|gene editing|"
    "black holes|vaccination|compound interest|boundary layer separation|supersonic flow|jazz|"
    "machine translation|coral bleaching|plasma fatty acids|contract law|renal failure|opera|"
    "heat transfer in a laminar flow|the stock market|volcanoes|immigration|quantum computing",
    "verb": "explained|forgot|bought|repaired|lost|painted|borrowed|sold|described|measured|"
    "postponed|rejected|inherited|translated|discovered|cancelled|recommended|photographed",
    "adjective": "remarkable|cheap|fragile|unusual|noisy|transparent|obsolete|delicious|steep|"
    "reliable|poisonous|ancient|controversial|lightweight|comfortable|mandatory|rare|slow",
    "effect": "reduces the risk of infection|doubles every ten years|was never confirmed|"
    "increases with temperature|depends on the angle of attack|led to a long strike|"
    "cannot be patented|is measured in kilopascals|caused widespread flooding|costs too much",
    "technology": "PostgreSQL|a linked list|the garbage collector|OAuth tokens|a CSV file|Kubernetes|"
    "the regex engine|numpy arrays|a binary tree|HTTP/2|the event loop|UTF-8|a Dockerfile|JSON",
    "error": "TimeoutError|segmentation fault|HTTP 503|KeyError: 'user_id'|ENOENT|out of memory|"
    "permission denied|ORA-00942|null pointer exception|exit code 137",
    "task": "sort a dictionary by value|read a file line by line|merge two data frames|"
    "parse a date string|remove duplicates from a list|compute a moving average|open a socket",
    "foreign": "¿Dónde está la estación de tren?|Ich habe gestern ein neues Fahrrad gekauft.|"
    "Nous avons déménagé à Lyon l'année dernière.|今日は天気がいいですね|我喜欢喝绿茶|"
    "Привет, как дела?|Onde fica a biblioteca?|그는 서울에 살고 있어요|Il gatto dorme sul divano.|"
    "السلام عليكم|मुझे चाय पसंद है|Jag tycker om att åka skidor.",
    "symbols": "🎉🎉 we did it!!!|:-) see u l8r|https://example.org/a/b?id=42&lang=en#top|"
    "C:\\Users\\ana\\notes.txt|E = mc²|x_i ≤ 3·10⁻⁴|**TODO**: [fix](#12)|+1 (555) 010-9999|???|ok|"
    'ana.silva@example.com|550e8400-e29b-41d4-a716-446655440000|<div class="note">hi</div>|no.',
}

_SENTENCES = {
    "question": "When did {person} move to {place}?|What is {person}'s favourite {hobby} spot?|"
    "who {verb} {thing} {time}|Why is {topic} so {adjective}?|how many {animal} are in {place}|"
    "Does {organisation} still sell {thing}?|what causes {topic}|Which {adjective} book about "
    "{topic} did {person} recommend?|how to {task} in python|Is it true that {topic} {effect}?|"
    "Where did I put {thing} before we left {place}?|Who founded {organisation}?|"
    "What should I cook for {person}, who can't eat {food}?|difference between {topic} and {topic}",
    "chat": "{person}: I {verb} {thing} {time}, and honestly I feel {feeling}.|Haha, same here! "
    "{person} brought {food} and we talked about {hobby} for hours.|Sorry, can't make it {time}. "
    "{person} is in {place} until then.|I've been {hobby} with {person} lately, it's {adjective}.|"
    "Hey! Did you hear that {organisation} {verb} {thing}?|Please remember that I never eat {food}.|"
    "We adopted {animal} from {place} {time}!|My budget is {number}, not more.|"
    "Actually I prefer {food} to {food}, and {hobby} to {hobby}.|Thanks, that was {adjective}...",
    "fact": "{topic} {effect}, as {person} {verb} {time}.|{organisation} was founded {time} in "
    "{place} and employs {number} people.|A {adjective} study of {topic} found that it {effect}.|"
    "In {place}, {topic} {effect}; the rate was {number} {time}.|The {adjective} method {effect} "
    "when {number} samples are taken from {animal}.|{person} ( born {time} ) is an author from "
    "{place} best known for writing about {topic} .",
    "note": "TODO {time}: ask {person} about {thing}|Meeting notes: {organisation}, {topic}, budget "
    "{number}. {person} disagreed.|Recipe: {food}, {number} g of {food}, bake until {adjective}.|"
    "Reminder - renew {thing} at {organisation} by {time}",
    "code": "{technology} raises {error} when I try to {task}|def f(x):\n    # {task}\n    return "
    "sorted(x, key=lambda item: item[1])  # {number}|SELECT id, name FROM users WHERE score > "
    "{number} ORDER BY created_at;  -- {task}|Use {technology} instead of {technology} to {task}.|"
    "Traceback (most recent call last): {error}|The {adjective} part of {technology} is that it "
    "{effect}.",
    "foreign": "{foreign}|{foreign} {person}, {place}",
    "symbols": "{symbols}|{symbols} {thing}|{topic} {symbols}",
}  # fmt: skip
_KINDS = ("question", "question", "chat", "chat", "fact", "fact", "note", "code", "foreign", "symbols")
_LONGER_EVERY = 3
_MOST_SENTENCES = 24
_SLOT = re.compile(r"\{(\w+)\}")


def sample_texts(count: int, seed: int) -> list[str]:
    """Make `count` different texts of 1 to about 400 word pieces, the same for the same seed.

    Uses only `random.Random.random`, whose sequence Python guarantees not to change.

    >>> sample_texts(2, seed=5) == sample_texts(2, seed=5)
    True
    """
    source = random.Random(seed)
    texts: dict[str, None] = {}
    while len(texts) < count:
        kind = _pick(source, _KINDS)
        longer = source.random() < 1 / _LONGER_EVERY
        sentences = 1 + int(source.random() ** 2 * _MOST_SENTENCES) if longer else 1
        texts[" ".join(_sentence(source, kind) for _ in range(sentences))] = None
    return list(texts)


def sample_pieces(seed: int) -> list[list[int]]:
    """Make 200 texts of 1 to 59 word pieces drawn from the whole vocabulary, framed as the tokenizer does."""
    source = random.Random(seed)
    return [
        [_START, *(_random_piece(source) for _ in range(1 + int(source.random() * _MOST_RANDOM_PIECES))), _END]
        for _ in range(_RANDOM_TEXTS)
    ]


def _random_piece(source: random.Random) -> int:
    return _FIRST_WORD + int(source.random() * (_VOCABULARY - _FIRST_WORD))


def _sentence(source: random.Random, kind: str) -> str:
    template = _pick(source, _SENTENCES[kind].split("|"))
    return _SLOT.sub(lambda slot: _pick(source, _WORDS[slot[1]].split("|")), template)


def _pick(source: random.Random, choices: Sequence[str]) -> str:
    return choices[int(source.random() * len(choices))]
