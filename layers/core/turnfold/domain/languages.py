"""Scripts and languages, told apart well enough to notice an answer in the wrong one."""

import re
from collections import Counter

_RANGES: dict[str, str] = {
    "latin": "A-Za-zªºÀ-ÖØ-öø-ʯḀ-ỿＡ-Ｚａ-ｚ",
    "han": "々〆\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "kana": "ぁ-ゖァ-ヺー-ヿㇰ-ㇿｦ-ﾝ",
    "hangul": "ᄀ-ᇿ㄰-㆏가-힣",
    "cyrillic": "Ѐ-ԯᲀ-ᲈ",
    "greek": "Ͱ-Ͽἀ-῿",
    "arabic": "\u0620-\u064a\u066e-\u06d3\u06d5\u06ee\u06ef\u06fa-\u06ff\u0750-\u077f\u08a0-\u08c9"
    "\ufb50-\ufdff\ufe70-\ufefc",
    "hebrew": "א-ת",
    "devanagari": "\u0900-\u0963\u0970-\u097f",
    "bengali": "ঀ-৿",
    "gurmukhi": "਀-੿",
    "gujarati": "઀-૿",
    "tamil": "஀-௿",
    "telugu": "ఀ-౿",
    "kannada": "ಀ-೿",
    "malayalam": "ഀ-ൿ",
    "sinhala": "඀-෿",
    "thai": "ก-๎",
    "lao": "ກ-໎",
    "tibetan": "ཀ-ྼ",
    "burmese": "က-႟",
    "georgian": "Ⴀ-ჿ",
    "armenian": "Ա-֏",
    "ethiopic": "ሀ-ፚ",
    "khmer": "ក-៓",
}
_SCRIPTS = {script: re.compile(f"[{ranges}]") for script, ranges in _RANGES.items()}
# One letter of these says about as much as a short word elsewhere.
_DENSE = {"han": 1.0, "kana": 1.0, "hangul": 1.0}
_ALPHABET = 0.3

