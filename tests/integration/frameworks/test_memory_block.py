"""The long-term memory of LlamaIndex's agents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import MessageStatus
from sqlalchemy.ext.asyncio import create_async_engine

import trivet
from tests.connections import Connection, connections
from trivet.integrations.llamaindex import TrivetMemoryBlock

QUESTION = "Where does my sister live?"
SAID = [
    ChatMessage("My sister Ines moved to Porto.\x00\ud800"),
    ChatMessage("What does she do there?", role=MessageRole.ASSISTANT),
    ChatMessage(role="tool", content="Porto has 230,000 inhabitants."),
    ChatMessage("She paints boats."),
    ChatMessage("Lovely.", role=MessageRole.ASSISTANT),
    ChatMessage("We sail to Porto in May, if her boat is ready."),
]


@asynccontextmanager
async def memory_of(session_id: str, block: TrivetMemoryBlock) -> AsyncIterator[Memory]:
    """A memory whose short-term part holds some 20 words."""
    engine = create_async_engine("sqlite+aiosqlite:///:memory:")
    yield Memory.from_defaults(
        session_id,
        token_limit=30,
        token_flush_size=10,
        tokenizer_fn=str.split,
        memory_blocks=[block],
        async_engine=engine,
    )
    await engine.dispose()  # its thread would tell a closed event loop that it ends


@connections
async def test_what_a_conversation_no_longer_holds_is_found_in_all(connection: Connection, database_url: str) -> None:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(connection(database_url))
        block = TrivetMemoryBlock(client=client)
        memory = await stack.enter_async_context(memory_of("s1", block))
        assert await memory.aget(QUESTION) == []
        for message in SAID:
            await memory.aput(message)
        stored = [(each.text, each.kind, each.speaker, each.session_id) async for each in client.get_all()]
        assert stored == [
            ("My sister Ines moved to Porto.", "message", "user", "s1"),
            ("What does she do there?", "message", "assistant", "s1"),
        ]
        [system, *active] = await memory.aget(QUESTION)
        assert [each.content for each in active] == [each.content for each in SAID[3:]]
        assert "[1] user: My sister Ines moved to Porto." in str(system.content)

        await block.aput(await memory.aget_all(status=MessageStatus.ACTIVE), session_id="s1")
        assert "boat" not in str((await memory.aget(QUESTION))[0].content)  # the conversation still holds it
        another = await stack.enter_async_context(memory_of("s2", block))
        [system] = await another.aget(QUESTION)
        assert "boat" in str(system.content)


@connections
async def test_fields_of_the_pack_with_either_client(connection: Connection, database_url: str) -> None:
    async with connection(database_url) as asynchronous:
        await asynchronous.add(["My sister Ines moved to Porto.", {"text": "Ines paints.", "tags": ["work"]}])
        with trivet.open(database_url=database_url, namespace="ana") as synchronous:
            for client in (asynchronous, synchronous):
                block = TrivetMemoryBlock(client=client, context_kwargs={"filters": {"tags_all": ["work"]}})
                pack = await block.aget([ChatMessage("Where is Ines?")], initial_token_count=7)
                assert pack.endswith("Ines paints.")
                elsewhere = TrivetMemoryBlock(client=client, namespace="ben")
                assert await elsewhere.aget([ChatMessage("Where is Ines?")]) == ""
                assert await elsewhere.aget([ChatMessage(blocks=[ImageBlock(url="http://127.0.0.1/a.png")])]) == ""


async def test_what_is_wrong_is_said(database_url: str) -> None:
    async with trivet.aopen(database_url=database_url, namespace="ana") as client:
        block = TrivetMemoryBlock(client=client)
        with pytest.raises(trivet.InvalidInput, match="text 2 of 2 was not stored"):
            await block.aput([ChatMessage("Hello"), ChatMessage(blocks=[TextBlock(text="w" * 1_000_001)])])
        with pytest.raises(trivet.InvalidInput, match="colour"):
            await TrivetMemoryBlock(client=client, context_kwargs={"colour": "red"}).aget([ChatMessage("Hello")])
        with pytest.raises(ValueError, match="filters"):  # would be of no effect
            TrivetMemoryBlock(client=client, filters={"tags_all": ["work"]})  # type: ignore[call-arg]
