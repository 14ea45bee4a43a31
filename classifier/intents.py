"""The four query intents of the public contract, in their fixed order."""

from enum import StrEnum


class Intent(StrEnum):
    """What a query asks for, as defined in `classifier/data/GUIDELINE.md`."""

    FACT_LOOKUP = "fact_lookup"
    """One stated thing: a name, date, number, place, or a list of one kind."""

    RELATIONSHIP = "relationship"
    """An answer that joins two or more entities: a second hop, a comparison, something shared."""

    PREFERENCE = "preference"
    """A suggestion that depends on a person's taste or situation, or the taste itself."""

    OPEN_ENDED = "open_ended"
    """An explanation, summary, procedure, argument or advice; no single short answer."""


INTENTS: tuple[Intent, ...] = tuple(Intent)
"""Column order of all arrays of probabilities: in training, in the ONNX file and in serving."""
