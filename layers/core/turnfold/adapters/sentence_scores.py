"""How much each sentence of a conversation is worth to a summary of it."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from turnfold.adapters.statements import is_lasting_statement, is_question
from turnfold.domain.blobs import without_blobs
from turnfold.domain.identifiers import KEPT_LABEL, extract_identifiers
from turnfold.domain.passages import Passage
from turnfold.domain.sentences import split_sentences

SPEAKER_LABELS = {
    "en": {"user": "User: ", "assistant": "Assistant: ", "tool": "Tool: "},
    "zh": {"user": "用户：", "assistant": "助手：", "tool": "工具："},
    "ja": {"user": "ユーザー：", "assistant": "アシスタント：", "tool": "ツール："},
    "ko": {"user": "사용자: ", "assistant": "어시스턴트: ", "tool": "도구: "},
    "de": {"user": "Nutzer: ", "assistant": "Assistent: ", "tool": "Werkzeug: "},
    "fr": {"user": "Utilisateur : ", "assistant": "Assistant : ", "tool": "Outil : "},
    "es": {"user": "Usuario: ", "assistant": "Asistente: ", "tool": "Herramienta: "},
    "it": {"user": "Utente: ", "assistant": "Assistente: ", "tool": "Strumento: "},
    "pt": {"user": "Usuário: ", "assistant": "Assistente: ", "tool": "Ferramenta: "},
    "nl": {"user": "Gebruiker: ", "assistant": "Assistent: ", "tool": "Hulpmiddel: "},
    "ru": {"user": "Пользователь: ", "assistant": "Ассистент: ", "tool": "Инструмент: "},
}
"""Who said it, in the language of the conversation. A folded summary is read back by them."""

_SPEAKER_OF_LABEL = {
    label.strip(): speaker
    for labels in SPEAKER_LABELS.values()
    for speaker, label in labels.items()
}
_LABEL = re.compile(
    "|".join(sorted(map(re.escape, _SPEAKER_OF_LABEL), key=len, reverse=True)) + r"\s*"
)

# Controls and lone surrogates are no text; tabs and line ends are kept for the sentence splitter.
_INVISIBLE = re.compile(r"[\x00-\x08\x0e-\x1b\x7f\ud800-\udfff]")
_MARKERS = re.compile(r"\A(?:#{1,6}\s+|[-*+•·‣◦]\s+|\(?\d{1,3}[.)](?=\s)\s*|>\s*|[-–—]{2,}\s*)+")
_EMPHASIS = re.compile(r"\*\*|__(?=\w)|(?<=\w)__")
_CODE_FENCE = ("```", "~~~")

# Scripts without blanks between words are compared by pairs of characters.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_TERM = re.compile(r"[^\W_]{2,40}")
_STEM = 7
_STOP_WORDS = frozenset(
    "the and of to in is it that for on with as are was be this you have has had not but or an at by from they we he she"
    " his her its our your their my me him them us i am do does did can could will would should may might must shall if"
    " so then than there here what which who whom when where why how all any some no nor too very just also more most"
    " other such only own same into over under again once about up down out off because while during before after above"
    " below between both each few these those been being having doing let get got go going make made like need want"
    " know think see good great sure thanks thank please yes okay well really much many one two first new way use using"
    " help it's i'm i've don't that's you're let's here's can't i'll i'd we're they're there's what's"
    " der die das und ist nicht ich ein eine mit auf für sich auch wird dem den zu dass sie wir es im von als oder aber"
    " le la les des et est une un dans pas vous nous qui sur avec ce mais sont je du cette pour plus leur ont il elle au"
    " el los las del y pero que en para por con se su lo como más al o di che è per non della dei do da em os não uma"
    " het een van dat niet ook maar voor zijn de".split()
)

_SMALL_TALK = re.compile(
    r"\A\W*(?:hi|hello|hey|thanks?|thank\s+you|great|sure|ok(?:ay)?|cool|wow|nice|awesome|perfect|absolutely|certainly|of\s+course"
    r"|you['’]?re\s+(?:very\s+)?welcome|welcome|bye|goodbye|see\s+you|take\s+care|no\s+problem|good\s+(?:luck|morning|night|idea|point|question)"
    r"|sounds\s+(?:good|great|real)|glad|happy\s+to|i\s+hope|hope\s+(?:this|that|you|it)|let\s+me\s+know|feel\s+free|please\s+let\s+me|if\s+you\s+(?:have|need)\s+any"
    r"|is\s+there\s+anything|enjoy|congrat\w*|that['’]?s\s+(?:great|awesome|cool|amazing|so|really|wonderful)|haha|lol|how\s+are\s+you|how\s+have\s+you"
    r"|danke|gerne|hallo|natürlich|merci|bonjour|bien\s+sûr|d['’]accord|gracias|hola|claro|por\s+supuesto|grazie|ciao|obrigad[oa]|olá|claro"
    r"|你好|您好|谢谢|感谢|不客气|好的|当然|没问题|太好了|再见|嗯|哈哈|加油|很高兴|希望|祝|是的|是啊|没错|对的|ありがとう|こんにちは|はい|감사|안녕|спасибо|привет)(?![\w]{3})",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"\b(?:let\s+me\s+know|feel\s+free|would\s+you\s+like|if\s+you\s+(?:have|need|would\s+like|want)\s+(?:any|more|further|me)|i['’]?m\s+here\s+to\s+help"
    r"|hope\s+this\s+helps|anything\s+else|happy\s+(?:to\s+help|coding)|assist\s+you\s+(?:today|further|with\s+anything))\b"
    r"|有什么(?:可以|能)|随时(?:告诉|联系|问)|需要我|如果你(?:需要|想)|希望(?:这|对你)|お手伝い|お気軽に",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:decid\w+|agreed?|confirm\w*|chose|choos\w+|settled|let['’]?s\s+(?:go\s+with|use|do)|go\s+with|went\s+with|i['’]?ll\s+(?:take|go|use|have)"
    r"|will\s+use|switched|changed?\s+(?:to|from|the)|updated?|fixed|resolved|solved|completed?|finished|booked|scheduled|postponed|moved\s+to|cancel\w*|due"
    r"|deadline|because|instead|root\s+cause|turned\s+out|as\s+a\s+result|conclu\w+|found\s+that|entschied\w*|beschlossen|décid\w+|decid\w+|confirmad[oa])\b"
    r"|决定|确认|确定|选择|改为|改成|改到|定在|约好|预订|完成|解决|修复|原因|因为|所以|结果|结论|已经|計画|決め|確認|予約",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(
    r"\b(?:i|i['’](?:m|ve|d|ll)|my|we|our|we['’](?:re|ve|ll)|ich|mein\w*|je|j['’]|mon|ma|mi|mis|meu|minha|io|mio)\b|我|私|僕|저는|제가|\bя\b|\bмой",
    re.IGNORECASE,
)
_MACHINE_SIGN = re.compile(r"[{}\[\]<>=|\\_\"/;$]")
_END = re.compile(r"[.!?…。！？；;।॥؟۔][\"'”’»)\]」』）】]*\Z")

_SPEAKER_WEIGHT = {"user": 1.0, "summary": 1.0, "assistant": 0.8, "tool": 0.45}
_MOST_MACHINE_SIGNS = 0.08
_LEAST_WORDS = 4
_LONG = 320
_WIDE_LETTER = 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may go into a summary.

    `order` is its place in the source, `passage` the number of its passage, `text` how it would be
    shown: without list markers and emphasis. `score` is its worth before anything is chosen.
    """

    order: int
    passage: int
    speaker: str
    text: str
    terms: frozenset[str]
    identifiers: tuple[str, ...]
    score: float


