"""What must not become a pin although someone proposed it."""

import re
import unicodedata

from turnfold.domain.phrases import Phrases

MAX_PROPOSED_CHARACTERS = 400
"""A longer text is not one fact."""

# Longer texts are quarantined for their length; this much of them is searched for a graver reason.
_SEARCHED = 20_000

_ANY = r"[^.!?\n]{0,40}?"
_ANY_CJK = r"[^。！？\n]{0,12}?"
_LINE_START = r"(?:\A|\n)[\t\x20]{0,8}"
_RULES = (
    r"(?:instructions?|prompts?|rules?|guidelines?|polic(?:y|ies)|directives?|context|training)"
)
_GIVEN = r"(?:previous|prior|above|earlier|preceding|existing|original|all|any|your|the|system)"
_PERSON = r"(?:an?|the|in|acting|called|dan|free|no longer|my)\b"

_OVERRULING = (
    (
        rf"\b(?:ignore|disregard|forget|override|bypass|overrule|discard)\b{_ANY}\b{_GIVEN}\b{_ANY}"
        rf"\b{_RULES}\b"
    ),
    (
        r"\b(?:ignore|disregard|forget) (?:everything|all(?: of)?(?: (?:that|this|the))?) "
        r"(?:above|before|prior|previous)"
    ),
    r"\b(?:ignore|disregard) (?:the|all) (?:above|previous)\b",
    # German, French, Spanish, Portuguese, Italian, Dutch, Russian
    (
        rf"\b(?:ignorier|vergiss|missacht)\w{{0,4}}\b{_ANY}\b(?:anweisung|regel|vorgabe|instruktion"
        rf"|befehl)"
    ),
    rf"\b(?:ignore[zr]?|oublie[zr]?)\b{_ANY}\b(?:instructions|consignes|règles|directives)\b",
    (
        rf"\b(?:ignor[ae]r?|olvid[ae]r?|dimentica|esque[cç]\w{{1,4}})\b{_ANY}"
        r"\b(?:instrucci[oó]n(?:es)?|instruções|istruzioni|reglas|regras|regole|indicaciones)\b"
    ),
    rf"\b(?:negeer|vergeet)\b{_ANY}\b(?:instructies|regels|opdrachten)\b",
    rf"(?:игнорируй|забудь|не обращай внимания){_ANY}(?:инструкци|правил|указани|команд)",
    # Chinese, Japanese, Korean
    (
        rf"(?:忽略|无视|無視|忘记|忘記|忘掉|不要理会|不要遵守|跳过){_ANY_CJK}"
        r"(?:之前|以上|上面|上述|先前|前面|所有|一切|全部|你的|系统|系統|原来|原有)"
        rf"{_ANY_CJK}(?:指令|指示|提示|规则|規則|设定|設定|要求|命令|约束|限制)"
    ),
    (
        rf"(?:以前|上記|これまで|今まで|前|すべて|全て)の{_ANY_CJK}(?:指示|命令|ルール|プロンプト)"
        rf"{_ANY_CJK}(?:無視|忘れ)"
    ),
    rf"(?:이전|위의?|앞의|모든){_ANY_CJK}(?:지시|명령|규칙|프롬프트){_ANY_CJK}(?:무시|잊)",
)
_RECASTING = (
    rf"\byou(?: are|'re) now {_PERSON}",
    r"\bfrom now on,? (?:you (?:are|act|will (?:act|be|obey|ignore|pretend))|act|pretend|obey)\b",
    (
        r"(?:\A|[.!?:,;\n]\s{0,8}|\b(?:you|please|must|should|will|now|want you to) )"
        r"(?:act|behave|respond) as (?:if|though|an?|the|my|dan)\b"
    ),
    r"\b(?:pretend|role-?play) (?:to be|you(?: are|'re)|as|that you)\b",
    r"\b(?:dan|jailbreak|god) mode\b",
    r"\bjailbr(?:eak|oken)\b",
    r"\bdo anything now\b",
    (
        r"\b(?:the )?(?:assistant|model|ai|chatbot) (?:must|shall|should|has to|is required to"
        r"|will) "
        r"(?:now|always|never|from now on|obey|ignore|reveal|comply)\b"
    ),
    r"\b(?:du bist (?:jetzt|ab sofort|nun)|ab (?:jetzt|sofort) bist du) (?:ein|der|die|kein)",
    r"\b(?:tu es|vous êtes) (?:maintenant|désormais) (?:une?|le|la)\b",
    r"\b(?:ahora eres|agora você é|ora sei) (?:un[ao]?|uma?|el|la|il|o|a)\b",
    r"\bты теперь ",
    r"你现在(?:是|就是|扮演)|你現在是|从现在(?:起|开始)[，,]?你(?:是|就是|将|要|必须)",
    r"[请請]?你?(?:来|要|现在)?扮演(?:一个|一名|一位|我的)",
    r"あなたは(?:今から|これから|今後)",
    r"지금부터 (?:너는|당신은)",
)
_PRYING = (
    (
        r"\b(?:reveal|print|show|output|leak|repeat|expose"
        r"|disclose)\b[^.!?\n]{0,30}?\b(?:system prompt"
        r"|your (?:instructions|prompt|rules)|(?:api|secret|private) keys?|credentials|passwords)\b"
    ),
    r"\bsystem[\s-]?prompts?\b",
    r"\bsystem (?:message|instructions?)\b",
    r"系统提示|系統提示|システムプロンプト|시스템 프롬프트",
    r"системн\w{2} (?:промпт|подсказк)",
)
_FORGING = (
    r"<\|[\w-]{1,40}\|>",
    r"\[/?INST\]",
    r"<</?SYS>>",
    (
        r"</?\s?(?:system|assistant|user|human|developer|tool|conversation|context|memory"
        r"|instructions?"
        r"|prompt)\s?>"
    ),
    r"(?:\A|[\n.!?>\])。！？]\s{0,8})(?:#{1,6}\s{0,8})?(?:system|assistant|developer)\s?[:：]",
    rf"{_LINE_START}#{{2,6}}\s{{0,8}}(?:system|instructions?)\b",
    rf"{_LINE_START}(?:系统|系統)[:：]",
)
_INSTRUCTIONS = Phrases((*_OVERRULING, *_RECASTING, *_PRYING, *_FORGING))

