import pytest

from turnfold.domain.refusals import MAX_REFUSAL_CHARACTERS, is_refusal

REFUSALS = [
    "I'm sorry, but I can't assist with that request.",
    "I’m sorry, I can’t help with that.",
    "I am very sorry, but I cannot do that.",
    "Sorry, I can't summarise this conversation.",
    "I apologize, but I'm unable to process this content.",
    "Unfortunately, I cannot provide a summary.",
    "I'm afraid I can't do that.",
    "I cannot assist with that.",
    "I can't help you with this request.",
    "I can't produce this summary as requested.",
    "I cannot write that.",
    "I won't be able to help with that, since I will not summarise it.",
    "I must decline.",
    "I'm unable to help.",
    "I am not able to do so.",
    "As an AI language model, I have no opinions on this.",
    "\"I'm sorry, but I can't assist with that.\"",
    "**I cannot comply with this request.**",
    "Es tut mir leid, aber dabei kann ich nicht helfen.",
    "Leider kann ich diese Anfrage nicht beantworten.",
    "Lo siento, pero no puedo ayudar con eso.",
    "Je suis désolé, mais je ne peux pas vous aider.",
    "Mi dispiace, ma non posso aiutarti.",
    "Desculpe, mas não posso ajudar com isso.",
    "Извините, но я не могу помочь с этим.",
    "К сожалению, я не могу выполнить этот запрос.",
    "很抱歉，我无法协助处理这个请求。",
    "对不起，我不能提供相关内容。",
    "抱歉，作为AI语言模型，我无法回答。",
    "我无法提供该内容的摘要。",
    "申し訳ありませんが、そのリクエストにはお応えできません。",
    "죄송하지만 도와드릴 수 없습니다.",
    "عذراً، لا أستطيع المساعدة في ذلك.",
    "क्षमा करें, मैं इसमें मदद नहीं कर सकता।",
]

SUMMARIES = [
    "The user asked for medical advice; the assistant said that it cannot help with that.",
    "The assistant refused: \"I'm sorry, but I can't assist with that request.\"",
    "The customer is sorry for the delay and cannot come on Monday.",
    "Sorry was the first word of the poem that they discussed.",
    "I'm sorry to hear that the lantern broke, said the assistant.",
    "Unfortunately the order was late; the user can collect it on Friday.",
    "The user cannot eat nuts.",
    "Der Nutzer kann am Montag nicht kommen.",
    "用户为迟到道歉，并要求改期。",
    "用户表示无法参加周三的会议。",
    "抱歉的邮件已经发送给客户。",
    "El usuario no puede venir el lunes.",
    "",
    "   ",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals_are_known(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize("text", SUMMARIES)
def test_talk_about_refusals_is_none(text: str) -> None:
    assert not is_refusal(text)


def test_a_long_text_is_no_refusal() -> None:
    assert not is_refusal(REFUSALS[0] + " The talk went on." * MAX_REFUSAL_CHARACTERS)


@pytest.mark.parametrize("piece", ["sorry ", "i can ", "抱歉我", "i am so so ", "'", "простите "])
@pytest.mark.timeout(60)  # seconds; a pattern that backtracks would take hours
def test_no_text_takes_long(piece: str) -> None:
    for _ in range(100):
        is_refusal(piece * 500)
        is_refusal(piece * 50)
