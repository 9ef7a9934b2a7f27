"""What must not become a pin although someone proposed it."""

import re
import unicodedata

MAX_PROPOSED_CHARACTERS = 400
"""A longer text is not one fact."""

# Longer texts are quarantined for their length; this much of them is searched for a graver reason.
_SEARCHED = 20_000

_ENGLISH_OBJECT = r"(?:instructions?|prompts?|rules?|guidelines?|polic(?:y|ies)|directives?|context|training)"
_INSTRUCTIONS = re.compile(
    # Overruling what was said before.
    r"\b(?:ignore|disregard|forget|override|bypass|overrule|discard)\b[^.!?\n]{0,40}?"
    rf"\b(?:previous|prior|above|earlier|preceding|existing|original|all|any|your|the|system)\b[^.!?\n]{{0,30}}?\b{_ENGLISH_OBJECT}\b"
    r"|\b(?:ignore|disregard|forget)\s+(?:everything|all(?:\s+of)?(?:\s+(?:that|this|the))?)\s+(?:above|before|prior|previous\w*)"
    r"|\b(?:ignore|disregard)\s+(?:the|all)\s+(?:above|previous)\b"
    r"|\b(?:ignorier|vergiss|missacht)\w*\b[^.!?\n]{0,40}?\b(?:anweisung|regel|vorgabe|instruktion|befehl|prompt)\w*"
    r"|\b(?:ignore[zr]?|oublie[zr]?)\b[^.!?\n]{0,40}?\b(?:instructions|consignes|règles|directives)\b"
    r"|\b(?:ignor[ae]r?|olvid[ae]r?|dimentica|esque[cç]\w+)\b[^.!?\n]{0,40}?"
    r"\b(?:instrucci[oó]n(?:es)?|instruções|istruzioni|reglas|regras|regole|indicaciones)\b"
    r"|\b(?:negeer|vergeet)\b[^.!?\n]{0,40}?\b(?:instructies|regels|opdrachten)\b"
    r"|(?:игнорируй|забудь|не обращай внимания)\w*[^.!?\n]{0,40}?(?:инструкци|правил|указани|команд)"
    r"|(?:忽略|无视|無視|忘记|忘記|忘掉|不要理会|不要遵守|跳过)[^。！？\n]{0,12}?"
    r"(?:之前|以上|上面|上述|先前|前面|所有|一切|全部|你的|系统|系統|原来|原有)[^。！？\n]{0,10}?"
    r"(?:指令|指示|提示|规则|規則|设定|設定|要求|命令|约束|限制)"
    r"|(?:以前|上記|これまで|今まで|前|すべて|全て)の[^。！？\n]{0,6}?(?:指示|命令|ルール|プロンプト)[^。！？\n]{0,8}?(?:無視|忘れ)"
    r"|(?:이전|위의?|앞의|모든)[^.!?\n]{0,8}?(?:지시|명령|규칙|프롬프트)[^.!?\n]{0,10}?(?:무시|잊)"
    # Another role for the model.
    r"|\byou(?:\s+are|['’]re)\s+now\s+(?:an?\b|the\b|in\b|acting\b|called\b|dan\b|free\b|no\s+longer\b|my\b)"
    r"|\bfrom\s+now\s+on,?\s+(?:you\s+(?:are|act|will\s+(?:act|be|obey|ignore|pretend))|act|pretend|obey)\b"
    r"|(?:^|[.!?:,;\n][ \t]{0,8}|\b(?:you|please|must|should|will|now|want\s+you\s+to)\s+)(?:act|behave|respond)\s+as\s+(?:if|though|an?|the|my|dan)\b"
    r"|\b(?:pretend|role-?play)\s+(?:to\s+be|you(?:\s+are|['’]re)|as|that\s+you)\b"
    r"|\b(?:dan|jailbreak|god)\s+mode\b|\bjailbr(?:eak|oken)\b|\bdo\s+anything\s+now\b"
    r"|\b(?:du\s+bist\s+(?:jetzt|ab\s+sofort|nun)|ab\s+(?:jetzt|sofort)\s+bist\s+du)\s+(?:ein|der|die|kein)"
    r"|\b(?:tu\s+es|vous\s+êtes)\s+(?:maintenant|désormais)\s+(?:une?|le|la)\b"
    r"|\bahora\s+eres\s+(?:una?|el|la)\b|\bagora\s+você\s+é\s+(?:uma?|o|a)\b|\bora\s+sei\s+(?:una?|il|la)\b"
    r"|ты\s+теперь\s"
    r"|你现在(?:是|就是|扮演)|你現在是|从现在(?:起|开始)[，,]?你(?:是|就是|将|要|必须)|(?:请|請)?你?(?:来|要|现在)?扮演(?:一个|一名|一位|我的)"
    r"|あなたは(?:今から|これから|今後)|지금부터 (?:너는|당신은)"
    # The model's own instructions and secrets.
    r"|\b(?:reveal|print|show|output|leak|repeat|expose|disclose)\b[^.!?\n]{0,30}?\b(?:system\s+prompt|your\s+(?:instructions|prompt|rules)"
    r"|(?:api|secret|private)\s+keys?|credentials|passwords)\b"
    r"|\bsystem[\s-]?prompts?\b|\bsystem\s+(?:message|instructions?)\b|系统提示|系統提示|システムプロンプト|시스템 프롬프트"
    r"|системн\w+\s+(?:промпт|подсказк)"
    r"|\b(?:the\s+)?(?:assistant|model|ai|chatbot)\s+(?:must|shall|should|has\s+to|is\s+required\s+to|will)\s+"
    r"(?:now|always|never|from\s+now\s+on|obey|ignore|reveal|comply)\b"
    # Role and template markers.
    r"|<\|[\w-]{1,40}\|>|\[/?INST\]|<</?SYS>>"
    r"|</?\s?(?:system|assistant|user|human|developer|tool|conversation|context|memory|instructions?|prompt)\s?>"
    r"|(?:^|[\n.!?>\])。！？][ \t]{0,8})(?:#{1,6}[ \t]{0,8})?(?:system|assistant|developer)\s?[:：]"
    r"|(?:^|\n)[ \t]{0,8}#{2,6}[ \t]{0,8}(?:system|instructions?)\b|(?:^|\n)[ \t]{0,8}(?:系统|系統)[:：]",
    re.IGNORECASE,
)

