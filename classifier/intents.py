"""What a query wants: the four intents of the public contract, in their one fixed order."""

from enum import StrEnum


class Intent(StrEnum):
    """What a query asks for; `classifier/data/GUIDELINE.md` defines and delimits each."""

    FACT_LOOKUP = "fact_lookup"
    """One stated thing: a name, date, number, place, or a list of one kind."""

    RELATIONSHIP = "relationship"
    """The answer joins two or more entities: a second hop, a comparison, something shared."""

    PREFERENCE = "preference"
    """A suggestion that depends on somebody's taste or situation, or that taste itself."""

    OPEN_ENDED = "open_ended"
    """An explanation, summary, procedure, argument or piece of advice; no single short answer."""


INTENTS: tuple[Intent, ...] = (
    Intent.FACT_LOOKUP,
    Intent.RELATIONSHIP,
    Intent.PREFERENCE,
    Intent.OPEN_ENDED,
)
"""Column order of every array of probabilities, in training, in the ONNX file and in serving."""
