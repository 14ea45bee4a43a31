"""The session of the OpenAI Agents SDK and the tools of Pydantic AI."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from agents import Agent, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.memory.session import Session
from agents.models.interface import Model
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelMessage, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.messages import ModelResponse as PydanticResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel as PydanticTestModel

import trivet
from retrieval.ids import uuid7
from tests.connections import Connection, connections
from tests.examples import share_of_examples
from tests.serving import on_a_port, settings_for
from trivet.integrations.openai_agents import PART_CHARS, TrivetSession
from trivet.integrations.pydantic_ai import trivet_toolset

ITEMS: list[Any] = [
    {"role": "user", "content": "Where did my sister move?"},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"who": "Ines"}'},
    {"type": "function_call_output", "call_id": "c1", "output": 'Porto, "the invincible"\x00\ud800' * 5_000},
    {"role": "assistant", "content": [{"type": "output_text", "text": "She moved to Porto.", "annotations": []}]},
    {"role": "user", "content": "w" * (PART_CHARS + 10) + " tea"},
    {"z": 2**70, "a": 1e22, "role": "user", "content": ""},
]


class Scripted(Model):
    """A model that calls a tool, then repeats the tool's answer."""

    def __init__(self) -> None:
        self.inputs: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        self.inputs.append(input)
        last = input[-1]
        output: Any
        if last.get("type") == "function_call_output":
            text = ResponseOutputText(type="output_text", text=f"She lives in {last['output']}.", annotations=[])
            output = ResponseOutputMessage(
                id="m1", type="message", role="assistant", status="completed", content=[text]
            )
        else:
            output = ResponseFunctionToolCall(type="function_call", call_id="c1", name="look_up", arguments="{}")
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


@connections
async def test_a_session_returns_what_was_added(connection: Connection, database_url: str) -> None:
    async with connection(database_url) as client:
        session, other = TrivetSession("s1", client), TrivetSession("s2", client)
        assert isinstance(session, Session)
        assert (await session.get_items(), await session.pop_item()) == ([], None)
        await session.clear_session()
        await session.add_items([])
        await session.add_items(ITEMS[:2])
        await other.add_items(ITEMS[:1])
        await session.add_items(ITEMS[2:])
        items = await session.get_items()
        assert [json.dumps(item) for item in items] == [json.dumps(item) for item in ITEMS]  # keys in their order, too
        assert await session.get_items(limit=2) == ITEMS[-2:]
        assert await session.get_items(limit=0) == []
        assert [await session.pop_item(), await session.pop_item()] == ITEMS[:-3:-1]
        assert await session.get_items() == ITEMS[:-2]
        await session.clear_session()
        assert (await session.get_items(), await other.get_items()) == ([], ITEMS[:1])


@connections
async def test_what_was_said_in_a_session_is_found(connection: Connection, database_url: str) -> None:
    async with connection(database_url) as client:
        await TrivetSession("s1", client).add_items(ITEMS[:4])
        found = await client.search("Porto sister", filters={"kind": ["message"]})
        spoken = {each.text: (each.speaker, each.session_id) for each in found.results}
        assert spoken == {
            "Where did my sister move?": ("user", "s1"),
            "She moved to Porto.": ("assistant", "s1"),
        }
        with pytest.raises(trivet.InvalidInput):
            await TrivetSession("s" * 300, client).add_items(ITEMS[:1])


async def test_what_is_said_beside_a_picture_stays_one_message(database_url: str) -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64," + "iVBORw0K" * (PART_CHARS // 2)}
    item: Any = {"role": "user", "content": [{"type": "input_text", "text": "My new boat is the Luna."}, picture]}
    async with trivet.aopen(database_url=database_url, namespace="ana") as client:
        session = TrivetSession("s1", client)
        await session.add_items([item])
        found = await client.search("What is the boat called?", filters={"kind": ["message"]})
        assert [each.text for each in found.results] == ["My new boat is the Luna."]
        assert await session.get_items() == [item]


@connections
async def test_two_that_pop_at_once_get_different_items(connection: Connection, database_url: str) -> None:
    async with connection(database_url) as client:
        session = TrivetSession("s1", client)
        items: list[Any] = [{"role": "user", "content": f"note {number}"} for number in range(6)]
        await session.add_items(items)
        popped: list[Any] = await asyncio.gather(*(session.pop_item() for _ in range(8)))
        assert sorted(item["content"] for item in popped if item) == [item["content"] for item in items]
        assert popped.count(None) == 2


async def test_a_long_item_is_popped_whole_or_not_at_all(database_url: str) -> None:
    class Flaky(httpx.AsyncHTTPTransport):
        removals = 0

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if request.method == "DELETE" or request.url.path.endswith("/delete"):
                self.removals += 1
                if self.removals == 2:
                    raise httpx.ReadError("cut off")
            return await super().handle_async_request(request)

    with on_a_port(settings_for(database_url)) as url:
        async with trivet.AsyncClient(url, namespace="ana", transport=Flaky()) as client:
            session = TrivetSession("s1", client)
            await session.add_items([*ITEMS[:3], ITEMS[2]])
            assert await session.pop_item() == ITEMS[2]
            with pytest.raises(trivet.Unreachable):
                await session.pop_item()
            assert await session.get_items() == ITEMS[:3]