_SECRETS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:sk|pk|rk)[-_](?:[a-z]{2,10}[-_]){0,3}[A-Za-z0-9_-]{16,}+"
    r"|(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}+|github_pat_[A-Za-z0-9_]{20,}+|glpat-[A-Za-z0-9_-]{16,}+"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}+|AIza[0-9A-Za-z_-]{30,}+|ya29\.[0-9A-Za-z_-]{20,}+"
    r"|hf_[A-Za-z0-9]{20,}+|npm_[A-Za-z0-9]{30,}+|pypi-[A-Za-z0-9_-]{30,}+"
    r"|eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{6,}+"
    r")"
    r"|-----BEGIN (?:[A-Z]+ ){0,3}PRIVATE KEY"
    r"|\bbearer\s+[A-Za-z0-9._~+/-]{20,}+"
    r"|(?i:\b[a-z][a-z0-9+.-]{1,12}://[^\s/:@]{1,64}:[^\s/@]{1,64}@)"
)
# "The password is stored in a vault" tells where, "the password is hunter2" tells it.
_NO_VALUE = (
    r"(?!(?:in|not|never|always|too|very|stored|saved|kept|required|expired|forgotten|lost|wrong|incorrect|weak|strong|long"
    r"|short|reset|changed|secret|safe|unknown|hidden|written|managed|the|a|an|my|your|our|on|at|being|also|still|no|only|what"
    r"|case-sensitive|difficult|hard|easy|important|protected|optional|needed|invalid|nicht|zu|im|in|dans|trop|en|muy|no)\b)"
)
_PASSWORDS = re.compile(
    r"\b(?:password|passwd|passcode|passphrase|pwd|api[\s_-]?key|secret[\s_-]?key|access[\s_-]?key|private[\s_-]?key"
    r"|(?:auth|access|api|bearer|secret)[\s_-]?token|client[\s_-]?secret|passwort|kennwort|mot\s+de\s+passe|contraseña|senha"
    r"|wachtwoord|пароль)(?:\s+(?:for|to|of|für|de|del|da)\s+[\w .'-]{1,30}?)?"
    rf"\s*(?:\bis\b|\bist\b|\blautet\b|\best\b|\bes\b|\bé\b|\bè\b|[:=：—-])\s*[:=]?\s*{_NO_VALUE}[\"'“«]?[^\s\"'“»]{{3,}}"
    r"|\bpin(?:[\s-]?(?:code|number))?\s*(?:is|ist|:|=)\s*\d{4,8}(?!\d)|\bcvv2?\s*(?:is|:|=)?\s*\d{3,4}(?!\d)"
    r"|(?:密码|密碼|口令|パスワード|暗証番号|비밀번호)(?:是|为|為|：|:|=|は|는|가)\s*[\"'“「]?[^\s，。！？、]{3,}",
    re.IGNORECASE,
)
_CARD = re.compile(r"(?<![\w.-])[2-6]\d{3}(?:[ -]?\d{2,6}){2,4}(?![\w-]|\.\d)", re.ASCII)
_CARD_DIGITS = range(13, 20)


def _passes_luhn(digits: str) -> bool:
    doubled = [int(d) * 2 for d in digits[-2::-2]]
    return (
        sum(map(int, digits[-1::-2])) + sum(d - 9 if d > 9 else d for d in doubled)  # noqa: PLR2004
    ) % 10 == 0


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
    if _SECRETS.search(plain) or _PASSWORDS.search(plain) or _has_card_number(plain):
        return "secret"
    if _INSTRUCTIONS.search(plain):
        return "instruction"
    return "too_long" if len(text) > MAX_PROPOSED_CHARACTERS else None
