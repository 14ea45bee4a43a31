"""Whether a query asks how things are now, or how they were."""

import pytest

from retrieval.text.time.states import AskedState, find_state

QUERIES = {
    AskedState.LATEST: [
        "Where does Maria live now?",
        "Waar woont Maria nu?",
        "what is Gordon's going rate AT THE MOMENT",
        "Who kept the dog in the end?",
        "Wo wohnt Maria jetzt?",
        "Où travaille Ana actuellement ?",
        "¿En qué calle vive Nuria actualmente?",
        "Dove abita adesso?",
        "Onde mora agora?",
        "где Рома живёт сейчас",
        "نجلاء عايشة فين حاليا؟",
        "बबलू की salary अभी क्या है",
        "老爸现在吃的降压药是哪种",
        "哲の腰、いまどうなってる?",
        "지금 어디 살아?",
        "Wer hat den Hund am Ende behalten?",
        "¿Quién ganó al final?",
    ],
    AskedState.EARLIER: [
        "Which car did I fancy before the Ibiza?",
        "Where did they originally want to marry?",
        "Where did Ana live before May?",
        "Where did Maria live before she moved to where she is now?",
        "Where have they lived before?",
        "Wo hat Maria früher gewohnt?",
        "Où habitait Ana avant ?",
        "Dove abitava Ana prima di trasferirsi?",
        "以前、どこに住んでいた?",
        "她以前住在哪里",
    ],
    None: [
        "",
        "Where does Maria live?",
        "Who knows the snowman?",  # no word of its own
        "Did Tom leave before or after Ana came?",
        "What must I do before I deploy it?",
        "What do we have to hand in before the trip?",
        "Was soll ich tun, bevor ich gehe?",
        "Until when can customers log in with passwords?",
        "When at the latest must receipts be handed in?",
        "the sleep current of the probe",
        "Which avant-garde festival does Ana love?",
        "今年の夏",
        "Have we talked about this before?",
        "Did Ana ever live in Porto before?",
        "What did we eat two weeks before my birthday?",
        "What did we eat the summer before last?",
        "¿Qué comimos dos días antes de mi cumpleaños?",
        "Che cosa abbiamo mangiato tre giorni prima della festa?",
        "Qu'avons-nous mangé deux jours avant la fête ?",
        "De ce nu este Ana acasă?",
        "how many days until christmas",
        "the restaurant that i mentioned before",
        "okay now what was the name of that restaurant",
        "Was steht am Ende der Straße?",
        "Das war ein prima Essen, wo war das?",
        "Qu'est-ce que je dois faire avant de partir ?",
        "¿Qué hay al final de la calle?",
        "¿Qué tengo que hacer antes de viajar?",
        "Quando è la prima lezione?",
        "Che cosa c'è alla fine della strada?",
        "o que preciso fazer antes da viagem",
        "Wat moet ik doen voordat ik vertrek?",
        "三天之前我说了什么",
        "你之前说的那家餐厅叫什么",
        "妹の名前は何ですか",
        "誰に会いましたか",
        "We moved the desks now and I am glad of it. " * 5 + "What is next?",
    ],
}


@pytest.mark.parametrize(("query", "asked"), [(query, asked) for asked, some in QUERIES.items() for query in some])
def test_the_state_that_a_query_asks_for(query: str, asked: AskedState | None) -> None:
    assert find_state(query) is asked
