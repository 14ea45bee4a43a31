"""The intent model in numpy: what is learned, and what the ONNX file must say."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from classifier.features import EMBEDDING_DIM, LEXICAL
from classifier.training.calibration import softmax
from classifier.training.encoding import GRAM_SETS, Encoded, Vocabulary
from classifier.training.intent_familiarity import Familiarity

FORM_SETS = ("skeleton",)
"""The n-grams of the member that reads the form; the member that reads the words has all of `GRAM_SETS`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A linear model of one view of a query."""

    dense: NDArray[np.float64]
    """Shape (columns, 4), over its part of the row; no columns for none."""
    tables: dict[str, NDArray[np.float64]]
    """Per set of n-grams that it reads, shape (slots, 4); row 0 is zeros."""
    intercept: NDArray[np.float64]
    """Shape (4,)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IntentModel:
    """Two members whose probabilities are averaged, one for the form and one for the words, and their calibration."""

    vocabularies: dict[str, Vocabulary]
    form: Member
    """Over embedding, lexical numbers and the skeleton."""
    bare_form: Member
    """The same for queries without an embedding: over lexical numbers and the skeleton."""
    words: Member
    """Over all n-grams; for both kinds of queries."""
    temperature: float
    """Of the averaged probabilities, with an embedding."""
    bare_temperature: float
    """The same without."""
    familiarity: Familiarity

    def averaged(self, encoded: Encoded, *, embedded: bool) -> NDArray[np.float64]:
        """Logarithms of the members' mean probabilities, before temperature, shape (n, 4)."""
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
    """The part of the rows that the member for the form reads."""
    first = 0 if embedded else EMBEDDING_DIM
    return encoded.rows[:, first : LEXICAL.stop].astype(np.float64)
