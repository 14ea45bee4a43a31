"""The model card, `models/intent.md`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from classifier.features import BUCKETS, EMBEDDING_DIM, FEATURE_DIM, LEXICAL
from classifier.intents import INTENTS
from classifier.training.data import LabelledQuery
from classifier.training.fit import AT_LEAST, FOLDS, FORM_C, MIN_TEMPERATURE, TOPICS, WORDS_C
from classifier.training.judge import JUDGE_WEIGHT, IntentVerdict
from classifier.training.metrics import IntentMetrics
from classifier.training.model import USUAL, USUAL_SHARE, IntentModel

ASKED = {"macro-F1 unseen": 0.75, "macro-F1 in folds": 0.87, "ECE unseen": 0.05, "ECE in folds": 0.05}
"""The project's targets on the judging set."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IntentFacts:
    """The facts stated in the card."""

    queries: Sequence[LabelledQuery]
    name: str
    model_sha256: str
    model_bytes: int
    seed: int
    parity: float
    model: IntentModel
    folds: tuple[IntentMetrics, IntentMetrics]
    """On held-out folds of our own queries, with and without embedding."""
    languages: dict[str, IntentMetrics]
    """The same by language of `languages.jsonl`, with embedding."""
    verdict: IntentVerdict | None


def render(facts: IntentFacts) -> str:
    """Render the card in Markdown."""
    sections = [_what(facts), _data(facts), _how(facts), _folds(facts)]
    if facts.verdict is not None:
        sections += [_judged(facts.verdict), _robust(facts.verdict)]
    failures = _FAILURES if facts.name == _MULTILINGUAL else f"{_FAILURES}\n{_FOREIGN}"
    return "\n\n".join([*sections, failures]) + "\n"


def confusion_table(metrics: IntentMetrics) -> str:
    """The confusion matrix, true by predicted, in Markdown."""
    rows = [
        f"| **{intent}** | {' | '.join(str(n) for n in row)} |"
        for intent, row in zip(INTENTS, metrics.confusion, strict=True)
    ]
    return "\n".join([f"| truth \\ prediction | {' | '.join(INTENTS)} |", "|---|---|---|---|---|", *rows])


def metrics_table(rows: Sequence[tuple[str, IntentMetrics]]) -> str:
    """One row of metrics per name, in Markdown."""
    head = f"| | n | accuracy | macro-F1 | {' | '.join(f'F1 {i}' for i in INTENTS)} | ECE | log-loss |"
    lines = [
        f"| {name} | {m.n} | {m.accuracy:.3f} | {m.macro_f1:.3f} | {' | '.join(f'{m.f1[i]:.3f}' for i in INTENTS)} "
        f"| {m.ece:.3f} | {m.log_loss:.3f} |"
        for name, m in rows
    ]
    return "\n".join([head, "|---|---|---|---|---|---|---|---|---|---|", *lines])


def _what(facts: IntentFacts) -> str:
    embedder = "multilingual-e5-small" if facts.name == _MULTILINGUAL else "all-MiniLM-L6-v2"
    return f"""# {facts.name}: what does a query want?

Four intents, in this order: {", ".join(INTENTS)}. Probabilities are calibrated and meant to be
mixed (`classifier.weights`), not reduced to a hard label. Familiarity says how much a query resembles those of the
training.

| | |
|---|---|
| input | `row`, float32 (1, {FEATURE_DIM}), and `words`, `characters`, `skeleton`, int64 (1, any) |
| computed from a query by | `classifier.features.query_features` |
| output | `probabilities`, float32 (1, 4); `familiarity`, float32 (1, 1), in [0, 1] |
| use | `classifier.inference.IntentClassifier`, with the query's embedding or without |
| licence | Apache-2.0 (model); data: see below |
| size | {facts.model_bytes:,} bytes |
| sha256 | `{facts.model_sha256}` |
| embedder | {embedder} |
| made by | `python -m classifier.training --model {facts.name} --judge ../shared/data/intents`, seed {facts.seed} |"""


