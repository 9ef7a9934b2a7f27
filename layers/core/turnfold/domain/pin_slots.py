"""Facts of which a person has one at a time: a new one takes the place of the old.

Only for pins that the rules find. A model names what its facts replace; the rules see one sentence
at a time, and without this "I live in Lyon" would stay beside "I live in Oslo".
"""

import re

_SLOTS = {
    "name": (
        r"\bmy (?:full |first )?name is\b|\bmein name ist\b|\bich heiße\b"
        r"|\bje m'appelle\b|\bmon nom est\b|\bme llamo\b|\bmi nombre es\b|\bmi chiamo\b"
        r"|\bmeu nome é\b|我叫|我的名字|私の名前|と申します|меня зовут|제 이름은"
    ),
    "form of address": r"\bplease call me\b",
    "home": (
        r"\bi (?:now |currently )?live in\b|\bi(?:'ve| have)? moved to\b"
        r"|\bich wohne (?:jetzt )?in\b|\bj'habite\b|\bvivo en\b|\babito a\b|\bmoro em\b|我(?:现在"
        r"|現在)?住在|我搬到|に住んで"
    ),
    "age": (
        r"\bi(?:'m| am) \d{1,3} years old\b|\bich bin \d{1,3} jahre\b|\bj'ai \d{1,3} ans\b"
        r"|\btengo \d{1,3} años\b|我今年\s?\d{1,3}\s?岁"
    ),
    "budget": (
        r"\b(?:my|our|the) (?:total |new )?budget is\b"
        r"|\b(?:mein|unser|das) budget (?:ist|beträgt)\b|\b(?:mon|notre|le) budget est\b|\b(?:mi"
        r"|nuestro|el) presupuesto es\b|预算是|預算是"
    ),
    "deadline": (
        r"\b(?:my|our|the) (?:new )?deadline is\b|\bdie frist ist\b|\bla date limite est\b"
        r"|截止日期是"
    ),
}
_PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _SLOTS.items()}


def pin_slot(text: str) -> str | None:
    """Which of these facts a sentence states; None for any other sentence."""
    return next((name for name, pattern in _PATTERNS.items() if pattern.search(text)), None)


# Before the fact. A word more ("酒店预算是", "my sister says my name is") may make it another fact.
_BEFORE = re.compile(
    r"(?:\W|\b(?:(?:remember|note|do not forget|don't forget) that|remember|note|please|hi|hello"
    r"|hey|so|and|also|well|ok|okay|yes|no|sorry|actually|now|update|correction|by the way|btw"
    r"|bitte|hallo|bonjour|hola|ciao|olá)\b"
    r"|你好|您好|请记住|請記住|记住|記住|我的?|现在|現在|新的?|总|私は|僕は|わたしは)*+",
    re.IGNORECASE,
)
_CAPITAL = "[A-ZÀ-ÖØ-ÞĆČĐŁŃŐŘŚŞŠŰŹŻŽĞİА-ЯЁ]"
_NAME_WORD = rf"{_CAPITAL}[A-Za-zÀ-ɏА-яЁё'’-]*"
_NAME = rf"{_NAME_WORD}(?: (?:(?:de|da|do|del|van|von|der|la|bin|al) ){{0,2}}{_NAME_WORD}){{0,3}}"
# Up to the first character that makes a name part of something longer.
_UNSPACED_NAME = r"(?:(?![的不没對对和跟是在])[\u30a0-\u30ff\u3400-\u9fff가-힣·]){1,6}"
_WHEN = r"(?: (?:now|today|again|last (?:week|month|year)|this (?:week|month|year)|jetzt))?"
_AMOUNT = (
    r"(?i:(?:(?:now|about|around|roughly|up to|at most|[€$£¥₩₹]) ?)*\d[\d.,']*"
    r" ?(?:(?:k|m|thousand|million|[万千百])\b)?"
    r" ?(?:[€$£¥₩₹%元块円]|euros?|dollars?|pounds?|francs?|yen|yuan|eur|usd|gbp|chf"
    r"|人民币|欧元|美元)?"
    r"(?: (?:in total|total|now))?)"
)
_DATE = (
    r"(?:(?:now|on|the|next|this|by|at|am|le|el) )*"
    rf"(?:{_NAME_WORD}|\d[\w.:/-]*)(?:,? (?:{_NAME_WORD}|\d[\w.:/-]*|at|noon|midnight))*"
    r"|[\d年月日号號]{2,12}"
)
# All that may come behind the words of a slot: a value, and nothing that limits it or adds to it.
_VALUES = {
    name: re.compile(rf"\s*(?:{value})\s*[.!。！]*\s*")
    for name, value in {
        "name": rf"{_NAME}|は?{_UNSPACED_NAME}(?:です|といいます|입니다|이에요|예요)?",
        "form of address": _NAME,
        "home": (
            rf"(?:(?:à|en|au|aux|a|em|no|na|in) )?{_NAME}(?:, {_NAME})?{_WHEN}"
            rf"|{_UNSPACED_NAME}了?"
        ),
        "age": _WHEN,
        "budget": _AMOUNT,
        "deadline": _DATE,
    }.items()
}
# Where the value comes first, and the words of the slot behind it.
_VALUE_FIRST = re.compile(
    r"(?:(?:私|僕|わたし)は)?[^\sはがもの、。]{1,12}"
    r"(?:に住んで(?:います|いる|おります)|と申します)[。！]*"
)


def states_nothing_else(text: str) -> bool:
    """Whether a sentence that states one of these facts plainly says no more than it.

    Only such a one may be given up for a newer sentence, and only such a one takes the place of an
    older: "my name is Ana and I am allergic to walnuts" has to outlive a new name, and "my budget
    is 200 euros for food" is no news of "my budget is 500 euros for hotels". What is not
    recognised stands beside the other.
    """
    if _VALUE_FIRST.fullmatch(text.strip()):
        return True
    for name, pattern in _PATTERNS.items():
        found = pattern.search(text)
        if found:
            plain = _BEFORE.fullmatch(text[: found.start()])
            return bool(plain and _VALUES[name].fullmatch(text[found.end() :]))
    return False
