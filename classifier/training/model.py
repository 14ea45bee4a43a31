"""The intent model in numpy, the reference for the ONNX file."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from classifier.features import EMBEDDING_DIM, LEXICAL
from classifier.training.calibration import softmax
from classifier.training.encoding import GRAM_SETS, Encoded, Vocabulary
from classifier.training.intent_domain import IntentDomain

FORM_SETS = ("skeleton",)
"""The n-grams of the form member; the word member uses all of `GRAM_SETS`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A linear model over one view of a query."""

    dense: NDArray[np.float64]
    """Shape (columns, 4), over the member's part of the row; possibly no columns."""
    tables: dict[str, NDArray[np.float64]]
    """By set of n-grams, shape (slots, 4); row 0 is zeros."""
    intercept: NDArray[np.float64]
    """Shape (4,)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IntentModel:
    """Two members, for form and for words, whose probabilities are averaged, with their calibration."""

    vocabularies: dict[str, Vocabulary]
    form: Member
    """Over the embedding, the lexical numbers and the skeleton."""
    bare_form: Member
    """For queries without an embedding: over the lexical numbers and the skeleton."""
    words: Member
    """Over all n-grams, with or without an embedding."""
    temperature: float
    """Of the averaged probabilities, with an embedding."""
    bare_temperature: float
    """The same without an embedding."""
    in_domain: IntentDomain

    def averaged(self, encoded: Encoded, *, embedded: bool) -> NDArray[np.float64]:
        """Logarithms of the members' mean probabilities before temperature, shape (n, 4)."""
        scaled = {name: self.vocabularies[name].scaled(encoded.grams[name]) for name in GRAM_SETS}
        form = self.form if embedded else self.bare_form
        dense = dense_view(encoded, embedded=embedded)
        logits = [
            member.intercept + view @ member.dense + sum(scaled[name] @ table for name, table in member.tables.items())
            for member, view in ((form, dense), (self.words, dense[:, :0]))
        ]
        mean = np.mean([softmax(each) for each in logits], axis=0)
        result: NDArray[np.float64] = np.log(mean)
        return result

    def probabilities(self, encoded: Encoded, *, embedded: bool) -> NDArray[np.float64]:
        """Calibrated, shape (n, 4), rows summing to 1."""
        temperature = self.temperature if embedded else self.bare_temperature
        return softmax(self.averaged(encoded, embedded=embedded), temperature)


def dense_view(encoded: Encoded, *, embedded: bool) -> NDArray[np.float64]:
    """The part of the rows that the form member reads."""
    first = 0 if embedded else EMBEDDING_DIM
    return encoded.rows[:, first : LEXICAL.stop].astype(np.float64)
