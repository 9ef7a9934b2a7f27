"""Refusals in words: a model that will not do the task says so, in the language it was asked in."""

import re

MAX_REFUSAL_CHARACTERS = 600
"""A refusal is short. A longer text that opens with an apology tells about one."""

_OPENING = 200
"""Both the apology and what cannot be done stand at the very beginning."""

_CANNOT = (
    r"(?:can\s?not|can['’]t|could\s?n['’]?t|won['’]t|will\s+not"
    r"|['’]m\s+(?:unable|not)|am\s+(?:unable|not))"
)
_TASKS = (
    r"(?:assist|help|comply|provide|summari[sz]e|fulfil|process|answer|engage|produce|generate"
    r"|create|write|complete|do\s+(?:that|this|so))"
)
_REFUSALS = (
    # English. A summary speaks of "the assistant", so an "I" that cannot is the model itself.
    r"(?:i(?:['’]?m|\s+am)?\s+(?:\w+\s+){0,2})?"
    r"(?:sorry|afraid|apologi[sz]e|apologies|unfortunately)\b"
    rf".{{0,60}}\bi\s*{_CANNOT}\b"
    r"|i(?:['’]?m|\s+am)\s+(?:\w+\s+)?(?:unable|not\s+able|not\s+comfortable|not\s+allowed)\b"
    r"|i\s+(?:must|have\s+to|need\s+to)\s+(?:\w+\s+)?(?:decline|refuse)\b"
    rf"|i\s+(?:{_CANNOT}|do\s+not|don['’]t)\s+(?:\w+\s+){{0,3}}{_TASKS}\b"
    r"|as\s+an\s+ai\b"
    # German, Dutch
    r"|(?:es\s+)?tut\s+mir\s+(?:sehr\s+)?leid\b.{0,60}\b(?:kann|darf|möchte|werde)\b"
    r"|(?:leider\s+)?(?:kann|darf)\s+ich\b.{0,60}\bnicht\b"
    r"|ich\s+(?:kann|darf)\b.{0,60}\bnicht\s+(?:helfen|beantworten|zusammenfassen|nachkommen)"
    r"|(?:het\s+)?spijt\s+me\b.{0,60}\bkan\b"
    # Spanish, Portuguese, Italian, French
    r"|lo\s+siento\b.{0,60}\bno\s+(?:puedo|me\s+es\s+posible)"
    r"|(?:lamento|desculpe|sinto\s+muito)\b.{0,60}\bn[oã]o?\s+(?:puedo|posso|consigo)"
    r"|mi\s+dispiace\b.{0,60}\bnon\s+(?:posso|riesco)"
    r"|(?:je\s+suis\s+)?(?:désolée?|navrée?)\b.{0,60}\bje\s+ne\s+(?:peux|suis|pourrai)"
    # Russian
    r"|(?:извините|простите|к\s+сожалению|мне\s+жаль).{0,60}\bне\s+(?:могу|смогу)"
    r"|я\s+не\s+могу\s+(?:помочь|выполнить|ответить|обсуждать)"
    # Chinese, Japanese, Korean
    r"|(?:很|非常|十分)?(?:抱歉|对不起|對不起|遗憾|遺憾).{0,20}我.{0,8}"
    r"(?:无法|無法|不能|没办法|沒辦法)"
    r"|(?:我|作为.{0,12}(?:ai|人工智能|语言模型).{0,6})(?:无法|無法|不能)"
    r"(?:协助|協助|提供|满足|滿足|回答|处理|處理|总结|總結|完成|帮助|幫助)"
    r"|申し訳(?:ございません|ありません|ない).{0,60}(?:できません|できかねます|いたしかねます)"
    r"|죄송(?:합니다|하지만|해요).{0,60}(?:수\s*없|어렵)"
    # Arabic, Hindi
    r"|(?:عذر[اًا]{1,2}|آسف|أعتذر|نعتذر).{0,60}لا\s+(?:أستطيع|يمكنني)"
    r"|(?:क्षमा|माफ़|माफ).{0,60}(?:नहीं\s+कर\s+सक|असमर्थ)"
)
_PATTERN = re.compile(_REFUSALS, re.IGNORECASE | re.DOTALL)
_LEADING = " \t\n\"'“”‘’*_>-"


def is_refusal(text: str) -> bool:
    """Whether a short text opens as a refusal to do what was asked.

    Only the beginning of a short text counts, so a conversation about refusals is not misjudged.
    """
    text = text.strip()
    if len(text) > MAX_REFUSAL_CHARACTERS:
        return False
    return _PATTERN.match(text.lstrip(_LEADING)[:_OPENING]) is not None