async def test_an_item_of_which_the_end_is_not_there_is_left_out(database_url: str) -> None:
    """Another one adds or removes it, or was cut off."""
    async with trivet.aopen(database_url=database_url, namespace="ana") as client:
        session = TrivetSession("s1", client)
        await session.add_items(ITEMS[:3])
        await client.delete(max([each.id async for each in client.get_all()]))
        assert await session.get_items() == ITEMS[:2]
        assert await session.pop_item() == ITEMS[1]


@connections
async def test_an_agent_goes_on_where_it_stopped(connection: Connection, database_url: str) -> None:
    @function_tool
    def look_up() -> str:
        """Where the sister lives."""
        return "Porto"

    async with connection(database_url) as client:
        model = Scripted()
        agent = Agent(name="assistant", model=model, tools=[look_up])
        silent = RunConfig(tracing_disabled=True)
        for question in ("Where is my sister?", "And again?"):
            result = await Runner.run(agent, question, session=TrivetSession("s1", client), run_config=silent)
            assert result.final_output == "She lives in Porto."
        second = [item.get("type", item.get("role")) for item in model.inputs[2]]
        assert second == ["user", "function_call", "function_call_output", "message", "user"]
        assert len(await TrivetSession("s1", client).get_items()) == 8


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
items = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "system"]), "content": st.text()}) | (
    st.fixed_dictionaries({"type": st.just("reasoning"), "extra": json_values})
)


def test_any_items_come_back(database_url: str) -> None:
    """In any order of additions and removals, as from a list."""

    async def check(url: str, steps: list[list[Any] | None]) -> None:
        expected: list[Any] = []
        async with trivet.AsyncClient(url) as client:
            session = TrivetSession("s", client, namespace=uuid7())
            for step in steps:
                if step is None:
                    assert await session.pop_item() == (expected.pop() if expected else None)
                else:
                    await session.add_items(step)
                    expected += step
            assert await session.get_items() == expected

    with on_a_port(settings_for(database_url)) as url:

        @settings(max_examples=share_of_examples(0.2))
        @given(st.lists(st.lists(items, max_size=3) | st.none(), max_size=5))
        def run(steps: list[list[Any] | None]) -> None:
            asyncio.run(check(url, steps))

        run()


@connections
async def test_pydantic_ai_calls_every_tool(connection: Connection, database_url: str) -> None:
    """Its test model calls each with arguments that the schema allows: ids and questions are single letters."""
    async with connection(database_url) as client:
        model = PydanticTestModel(call_tools=["remember", "recall", "get_context"])
        agent = PydanticAgent(model, toolsets=[trivet_toolset(client)])
        result = await agent.run("Remember something.")
        returned = json.loads(result.output)
        assert returned.keys() == {"remember", "recall", "get_context"}
        assert model.last_model_request_parameters is not None
        tools = {tool.name: tool for tool in model.last_model_request_parameters.function_tools}
        assert tools.keys() == {"remember", "recall", "get_context", "forget"}
        assert tools["recall"].description == "Memories most relevant to a question, best first, with ids and dates."
        properties = {name for tool in tools.values() for name in tool.parameters_json_schema["properties"]}
        assert properties == {"text", "speaker", "query", "limit", "max_tokens", "id"}


@connections
async def test_a_pydantic_agent_remembers_corrects_itself_and_forgets(
    connection: Connection, database_url: str
) -> None:
    async with connection(database_url) as client:
        [added] = await client.add({"text": "My sister Ines moved to Porto.", "speaker": "Ana"})
        calls = [
            ToolCallPart("recall", {"query": " "}),
            ToolCallPart("recall", {"query": "Where is Ines?", "limit": 900}),
            ToolCallPart("forget", {"id": added.id}),
            ToolCallPart("recall", {"query": "Where is Ines?"}),
        ]

        def respond(messages: list[ModelMessage], info: AgentInfo) -> PydanticResponse:
            done = sum(isinstance(message, PydanticResponse) for message in messages)
            return PydanticResponse([calls[done] if done < len(calls) else TextPart("done")])

        result = await PydanticAgent(FunctionModel(respond), toolsets=[trivet_toolset(client)]).run("Go on.")
        parts = [part for message in result.all_messages() for part in message.parts]
        returned = [part for part in parts if isinstance(part, ToolReturnPart)]
        assert [part.outcome for part in returned] == ["retried", *["success"] * 3]
        contents: list[Any] = [part.content for part in returned]
        refused, recalled, forgotten, nothing = contents
        assert "must not be blank" in refused
        assert (recalled[0]["id"], recalled[0]["speaker"]) == (added.id, "Ana")
        assert forgotten == f"{added.id} is deleted"
        assert nothing == []
        empty = trivet_toolset(client, namespace="nobody")
        model = PydanticTestModel(call_tools=["recall"])
        assert (await PydanticAgent(model, toolsets=[empty]).run("Go on.")).output == '{"recall":[]}'
