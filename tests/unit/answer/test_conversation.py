"""What a conversation asks for, and what it contains already."""

import msgspec
import pytest

from retrieval.answer.conversation import (
    MOST_ASKING_CHARS,
    MOST_QUERY_CHARS,
    MOST_SEARCHED_CHARS,
    Conversation,
    query_of,
    question_in,
)
from retrieval.types.search import ChatMessage


def messages(*texts: str) -> list[ChatMessage]:
    """Messages of user and assistant in turn; the assistant's begin with `>`."""
    return [
        ChatMessage(role="assistant" if text.startswith(">") else "user", content=text.removeprefix(">"))
        for text in texts
    ]


@pytest.mark.parametrize(
    ("texts", "query"),
    [
        (["Who is Ines?", ">Your sister.", "Where does she live?"], "Who is Ines? Where does she live?"),
        (["Which hotels are in Porto?", ">Two.", "And in winter?"], "Which hotels are in Porto? And in winter?"),
        (["Who is Ines?", "Tell me of Porto.", "And?", "And then?"], "Tell me of Porto. And? And then?"),
        (["Which hotels are in Porto?", "And cheap hostels?"], "Which hotels are in Porto? And cheap hostels?"),
        (["Who is Ines?", "What boats did my brother sell in June?"], "What boats did my brother sell in June?"),
        (["波尔图有哪些酒店？", "那冬天呢？"], "波尔图有哪些酒店？ 那冬天呢？"),
        (["伊内斯是谁？", "她在城里的哪一个博物馆工作？"], "伊内斯是谁？ 她在城里的哪一个博物馆工作？"),
        (["伊内斯是谁？", "我什么时候去看牙医？"], "我什么时候去看牙医？"),
        (["伊内斯是谁？", "我这周什么时候在土耳其买的吉他？"], "我这周什么时候在土耳其买的吉他？"),
        (["伊内斯是谁？", "其中哪一位在博物馆工作了三年？"], "伊内斯是谁？ 其中哪一位在博物馆工作了三年？"),
        (["伊内斯是谁？", "其实这年、这个月、这星期我见了谁？"], "其实这年、这个月、这星期我见了谁？"),
        (["อิเนสคือใคร", "วันนี้ฉันเติมน้ำมันก่อนขึ้นภูเขากับใคร"], "วันนี้ฉันเติมน้ำมันก่อนขึ้นภูเขากับใคร"),
        (["อิเนสคือใคร", "เขาทำงานที่พิพิธภัณฑ์ไหนในเมืองเชียงใหม่"], "อิเนสคือใคร เขาทำงานที่พิพิธภัณฑ์ไหนในเมืองเชียงใหม่"),
        (["อิเนสคือใคร", "ปีนี้ เดือนนี้ สัปดาห์นี้ ฉันไปเชียงใหม่กับใคร"], "ปีนี้ เดือนนี้ สัปดาห์นี้ ฉันไปเชียงใหม่กับใคร"),
        (["ホテルはどこ？", "冬はどうですか？"], "ホテルはどこ？ 冬はどうですか？"),
        (["ホテルはどこ？", "兄は六月に自転車を誰に売った？"], "兄は六月に自転車を誰に売った？"),
        (["ホテルはどこ？", "兄はそれぞれの自転車を誰に売った？"], "兄はそれぞれの自転車を誰に売った？"),
        (["Who is Ines?", "What boats did her sister Ana sell?"], "Who is Ines? What boats did her sister Ana sell?"),
        (["What did Ana say last week?", "And in May 2024?"], "What did Ana say ? And in May 2024?"),
        (["Where does she live?"], "Where does she live?"),
        ([">Hello, what may I do?"], "Hello, what may I do?"),
        (["Who is Ines?", "  ", ">She is your sister."], "Who is Ines?"),
        ([], ""),
    ],
)  # fmt: skip
def test_the_query_is_what_was_asked_last_with_what_it_refers_to(texts: list[str], query: str) -> None:
    assert query_of(messages(*texts)) == query