_NOT_LANGUAGE = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]{1,200}+`|(?<!\w)[A-Za-z][A-Za-z0-9+.-]{1,12}+://[!-~]{1,2000}+"
    r"|(?<![\w.%+-])[\w.%+-]{1,64}+@[\w.-]{1,200}+",
    re.DOTALL,
)

# Function words that belong to one of the languages only, so one vote is one voice.
_WORDS = {
    "en": "the and of is that for with are this you it have not from they which would there their"
    " been has will"
    " what when your can his her our should about could my be by an how please i'm it's don't i",
    "de": "der das und ist nicht ich ein mit auf für sich auch wird eine dem den zu dass sie wir"
    " sind einen einer von im"
    " als oder aber wenn noch nur bei nach wie kann mir mein meine ihr haben hat zum zur",
    "fr": "les est dans pas vous nous qui sur avec ce mais sont une je des du cette pour plus"
    " leur ont il elle au aux"
    " être été votre mon ma c'est j'ai même où et",
    "es": "el los las y pero muy está tengo para una más su por como del al fue hay este esta son"
    " cuando yo con usted"
    " ustedes puede también qué quiero mis",
    "it": "il di che è per non sono gli della nel anche ho questo questa alla delle dei ma più"
    " come lo con si ci"
    " perché mi mio mia io hai una",
    "pt": "não uma você os em com do da ao são também eu mas meu minha por um foi mais está ele"
    " isso pela pelo às"
    " quando seu sua para dos das",
    "nl": "het een van ik niet dat en voor zijn ook maar op aan wordt je naar bij uit kan heb"
    " heeft deze wij mijn"
    " moet als nog wat geen te",
}
_SHARED = Counter(word for words in _WORDS.values() for word in set(words.split()))
_LANGUAGE_OF_WORD = {
    word: language
    for language, words in _WORDS.items()
    for word in words.split()
    if _SHARED[word] == 1
}
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")

_LEAST_LETTERS = 20
_LEAST_DENSE = 12
_LEAST_VOTES = 3
_LEAST_VOTE_SHARE = 0.08
_CLEAR_LEAD = 2.0
_SUBSTANTIAL = 0.15
_MOST = 0.5
_KANA_SHARE = 0.1


def _prose(text: str) -> str:
    return _NOT_LANGUAGE.sub(" ", text)


def _weights(prose: str) -> Counter[str]:
    letters = Counter(prose)
    # A text has few different characters, so its length hardly matters from here on.
    alphabet = "".join(letters)
    weights: Counter[str] = Counter()
    for script, pattern in _SCRIPTS.items():
        found = sum(letters[c] for c in pattern.findall(alphabet))
        if found:
            weights[script] = found
    return weights


def _japanese_as_kana(letters: Counter[str]) -> Counter[str]:
    """Japanese writes Han and kana side by side; enough kana makes both of them kana."""
    both = letters["han"] + letters["kana"]
    if both and letters["kana"] >= _KANA_SHARE * both:
        letters = Counter(letters)
        letters["kana"] = both
        del letters["han"]
    return letters


def _shares(letters: Counter[str]) -> dict[str, float]:
    weighed = {script: n * _DENSE.get(script, _ALPHABET) for script, n in letters.items()}
    total = sum(weighed.values())
    return {script: weight / total for script, weight in weighed.items()} if total else {}


def dominant_script(text: str) -> str | None:
    """The script that most of the text is written in; None where there are no letters.

    Code, addresses and digits do not count. Japanese is "kana" also where Han characters prevail,
    as long as there is a tenth of kana.
    """
    shares = _shares(_japanese_as_kana(_weights(_prose(text))))
    return max(shares, key=lambda script: shares[script]) if shares else None


def _votes(prose: str) -> tuple[Counter[str], int]:
    words = Counter(match.group().lower().replace("’", "'") for match in _WORD.finditer(prose))
    votes: Counter[str] = Counter()
    for word, times in words.items():
        language = _LANGUAGE_OF_WORD.get(word)
        if language is not None:
            votes[language] += times
    return votes, sum(words.values())


def _latin_language(prose: str) -> str | None:
    votes, words = _votes(prose)
    ranking = votes.most_common(2)
    if not ranking:
        return None
    best, most = ranking[0]
    second = ranking[1][1] if len(ranking) > 1 else 0
    clear = most >= _CLEAR_LEAD * second and most >= _LEAST_VOTE_SHARE * words
    return best if most >= _LEAST_VOTES and clear else None


_LANGUAGE_OF_SCRIPT = {"han": "zh", "kana": "ja", "hangul": "ko", "cyrillic": "ru", "greek": "el"}


def language_of(text: str) -> str | None:
    """The language as a two-letter code where it is plain, otherwise None.

    Told apart are en de fr es it pt nl, and zh ja ko ru el by their scripts.
    """
    prose = _prose(text)
    script = dominant_script(text)
    if script == "latin":
        return _latin_language(prose)
    return _LANGUAGE_OF_SCRIPT.get(script) if script else None


def _says_enough(letters: Counter[str]) -> bool:
    dense = sum(letters[script] for script in _DENSE)
    return dense >= _LEAST_DENSE or sum(letters.values()) - dense >= _LEAST_LETTERS


def _latin_is_shared(source: str, answer: str, source_share: float) -> bool:
    language = _latin_language(answer)
    votes, words = _votes(source)
    if language is None or not words:
        return source_share >= _SUBSTANTIAL
    # Borrowed names and terms are Latin too; sentences have function words.
    if source_share < _SUBSTANTIAL or (source_share < _MOST and votes[language] < _LEAST_VOTES):
        return False
    if _latin_language(source) in (None, language):
        return True
    # A stray word or two is no second language.
    return votes[language] >= max(_LEAST_VOTES, _SUBSTANTIAL * sum(votes.values()))


def same_language(source: str, answer: str) -> bool:
    """False only if the answer is plainly in a language that its source hardly uses.

    Short, mixed and undecided texts count as the same. A source in several languages may be
    answered in each of them that holds a substantial share of it.
    """
    source_prose, answer_prose = _prose(source), _prose(answer)
    source_letters = _japanese_as_kana(_weights(source_prose))
    answer_letters = _japanese_as_kana(_weights(answer_prose))
    if not _says_enough(source_letters) or not _says_enough(answer_letters):
        return True
    answer_shares = _shares(answer_letters)
    script = max(answer_shares, key=lambda name: answer_shares[name])
    source_share = _shares(source_letters).get(script, 0.0)
    if script == "latin":
        return _latin_is_shared(source_prose, answer_prose, source_share)
    return source_share >= _SUBSTANTIAL