@dataclass(frozen=True, slots=True)
class _Piece:
    passage: int
    speaker: str
    place: int
    of: int
    raw: str
    text: str
    terms: frozenset[str]


def visible_text(text: str) -> str:
    """The text without controls, lone surrogates and encoded bytes."""
    return without_blobs(_INVISIBLE.sub(" ", text))


def _terms(text: str) -> frozenset[str]:
    lower = text.lower()
    found = {
        word[:_STEM]
        for word in _TERM.findall(_UNSPACED.sub(" ", lower))
        if word not in _STOP_WORDS
    }
    for run in _UNSPACED.findall(lower):
        found.update(run[at : at + 2] for at in range(len(run) - 1))
    return frozenset(found)


def _shown(sentence: str) -> str:
    text = _EMPHASIS.sub("", sentence)
    text = _MARKERS.sub("", text).strip()
    return " ".join(text.split())


def _spoken_lines(passage: Passage) -> Iterator[tuple[str, str]]:
    """The speaker and the text of each part; an earlier summary names its speakers itself."""
    if passage.speaker != "summary":
        yield passage.speaker, visible_text(passage.text)
        return
    speaker = "summary"
    for line in visible_text(passage.text).split("\n"):
        if line.startswith(KEPT_LABEL):
            continue
        label = _LABEL.match(line)
        if label:
            speaker = _SPEAKER_OF_LABEL[label.group().strip()]
            yield speaker, line[label.end() :]
        else:
            yield speaker, line