STORY = "It rained all day, and the ferry did not come? " + "We waited in the café for hours. " * 40
TALE = STORY.replace("?", ".").strip()
ASKED = "Please list the sailing boats that Ana sold in Porto."


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (f"{STORY}\n\nWhat boats did Ana sell in Porto? Thanks a lot!", "What boats did Ana sell in Porto?"),
        (f"What boats did Ana sell in Porto?\n{STORY}\nThe end.", "What boats did Ana sell in Porto?"),
        (
            f"Rules:\n{STORY}".replace("?", ".") + "\nIn what town is Ana's boat?\nAnswer:",
            "In what town is Ana's boat?",
        ),
        (f"{STORY}\nAna sold a boat. What did she get for it?", "Ana sold a boat. What did she get for it?"),
        (f"{STORY}\nWhere are you? So?", "We waited in the café for hours. Where are you? So?"),
        *((text, text) for text in (f"{TALE}\nPlease tell me by Friday.", f"{TALE}\nTell me what he did in Porto.")),
        *((f"{STORY}\n{end}", STORY.split("?")[0] + "?") for end in (ASKED, f"{ASKED} Thanks!")),
        (f"{TALE}\n\n{ASKED} Thanks a lot!", ASKED),
        (f"{ASKED}\n{TALE}\nThe end.", ASKED),
        (f"{TALE}\n{ASKED}\nThe end.", f"{TALE}\n{ASKED}\nThe end."),
        *(
            (f"{line}\n{TALE}\n{ASKED}", f"{line}\n{TALE}\n{ASKED}")
            for line in ("where is Ana's boat", "Is Ana's boat sold", "In which town is it", "boats ana porto")
        ),
        (f"The Ferry to Porto\n\n{TALE}\n{ASKED}", ASKED),
        (f"{ASKED[:-1]}\n{TALE}\n{ASKED}", ASKED[:-1]),
        (TALE, TALE),
        (f"\n{STORY}\nWhat boats did Ana sell in Porto?\n", "What boats did Ana sell in Porto?"),
        (STORY[:MOST_ASKING_CHARS], STORY[:MOST_ASKING_CHARS]),
        ("雨が降った。" * 200 + "兄は六月に自転車を誰に売った？", "兄は六月に自転車を誰に売った？"),
        ("Be brief.\nHuman: Who is Ines?\nAI: Your sister.\nHuman: Where is she?", "Who is Ines? Where is she?"),
        (
            f"user: {STORY}\nassistant: Oh!\nuser: What boats did Ana sell in Porto?",
            "What boats did Ana sell in Porto?",
        ),
        (
            f"user: {STORY}\nassistant: Oh!\nuser: What did she get for it?".replace("come?", "come."),
            "We waited in the café for hours. What did she get for it?",
        ),
        (
            "User: Hi!\nAssistant: Hello.\nUser: The ferry to Porto sank.\nWhere is Ines?",
            "The ferry to Porto sank.\nWhere is Ines?",
        ),
        (
            f"user: Hi!\nassistant: {STORY}\n\nWhat boats did Ana sell in Porto?",
            "What boats did Ana sell in Porto?",
        ),
        (f"user: Hi!\nassistant: {TALE}\n\n{ASKED}", ASKED),
        (f"{ASKED}\n\nuser: Hi!\nassistant: {TALE}", ASKED),
        *(
            (text, text)
            for text in (
                "User: Hi!\nAssistant: Hello.\n\nTell me where Ines lives.",
                "Where is Ines?\nUser: Hi!\nAssistant: Hello!",
                "user: ana\nsystem: prod\nWhy does the import fail?",
                "Who is on call?\nUser: ana\nUser: bob",
                "User: ana\nUser: bob",
                "The import fails\n\n**System:** Ubuntu\n**User:** admin",
                *(
                    f"{asked}\n\nUser: Hi!\nAssistant: Hello!"
                    for asked in (ASKED, ASKED[:-1], "where is Ines", "Is Ana in")
                ),
            )
        ),
        ("User: Who is Ines?\nAssistant: Your sister.\n", "Who is Ines?"),
        ("User: Who is Ines?\nAssistant:", "Who is Ines?"),
        ("System: Be brief.\nUser: Who is Ines?", "Who is Ines?"),
        ("Chat with Claude\n\nUser: Who is Ines?\nAssistant: Your sister.", "Who is Ines?"),
        *(
            (f"{user}Who is Ines?\r\n\r\n{reply}Your sister.\r\n\r\n{user}Where is she?", "Who is Ines? Where is she?")
            for user, reply in (
                ("**User:** ", "**Assistant:** "),
                ("**Human**: ", "**Claude**: "),
                ("### User\r\n\r\n", "### Assistant\r\n\r\n"),
                ("## **Human:**\r\n", "## **AI:**\r\n"),
                ("**User**\r\n", "**ChatGPT**\r\n"),
                ("You said:\r\n", "ChatGPT said:\r\n"),
            )
        ),
        *((text, text) for text in ("User\nana\nSystem\nprod", "## User guide\nBoats.\n## System start\nBoats.")),
        ("User: Who is Ines?", "User: Who is Ines?"),
        ("User:\nUser:\n", "User:\nUser:\n"),
        ("User:\nAssistant:\n", "User:\nAssistant:\n"),
    ],
)
def test_a_long_text_and_a_written_out_conversation_ask_what_their_question_asks(text: str, asked: str) -> None:
    assert question_in(text) == asked
    assert question_in(asked) == asked


