"""Names and relations in a question, through the whole engine: who is meant, what is inferred, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from retrieval.engine import Trivet
from retrieval.types.memory import MemoryInput, RelationInput
from retrieval.types.namespace import CustomRule, NamespaceSettings, RuleInput, SymmetricRule
from retrieval.types.search import Mode, SearchRequest, SearchResponse

NS = "people"

NOISE = [
    MemoryInput(id=f"x{at}", text=text)
    for at, text in enumerate(
        (
            "the kettle whistles when it boils",
            "rain is expected after lunch",
            "the printer needs more paper",
            "a quiet evening with soup",
            "buy stamps before the weekend",
            "the hallway light flickers",
            "no milk left in the fridge",
            "the bicycle has a flat tyre",
        )
    )
]


async def add(trivet: Trivet, *texts: str, rules: Sequence[RuleInput] | None = None) -> None:
    """Memories m0, m1... with these texts, among others without names."""
    await trivet.put_namespace(NS, NamespaceSettings(rules=None if rules is None else list(rules)))
    memories = [MemoryInput(id=f"m{at}", text=text) for at, text in enumerate(texts)]
    assert {result.status for result in await trivet.add(NS, [*memories, *NOISE])} <= {"created", "unchanged"}


async def asked(trivet: Trivet, query: str, **options: Any) -> SearchResponse:
    response = await trivet.search(NS, SearchRequest(query=query, explain=True, **options))
    assert response.degraded == []
    return response


def meant(response: SearchResponse) -> list[str]:
    """The entities that the graph leg saw in the query."""
    assert response.explanation
    return [entity["name"] for entity in response.explanation.legs["graph"]["entities"]]


def led(response: SearchResponse) -> dict[str, tuple[list[str], str]]:
    """Path and reason of what the graph leg found."""
    graph = {result.id: result.legs["graph"] for result in response.results if "graph" in result.legs}
    return {id_: (evidence.path or [], evidence.why or "") for id_, evidence in graph.items()}


async def test_a_name_finds_who_is_meant(trivet: Trivet, subtests: pytest.Subtests) -> None:
    """Short, whole or in the possessive."""
    await add(trivet, "Yesterday Melanie grew roses.", "My friend Tigran repairs clocks.", "And Olga sings.")
    for query, name, other in (
        ("What does Mel grow?", "Melanie", "Tigran"),
        ("what about Mel's garden?", "Melanie", "Tigran"),
        ("What does Melanie grow?", "Melanie", "Tigran"),
        ("Where is Melanie's garden?", "Melanie", "Tigran"),
        ("Where is Melanie\u2019s garden?", "Melanie", "Tigran"),
        ("What does Tigran repair?", "Tigran", "Melanie"),
        ("Tigran's workshop", "Tigran", "Melanie"),
    ):
        with subtests.test(query=query):
            response = await asked(trivet, query, mode=Mode.GRAPH)
            assert name in meant(response)
            assert other not in meant(response)
            assert response.results[0].id == {"Melanie": "m0", "Tigran": "m1"}[name]
            path, why = led(response)[response.results[0].id]
            assert path == [name]
            assert why == f"The query mentions {name}, and this memory mentions {name}."


async def test_a_name_inside_another_is_not_meant(trivet: Trivet) -> None:
    """Neither at its end nor in its middle, nor at its start if it is another name."""
    texts = ("My friend Tigran repairs clocks.", "Then Melanie grew roses.", "And Ann sings.", "Only Annabel dances.")
    await add(trivet, *texts)
    for query in ("What happens in Iran?", "Where is Elan?", "Who is Gran?", "What does Lanie do?"):
        assert meant(await asked(trivet, query, mode=Mode.GRAPH)) == [], query
    assert meant(await asked(trivet, "What does Ann do?", mode=Mode.GRAPH)) == ["Ann"]
    assert meant(await asked(trivet, "What does Annabel do?", mode=Mode.GRAPH)) == ["Annabel"]


async def test_a_short_name_that_two_could_have_is_nobodys(trivet: Trivet) -> None:
    await add(trivet, "Melanie grows roses.", "Melissa repairs clocks.")
    assert meant(await asked(trivet, "What does Mel do?", mode=Mode.GRAPH)) == []


@pytest.mark.parametrize("query", ["When was the NBA founded?", "Is the N.B.A. old?", "NBA"])
async def test_an_acronym_finds_what_it_stands_for(trivet: Trivet, query: str) -> None:
    await add(trivet, "The National Basketball Association began in 1946.", "Tigran repairs clocks.")
    response = await asked(trivet, query, mode=Mode.GRAPH)
    assert "National Basketball Association" in meant(response)
    assert response.results[0].id == "m0"


async def test_a_name_in_full_finds_its_acronym(trivet: Trivet) -> None:
    await add(trivet, "The NBA began in 1946.", "Tigran repairs clocks.")
    response = await asked(trivet, "When did the National Basketball Association begin?", mode=Mode.GRAPH)
    assert "NBA" in meant(response)


@pytest.mark.parametrize(
    ("query", "ends"), [("What does Bob's wife keep?", ("Bob", "Ann")), ("Is Ann well?", ("Ann", "Bob"))]
)
@pytest.mark.parametrize("rules", [None, []])
async def test_a_relation_in_a_text_leads_both_ways(
    trivet: Trivet, query: str, ends: tuple[str, str], rules: list[RuleInput] | None
) -> None:
    """What is stated needs no rule."""
    await add(trivet, "Ann is married to Bob.", "Ann keeps bees.", "Bob digs the garden.", rules=rules)
    for mode in (Mode.GRAPH, Mode.ADAPTIVE):
        response = await asked(trivet, query, mode=mode)
        goal = {"Ann": "m1", "Bob": "m2"}[ends[1]]
        path, why = led(response)[goal]
        assert path == list(ends)
        assert why == (f"The query mentions {ends[0]}, Ann —married to→ Bob, and this memory mentions {ends[1]}.")


STEP = CustomRule(name="step", when=[("x", "married_to", "y"), ("y", "parent_of", "z")], then=("x", "step_of", "z"))


@pytest.mark.parametrize(
    ("rules", "follows"), [([SymmetricRule(relation="married to"), STEP], True), ([STEP], False), ([], False)]
)
async def test_the_symmetric_rule_lets_others_follow(trivet: Trivet, rules: list[RuleInput], follows: bool) -> None:
    """From "Ann is married to Bob" that Bob is to Ann, and so what Ann's child is to him; never without the rule."""
    await add(
        trivet, "Ann is married to Bob.", "Ann's son Quentin is tall.", "Only Quentin collects stamps.", rules=rules
    )
    response = await asked(trivet, "Bob?", mode=Mode.GRAPH, max_hops=1)
    assert ("m2" in led(response)) is follows
    if follows:
        path, why = led(response)["m2"]
        assert path == ["Bob", "Quentin"]
        assert why == (
            "The query mentions Bob, Bob —step of→ Quentin, since Ann —married to→ Bob and Ann —parent of→ Quentin "
            "(step), and this memory mentions Quentin."
        )