_KEYS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:sk|pk|rk)[-_](?:[a-z]{2,10}[-_]){0,3}[A-Za-z0-9_-]{16,}+"
    r"|(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}+|github_pat_[A-Za-z0-9_]{20,}+|glpat-[A-Za-z0-9_-]{16,}+"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}+|AIza[0-9A-Za-z_-]{30,}+|ya29\.[0-9A-Za-z_-]{20,}+"
    r"|hf_[A-Za-z0-9]{20,}+|npm_[A-Za-z0-9]{30,}+|pypi-[A-Za-z0-9_-]{30,}+"
    r"|eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{6,}+"
    r")"
    r"|-----BEGIN (?:[A-Z]+ ){0,3}PRIVATE KEY"
    r"|\b[Bb]earer\s+[A-Za-z0-9._~+/-]{20,}+"
    r"|\b[a-z][a-z0-9+.-]{1,12}+://[^\s/:@]{1,64}+:[^\s/@]{1,64}+@"
)
# "The password is stored in a vault" tells where, "the password is hunter2" tells it.
_NO_VALUE = (
    r"(?!(?:in|not|never|always|too|very|stored|saved|kept|required|expired|forgotten|lost|wrong"
    r"|incorrect|weak|strong|long|short|reset|changed|secret|safe|unknown|hidden|written|managed"
    r"|the|a|an|my|your|our|on|at|being|also|still|no|only|what|case-sensitive|difficult|hard|easy"
    r"|important|protected|optional|needed|invalid|nicht|zu|im|dans|trop|en|muy)\b)"
)
_CREDENTIAL = (
    r"(?:password|passwd|passcode|passphrase|pwd|(?:api|secret|access|private)[\s_-]?key"
    r"|(?:auth|access|api|bearer|secret)[\s_-]?token|client[\s_-]?secret|passwort|kennwort"
    r"|mot de passe|contraseña|senha|wachtwoord|пароль)"
)
_PASSWORDS = Phrases(
    (
        (
            rf"\b{_CREDENTIAL}(?: (?:for|to|of|für|de|del|da) [\w\s.-]{{1,30}}?)?"
            r"\s{0,4}(?:\b(?:is|ist|lautet|est|es|é|è)\b|[:=：—-])\s{0,4}[:=]?\s{0,4}"
            rf"{_NO_VALUE}[\"“«]?[^\s\"“»]{{3,}}"
        ),
        r"\bpin(?:[\s-]?(?:code|number))?\s{0,4}(?:is|ist|:|=)\s{0,4}\d{4,8}(?!\d)",
        r"\bcvv2?\s{0,4}(?:is|:|=)?\s{0,4}\d{3,4}(?!\d)",
        (
            r"(?:密码|密碼|口令|パスワード|暗証番号|비밀번호)(?:是|为|為|：|:|=|は|는|가)\s{0,4}"
            r"[\"“「]?[^\s，。！？、]{3,}"
        ),
    )
)
_CARD = re.compile(r"(?<![\w.-])[2-6]\d{3}(?:[ -]?\d{2,6}){2,4}(?![\w-]|\.\d)", re.ASCII)
_CARD_DIGITS = range(13, 20)


def _passes_luhn(digits: str) -> bool:
    doubled = (divmod(int(digit) * 2, 10) for digit in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(map(sum, doubled))) % 10 == 0


def _has_card_number(text: str) -> bool:
    for match in _CARD.finditer(text):
        digits = "".join(filter(str.isdigit, match.group()))
        if len(digits) in _CARD_DIGITS and _passes_luhn(digits):
            return True
    return False


def _plain(text: str) -> str:
    """Without the invisible characters and odd widths that hide words from a search."""
    shown = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", shown)


def quarantine_reason(text: str) -> str | None:
    """Why the text must not be used as a pin: "secret", "instruction" or "too_long"; else None.

    A secret is a key, a token, a password or a payment card's number; an instruction tries to
    overrule or recast the model or forges a role; too long is over `MAX_PROPOSED_CHARACTERS`. The
    first of them that holds is given. Wishes about the answers ("always answer in French") pass.
    """
    plain = _plain(text[:_SEARCHED])
    if _KEYS.search(plain) or _PASSWORDS.occur_in(plain) or _has_card_number(plain):
        return "secret"
    if _INSTRUCTIONS.occur_in(plain):
        return "instruction"
    return "too_long" if len(text) > MAX_PROPOSED_CHARACTERS else None