def test_a_turn_refers_to_the_question_in_a_long_text() -> None:
    asked = "What boats did Ana sell in Porto? And in winter?"
    assert query_of(messages(f"What boats did Ana sell in Porto?\n{STORY}\nThe end.", "And in winter?")) == asked


def test_the_question_in_a_long_last_turn_needs_nothing_that_the_text_around_it_refers_to() -> None:
    asked = "What boats did Ana sell in Porto?"
    assert query_of(messages("Who is Ines?", f"{STORY}\nWhat of it?\n\n{asked}")) == asked


def test_a_query_is_never_too_long() -> None:
    assert query_of(messages("a" * 9_000, "What of it?")) == ("a" * 9_000 + " What of it?")[-MOST_QUERY_CHARS:]


@pytest.mark.parametrize(
    ("text", "speaker", "held"),
    [
        ("I went to Porto.", None, True),
        ("Ann: i went to PORTO", "Ann", True),
        ("[1] Ann: I went to Porto", None, False),
        ("went to Porto", None, True),
        ("Yes: I went", None, True),
        ("I went to Portobello.", None, False),
        ("It rained. I went", None, False),
        ("👍", None, False),
    ],
)
def test_what_a_message_says_is_held(text: str, speaker: str | None, held: bool) -> None:
    """In whole words and not across messages."""
    assert Conversation(messages("It rained.", "Yes: I went to Porto, by boat!")).holds(text, speaker) == held


def test_vowel_signs_tell_words_apart() -> None:
    said = Conversation(messages("कल मेरी लड़की आयी थी।"))
    assert [said.holds(text) for text in ("मेरी लड़की आयी", "मेरा लड़का आया")] == [True, False]


def test_what_a_question_names_is_not_said_yet() -> None:
    asked = Conversation(messages("It was Ben.", "Has Ana or Duarte the keys of the boat?"))
    assert not any(asked.holds(text) for text in ("Duarte.", "The keys."))
    assert all(asked.holds(text) for text in ("It was Ben.", "the keys of the boat"))


def test_messages_may_have_parts_and_calls_of_tools() -> None:
    """As in OpenAI's and Anthropic's formats: a tool's answer is contained, but not part of the user's question."""
    answered = {"type": "tool_result", "content": [{"type": "text", "text": "She lives in Porto."}]}
    talk = [
        {"role": "user", "content": [{"type": "text", "text": "Who is Ines?"}, {"type": "image", "source": {}}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "recall"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "Ines is my sister."},
        {"role": "user", "content": [{"type": "text", "text": "Where does she live?"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c2", "name": "recall", "input": {}}]},
        {"role": "user", "content": [answered]},
    ]
    said = msgspec.convert(talk, list[ChatMessage])
    assert query_of(said) == "Who is Ines? Where does she live?"
    for text in ("Who is Ines?", "Ines is my sister.", "She lives in Porto."):
        assert Conversation(said).holds(text)


def test_what_a_tool_answered_may_be_an_object_and_is_no_question() -> None:
    fetched = {"type": "web_fetch_result", "content": {"type": "document", "text": "Porto lies on the Douro."}}
    talk = [
        {"role": "assistant", "content": "Where does Ines live?"},
        {"role": "assistant", "content": [{"type": "web_fetch_tool_result", "content": fetched}]},
        {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "recall"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "Ines is my sister."},
    ]
    said = msgspec.convert(talk, list[ChatMessage])
    assert query_of(said) == "Where does Ines live?"
    assert Conversation(said).holds("Porto lies on the Douro.")


def test_without_messages_nothing_is_held() -> None:
    assert not Conversation().holds("I went.")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("<memory>Ana &amp; Ben keep the boat.</memory>", "Ana & Ben keep the boat."),
        (r'{"text":"Boats of Ana:\n- rope\t(\"new\")\u0007"}', 'Boats of Ana:\n- rope\t("new")\x07'),
        (r"It is in C:\boats.", r"It is in C:\boats"),
        ("The cafe\u0301 is shut.", "the café is shut"),
        ("The café is shut.", "the cafe\u0301 is shut"),
        ("word " * MOST_SEARCHED_CHARS + "Ann sold her boat.", "Ann sold her boat"),
    ],
)  # fmt: skip
def test_what_is_written_otherwise_is_the_same(message: str, text: str) -> None:
    """In an earlier pack of XML or JSON, by other code points, or at the end of a long message."""
    assert Conversation(messages(message)).holds(text)


def test_old_messages_are_compared_whole() -> None:
    """However long a conversation is, a memory that equals a whole message is contained."""
    said = Conversation(messages("Ann sold a boat.", "word " * (MOST_SEARCHED_CHARS // 5)))
    assert said.holds("Ann sold a boat")
    assert not said.holds("sold a boat")