def _pieces(passages: Sequence[Passage]) -> Iterator[_Piece]:
    for number, passage in enumerate(passages):
        for speaker, text in _spoken_lines(passage):
            sentences = split_sentences(text)
            for place, sentence in enumerate(sentences):
                shown = _shown(sentence)
                if any(map(str.isalnum, shown)) or len(sentences) == 1:
                    yield _Piece(
                        number, speaker, place, len(sentences), sentence, shown or sentence, _terms(shown)
                    )


def _weights(pieces: Sequence[_Piece]) -> dict[str, float]:
    frequencies: Counter[str] = Counter()
    for piece in pieces:
        frequencies.update(piece.terms)
    total = len(pieces) + 1
    # Words of a single sentence say nothing about the whole, words of nearly all neither.
    return {
        term: math.log1p(n - 1 + 0.3) * math.log(total / n) for term, n in frequencies.items()
    }


def _length(text: str) -> float:
    """Characters, where a character of a dense script counts double."""
    return len(text) + (_WIDE_LETTER - 1) * sum(map(len, _UNSPACED.findall(text)))


def _manner(piece: _Piece) -> float:
    """A factor for what kind of sentence it is, whatever it is about."""
    text = piece.text
    factor = _SPEAKER_WEIGHT.get(piece.speaker, 1.0)
    if piece.raw.startswith(_CODE_FENCE):
        return factor * 0.05
    if len(_MACHINE_SIGN.findall(text)) > _MOST_MACHINE_SIGNS * len(text):
        factor *= 0.3
    length = _length(text)
    if is_question(text):
        # What the user asked for opens the matter; what the assistant asks is answered or not.
        factor *= 0.85 if piece.speaker == "user" else 0.5
    if _SMALL_TALK.match(text):
        factor *= 0.35 if length < 60 else 0.75
    if piece.speaker != "user" and _OFFER.search(text):
        factor *= 0.25
    if piece.raw.lstrip().startswith("#") or text.endswith((":", "：")):
        factor *= 0.35
    elif not _END.search(text):
        factor *= 0.75
    if length < 25 or len(piece.terms) < _LEAST_WORDS - 2:
        factor *= 0.6
    if length > _LONG:
        factor *= (_LONG / length) ** 0.5
    return factor


def _emphasis(piece: _Piece, identifiers: Sequence[str]) -> float:
    """What a sentence is worth beyond its words."""
    extra = 0.12 * min(3, len(identifiers))
    if piece.speaker in ("user", "summary"):
        if is_lasting_statement(piece.text):
            extra += 0.6
        elif _FIRST_PERSON.search(piece.text):
            extra += 0.15
    if _DECISION.search(piece.text):
        extra += 0.2
    if piece.place == 0:
        extra += 0.2
    elif piece.place == piece.of - 1 and piece.of > 2:
        extra += 0.05
    return extra


def score_sentences(passages: Sequence[Passage]) -> list[Candidate]:
    """Every sentence of the passages in order, scored.

    High: words that the whole is about, identifiers, the first sentence of a passage, what the user
    states and decides. Low: small talk, offers of help, headings, questions of the assistant, tool
    output and program text. The work is linear in the length of the source.
    """
    pieces = list(_pieces(passages))
    weights = _weights(pieces)
    contents = [
        sum(weights[term] for term in piece.terms) / (len(piece.terms) + 4) ** 0.6 for piece in pieces
    ]
    most = max(contents, default=0.0) or 1.0
    candidates = []
    for order, (piece, content) in enumerate(zip(pieces, contents, strict=True)):
        identifiers = extract_identifiers(piece.text)
        score = (0.3 + content / most + _emphasis(piece, identifiers)) * _manner(piece)
        candidates.append(
            Candidate(order, piece.passage, piece.speaker, piece.text, piece.terms, identifiers, score)
        )
    return candidates