def _data(facts: IntentFacts) -> str:
    sources = list(dict.fromkeys(query.source for query in facts.queries))
    counts = Counter((query.intent, query.source) for query in facts.queries)
    rows = "\n".join(f"| {i} | {' | '.join(str(counts[i, source]) for source in sources)} |" for i in INTENTS)
    foreign = sum(query.language is not None for query in facts.queries)
    return f"""## Training data

`classifier/data/`, {len(facts.queries)} queries: `languages.jsonl` has {foreign} in ten languages, `intents.jsonl` the
others, in English except for about 600. Labelled by `GUIDELINE.md`, licences in `LICENSES.md`: `written` and `template`
were made for Trivet (Apache-2.0), `chatterbot-corpus` is BSD-3-Clause, `openai-evals` MIT. No query of the judging set,
or of a set that it draws on, is included. Training adds one altered copy of most queries (lower case, no question mark,
a typo, a chatty paragraph before it).

| intent | {" | ".join(sources)} |
|---|{"---|" * len(sources)}
{rows}"""


def _how(facts: IntentFacts) -> str:
    model = facts.model
    seen = ", ".join(f"{len(each.idf) - 1:,} of {name}" for name, each in model.vocabularies.items())
    least = ", ".join(f"{count} for {name}" for name, count in AT_LEAST.items())
    return f"""## Model

The mean of two multinomial logistic regressions (scikit-learn, L2, equal weight per intent) in one graph. One reads the
form: embedding ({EMBEDDING_DIM}), cues, form and counts ({LEXICAL.stop - EMBEDDING_DIM}), n-grams of the skeleton
(C = {FORM_C}); a second set of its weights serves queries without an embedding. The other reads all n-grams, each set
scaled by idf to unit length (C = {WORDS_C}). N-grams are hashed into {BUCKETS:,} buckets per set; those in
fewer training queries than {least} count as unseen, which leaves {seen}.

Temperature, with an embedding {model.temperature:.3f}, without {model.bare_temperature:.3f}: fitted on held-out
folds, but never below {MIN_TEMPERATURE}, since our own folds call for sharper probabilities than queries from elsewhere
justify. Isotonic regression per intent, tried once on the same folds, had a log-loss of .305 there against .302 with
an unbounded temperature, and .508 against .497 on the judging set; the temperature with its floor had .456.

Familiarity: a logistic regression over the shares of n-grams that were seen in training and the cosine to the nearest
of {len(model.in_domain.centroids)} centroids, against texts that are not queries (generated by
`classifier/training/out_of_domain.py`); scaled so that {1 - USUAL_SHARE:.0%} of held-out queries reach {USUAL} and
their median 1.

Largest difference between the ONNX file and numpy, over all training queries with and without embedding:
{facts.parity:.1e}."""


def _folds(facts: IntentFacts) -> str:
    rows = [("with embedding", facts.folds[0]), ("words alone", facts.folds[1]), *facts.languages.items()]
    return f"""## On our own data

{FOLDS} folds that keep a topic (one of {TOPICS} k-means clusters) and a query's copies together; measured on all
originals. By language, with embedding: the queries of `languages.jsonl`; of these, only copies are kept together.

{metrics_table(rows)}"""


