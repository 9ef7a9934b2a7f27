"""Facts of which a person has one at a time: a new one takes the place of the old.

Only for pins that the rules find. A model names what its facts replace; the rules see one sentence
at a time, and without this "I live in Lyon" would stay beside "I live in Oslo".
"""

import re

_SLOTS = {
    "name": (
        r"\bmy (?:full |first )?name is\b|\bplease call me\b|\bmein name ist\b|\bich heiße\b"
        r"|\bje m'appelle\b|\bmon nom est\b|\bme llamo\b|\bmi nombre es\b|\bmi chiamo\b"
        r"|\bmeu nome é\b|我叫|我的名字|私の名前|と申します|меня зовут|제 이름은"
    ),
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


_WORDS_OF_ONE_FACT = 6
_CHARACTERS_OF_ONE_FACT = 16
_SECOND_FACT = re.compile(
    r"[;；，、。!?！？](?=.)|\.\s|\b(?:and|but|und|aber|et|mais|y|pero|e|ma|mas|и|а|но)\b|そして|그리고",
    re.IGNORECASE,
)
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


def states_nothing_else(text: str) -> bool:
    """Whether a sentence that states one of these facts plainly says no more than it.

    Only such a one may be given up for a newer sentence: "my name is Ana and I am allergic to
    walnuts" has to outlive a new name.
    """
    rest = next((match for pattern in _PATTERNS.values() if (match := pattern.search(text))), None)
    if rest is None:
        return False
    told = text[rest.end() :].strip()
    if _SECOND_FACT.search(text[: rest.start()] + " " + told.rstrip(".。!！")):
        return False
    if _UNSPACED.search(told):
        return len(told) <= _CHARACTERS_OF_ONE_FACT
    return len(told.split()) <= _WORDS_OF_ONE_FACT
