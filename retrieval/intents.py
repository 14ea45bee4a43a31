"""The intent of a query: stated by its caller, or predicted while the legs run."""

from __future__ import annotations

from classifier.inference import IntentClassifier, IntentPrediction
from retrieval.embedding.cache import Embedding
from retrieval.embedding.embedders import Embedders
from retrieval.preparation import PreparedQuery
from retrieval.profiles.models import ModelRegistry
from retrieval.profiles.profile import Profile
from retrieval.ranking.weighting import stated_intent
from retrieval.timings import Stopwatch
from retrieval.types.namespace import EmbedderName
from retrieval.validation import check_query, check_storable


class IntentPredictor:
    """Predicts the intent of queries with their profile's classifier."""

    def __init__(self, embedders: Embedders, model_registry: ModelRegistry, *, timeout_s: float) -> None:
        """Wait at most `timeout_s` seconds for an embedding; without one, only the words are used."""
        self._embedders = embedders
        self._model_registry = model_registry
        self._timeout_s = timeout_s

    async def intent_of(self, query: PreparedQuery) -> IntentPrediction:
        """The intent given in the request, or the predicted one."""
        request = query.request
        if request.intent is not None:
            return stated_intent(request.intent)
        return await self._predicted(
            request.query, query.models.classifier, query.classifier_embedding, query.stopwatch
        )

    async def classify(
        self, text: str, profile: Profile, embedder: EmbedderName, stopwatch: Stopwatch
    ) -> IntentPrediction:
        """The intent of a query without a search, as predicted for namespaces with that embedder.

        Raises InvalidInput for a blank or unusable query.
        """
        check_query(text)
        check_storable(text, ("query",))
        models = await self._model_registry.load(profile.models, embedder)
        embedding = Embedding(self._embedders.get(models.classifier_embedder), text, stopwatch)
        return await self._predicted(text, models.classifier, embedding, stopwatch)

    async def _predicted(
        self, text: str, classifier: IntentClassifier, embedding: Embedding, stopwatch: Stopwatch
    ) -> IntentPrediction:
        vector = await embedding.or_none(timeout_s=self._timeout_s)
        with stopwatch.span("classify"):
            return classifier.predict(text, vector)