def _judged(verdict: IntentVerdict) -> str:
    rows = [
        ("unseen, with embedding", verdict.with_embedding),
        ("unseen, words alone", verdict.without_embedding),
        ("unseen, lower case, no end mark", verdict.lower_case),
        (f"{FOLDS} folds, with embedding", verdict.in_folds),
    ]
    found = {
        "macro-F1 unseen": verdict.with_embedding.macro_f1,
        "macro-F1 in folds": verdict.in_folds.macro_f1,
        "ECE unseen": verdict.with_embedding.ece,
        "ECE in folds": verdict.in_folds.ece,
    }
    asked = "\n".join(f"| {name} | {found[name]:.3f} | {bound} |" for name, bound in ASKED.items())
    sources = "\n".join(
        f"| {source} | {n} | {unseen:.3f} | {folded:.3f} |"
        for source, (n, unseen, folded) in verdict.accuracy_by_source.items()
    )
    errors = "\n".join(
        f"| {source} | {kind} | {count} |" for (source, kind), count in verdict.errors.items() if count > 4
    )
    return f"""## On the judging set

Benchmark and human questions mapped to the intents. The shipped model has seen none of them, and none of their texts is
in the repository. But these are development figures, not a blind test: samples of the set were read before the first
training queries were written, its errors guided a second batch of about 690 and the kinds of a third, and its figures
guided the choice of the type of model, the regularisation, the floor of the temperature, the share of templates,
foreign sets and stories, and the threshold of familiarity, for which those of `out_of_domain.jsonl` counted, too. About
thirty variants were compared; they lie within about .015 of each other, about the standard error. "In folds": each
fifth of the set is answered by a model trained on the other four fifths and our data, each of their queries counting
{JUDGE_WEIGHT:g} times.

| | measured | required |
|---|---|---|
{asked}

{metrics_table(rows)}

Unseen, with embedding:

{confusion_table(verdict.with_embedding)}

In folds:

{confusion_table(verdict.in_folds)}

| source | queries | accuracy unseen | in folds |
|---|---|---|---|
{sources}

Most frequent errors, unseen:

| source | error | count |
|---|---|---|
{errors}"""


def _robust(found: IntentVerdict) -> str:
    languages = "\n".join(
        f"| {name} | {n} | {accuracy:.3f} | {familiarity:.2f} |"
        for name, (n, accuracy, familiarity) in found.languages.items()
    )
    familiar = f"{found.familiar:.1%}"
    strange = "\n".join(f"| {kind} | {n} | {mean:.2f} |" for kind, (n, mean) in found.strange.items())
    return f"""## Robustness

The unseen judging set, altered (`classifier/training/judge.py`):

{metrics_table(list(found.altered.items()))}

Queries in other languages, written for this test and never trained on (`classifier/data/held_out.jsonl`; three per
intent, so each query is worth .083):

| language | n | accuracy | mean familiarity |
|---|---|---|---|
{languages}

Familiarity of texts that are not queries, never trained on (`classifier/data/out_of_domain.jsonl`):

| kind | n | mean familiarity |
|---|---|---|
{strange}

AUROC of familiarity, the judging set and other languages against these: {found.auroc:.3f} with embedding,
{found.bare_auroc:.3f} with words alone. Of the judging set, {familiar} have a familiarity of .8 or more."""


_FAILURES = """## Where it fails

- **Facts asked with a long description** ("What poet from Leeds who worked as a clerk ...") look like a second hop;
  two-hop questions in plain words ("Where are the winners of the race from?") look like a fact.
- **Expert questions**: a short factual answer to "Why does the cell need zinc?" or "What are the signs of gout?" is
  labelled a fact by some and open-ended by others; the model leans towards open-ended.
- **Facts about one's own tastes** ("Which brand is my favourite?") share words with requests for suggestions.
- **Unspoken requests** (describing an experience in the hope of advice) lean towards open-ended.
- **Follow-ups** ("Which one?", "Is it suitable?") carry little evidence; pass the resolved query if there is one.
- **A long story before the question** hurts most, since the embedding and the first words come from the story.
- **Familiarity** knows n-grams and topics, not meaning: a fluent text that asks nothing counts as familiar."""

_FOREIGN = """\
- **Languages**: the embedder is an English model. It reads other scripts letter by letter, which leaves the n-grams of
  about 120 queries per language; familiarity is low there. `intent.multilingual.onnx` reads ten languages equally."""
_MULTILINGUAL = "intent.multilingual.onnx"