@pytest.mark.parametrize(("rules", "follows"), [(None, True), ([], False)])
async def test_rules_are_in_force_unless_the_namespace_has_none(
    trivet: Trivet, rules: list[RuleInput] | None, follows: bool
) -> None:
    """Of the default rules, that a part of a part is a part; the setting applies from the next query."""
    given = [
        MemoryInput(id="r0", text="see the first register",
                    relations=[RelationInput(source="Quux Works", type="part of", target="Acme Group")]),
        MemoryInput(id="r1", text="see the second register",
                    relations=[RelationInput(source="Acme Group", type="part of", target="Zed Holding")]),
        MemoryInput(id="goal", text="Zed Holding moved."),
    ]  # fmt: skip
    await add(trivet, rules=rules)
    await trivet.add(NS, given)
    response = await asked(trivet, "Quux Works", mode=Mode.GRAPH, max_hops=1)
    assert ("goal" in led(response)) is follows
    if follows:
        path, why = led(response)["goal"]
        assert path == ["Quux Works", "Zed Holding"]
        assert "(transitive)" in why
        await trivet.put_namespace(NS, NamespaceSettings(rules=[]))
        assert "goal" not in led(await asked(trivet, "Quux Works", mode=Mode.GRAPH, max_hops=1))


async def test_every_way_reads_as_a_sentence(trivet: Trivet) -> None:
    """It begins with a capital, ends with a full stop, has no number in place of a name, and follows its path."""
    await add(
        trivet,
        "Ann is married to Bob.",
        "Bob works at Acme Labs.",
        "Acme Labs is located in Ghent.",
        "Ghent celebrates in July.",
        "Carla met Bob at Acme Labs.",
        "Carla plays the oboe.",
    )
    for mode in (Mode.GRAPH, Mode.ADAPTIVE):
        for query in ("Where does Ann's husband work?", "Who plays the oboe?", "Ghent", "what is celebrated"):
            response = await asked(trivet, query, mode=mode, max_hops=3)
            for id_, (path, why) in led(response).items():
                if not why:
                    assert not path, id_
                    continue
                assert why[0].isupper() or why.startswith(("m", "x")), why  # ids are as their callers write them
                assert why.endswith(".")
                assert "  " not in why
                at = 0
                for name in path:
                    at = why.find(name, at)
                    assert at >= 0, (path, why)


async def test_what_merely_stands_beside_has_a_path_of_nobody(trivet: Trivet) -> None:
    turns = {"Ann": "Bob keeps bees.", "Cleo": "How nice, how many?"}
    said = [MemoryInput(text=text, kind="message", speaker=speaker, session_id="s") for speaker, text in turns.items()]
    await trivet.add(NS, said)
    response = await trivet.search(NS, SearchRequest(query="Bob", mode=Mode.GRAPH, explain=True))
    assert {result.speaker: result.legs["graph"].path for result in response.results} == {"Ann": ["Bob"], "Cleo": []}


async def test_without_explain_there_is_no_way(trivet: Trivet) -> None:
    await add(trivet, "Ann is married to Bob.", "Ann keeps bees.")
    response = await trivet.search(NS, SearchRequest(query="Bob"))
    graph = [result.legs["graph"] for result in response.results if "graph" in result.legs]
    assert graph
    assert all(evidence.path is None and evidence.why is None for evidence in graph)


async def test_relations_lead_no_further_than_their_memories(trivet: Trivet) -> None:
    """A deleted memory's relations are gone, and another namespace's relations lead nowhere here."""
    await add(trivet, "Ann is married to Bob.", "Ann keeps bees.")
    await trivet.add("other", [MemoryInput(id="m0", text="Ann is married to Olaf."), MemoryInput(text="Olaf sails.")])
    assert "m1" in led(await asked(trivet, "Bob", mode=Mode.GRAPH))
    assert meant(await asked(trivet, "Olaf", mode=Mode.GRAPH)) == []
    await trivet.delete(NS, "m0")
    response = await asked(trivet, "Bob", mode=Mode.GRAPH)
    assert meant(response) == []
    assert led(response) == {}
