"""What identifiers look like, one regular expression for each kind.

Every pattern uses bounded or possessive quantifiers and starts only where no earlier attempt can
have started, so that no input makes the search slower than linear.
"""

import re

_NUMERALS = "〇零一二两兩三四五六七八九十百千万萬亿億"
_DIGIT_OR_NUMERAL = rf"(?:\d{{1,4}}+|[{_NUMERALS}]{{1,4}}+)"

URL = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Za-z][A-Za-z0-9+.-]{1,12}+://|www\.)[!#-;=?-Z\[\]_a-z~À-ɏ]{3,2000}+"
    r"|(?<![A-Za-z0-9:])arn:[a-z-]{3,10}+:[A-Za-z0-9:/_.*+=@-]{3,500}+"
)
EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9_%+-][A-Za-z0-9._%+-]{0,63}+"
    r"@[A-Za-z0-9-]{1,63}+(?:\.[A-Za-z0-9-]{1,63}+){1,8}+"
)
_EXTENSIONS = (
    "py|js|ts|jsx|tsx|java|kt|go|rs|rb|php|cs|cpp|hpp|swift|scala|sh|ps1|sql|html|css|scss|vue"
    "|json|jsonl|ya?ml"
    "|toml|ini|cfg|conf|env|xml|csv|tsv|txt|md|rst|log|lock|pdf|docx?|xlsx?|pptx?|odt|png|jpe?g"
    "|gif|svg|webp"
    "|mp[34]|wav|zip|tar|gz|tgz|7z|db|sqlite|parquet|ipynb|exe|dll|tf|proto|pem|bak"
)
UNIX_PATH = re.compile(
    r"(?<![\w/.:<~@-])(?:~|\.{1,2})?(?:/[\w.@+-]{1,128}+){2,32}+/?"
    rf"|(?<![\w/.:<~@-])(?:[\w@+-][\w.@+-]{{0,99}}+/){{0,20}}+(?<![.])[\w@+-]{{1,99}}+(?:\.[\w-]{{1,40}}+){{0,4}}"
    rf"\.(?:{_EXTENSIONS})(?![\w/])",
    re.ASCII,
)
WINDOWS_PATH = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Za-z]:\\|\\\\)[^\s\\/:*?\"<>|，。；]{1,128}+(?:\\[^\s\\/:*?\"<>"
    r"|，。；]{0,128}+){0,32}+"
)

_MONTH = (
    r"(?:(?i:jan(?:uary|uar|vier)?|feb(?:ruary|ruar)?|févr?(?:ier)?|apr(?:il)?|avril|june?|juni"
    r"|juin|july?|juli"
    r"|juillet|aug(?:ust)?|août|mai|sept?(?:ember|embre)?|oct(?:ober|obre)?|oktober|nov(?:ember"
    r"|embre)?"
    r"|de[cz](?:ember)?|décembre|märz|mars|enero|febrero|marzo|abril|mayo|junio|julio|agosto"
    r"|septiembre|octubre"
    r"|noviembre|diciembre|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre"
    r"|dicembre|janeiro"
    r"|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro|января|февраля|марта"
    r"|апреля|мая|июня"
    r"|июля|августа|сентября|октября|ноября|декабря)"
    # "may" and "march" in small letters are verbs.
    r"|May|MAY|March|MARCH|Mar)"
)
NAMED_DATE = re.compile(
    rf"(?<![\w.])\d{{1,2}}(?:st|nd|rd|th|er|º|\.)?(?:\s(?:of|de|di))?\s?{_MONTH}(?![^\W\d_])\.?"
    r"(?:,?\s?(?:de\s|del\s)?\d{4}(?!\d))?"
    rf"|(?<![^\W_]){_MONTH}(?![^\W\d_])\.?\s\d{{1,2}}(?:st|nd|rd"
    rf"|th)?(?![\w:])(?:,?\s\d{{4}}(?!\d))?"
    rf"|(?<![^\W_]){_MONTH}(?![^\W\d_])\.?,?\s(?:de\s|del\s)?\d{{4}}(?!\d)"
)
_YEAR = r"(?:\d{2,4}+|[〇零一二三四五六七八九]{2,4}+)年"
CJK_DATE = re.compile(
    rf"(?<![\d{_NUMERALS}])(?:"
    rf"{_YEAR}(?:{_DIGIT_OR_NUMERAL}月(?:{_DIGIT_OR_NUMERAL}[日号號])?)?"
    rf"|{_DIGIT_OR_NUMERAL}月{_DIGIT_OR_NUMERAL}[日号號]?"
    r"|\d{1,2}月(?:[上中下]旬|[底初份])?"
    r"|\d{1,2}[日号號](?!线|楼)"
    r")"
)
CJK_TIME = re.compile(
    r"(?:凌晨|清晨|早上|上午|中午|下午|傍晚|晚上|午前|午後|夜)"
    rf"(?:\d{{1,2}}|[{_NUMERALS}]{{1,3}}+)[点點时時](?:半|钟|鐘|整|[一三]刻"
    rf"|{_DIGIT_OR_NUMERAL}分?)?"
    r"|(?<!\d)\d{1,2}[点點时時](?:半|钟|鐘|整|[一三]刻|\d{1,2}分?)?(?!\d)"
    rf"|(?<![{_NUMERALS}])[{_NUMERALS}]{{1,3}}+[点點](?:半|钟|鐘|整|[一三]刻|{_DIGIT_OR_NUMERAL}分)"
    rf"|(?<=[到至])[{_NUMERALS}]{{1,3}}+[点點](?![{_NUMERALS}])"
)
_CJK_UNITS = (
    "万元|亿元|千元|百元|美元|欧元|日元|港币|港元|人民币|块钱|元|块|円|角|公里|千米|厘米|毫米"
    "|平方米|平米|米"
    "|公斤|千克|毫克|克|斤|吨|毫升|升|个小时|小时|時間|分钟|分間|秒|个月|ヶ月|个星期|星期|周年|周"
    "|天|日間|年|岁|歳|度"
    "|号线|号楼|楼|层|室|栋|弄|号|號|页|章|节|集|期|折|人|名|位|次|回|公里/小时|个|件|張|张|本|杯"
    "|款|家|条|台|万|亿|億"
)
# Numerals are everyday words ("one", "a while") unless there are several or the unit is a measure.
CJK_AMOUNT = re.compile(
    rf"(?<![{_NUMERALS}第])[{_NUMERALS}]{{2,10}}+多?(?:{_CJK_UNITS})"
    rf"|(?<![{_NUMERALS}第])[两兩二三四五六七八九十百](?:块钱|元|公里|公斤|个小时|小时|分钟|个月|岁"
    rf"|斤)"
)

_CURRENCY = (
    r"(?:(?:US|HK|NT|CA|AU|R|A|C|S)?\$|[€£¥￥₹₽₩฿₺₫₴₱]"
    r"|(?:USD|EUR|GBP|CHF|JPY|CNY|RMB|INR|AUD|CAD|Rs\.?)\s?)"
)
_UNITS = (
    r"%|％|‰|°\s?[CF]?|℃|℉|€|£|¥|￥|₹|₽|\$|USD|EUR|GBP|CHF|JPY|CNY|RMB|INR|AUD|CAD|dollars?|euros?"
    r"|pounds?|cents?|yuan"
    r"|yen|rupees?|bucks|[kKMB](?![\w])|thousand|million|billion|trillion|mn|bn|mio\.?|mrd\.?"
    r"|[µmkcdn]?[gml]|[kmc]m[²2³]"
    r"|m[²³2]|sqm|sq\.?\s?(?:ft|m)|kg|kgs|lbs?|oz|tons?|tonnes?|mi|miles?|feet|foot|ft"
    r"|inch(?:es)?|yards?|kilomet(?:er|re)s?"
    r"|met(?:er|re)s?|centimet(?:er|re)s?|liters?|litres?|gallons?|cups?|tbsp|tsp|grams?|kilos?"
    r"|calories|k?cal|ms|µs"
    r"|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|nights?|weeks?|months?|years?|yrs?|yo"
    r"|decades?|[KMGTP]i?B|[kmgt]bps"
    r"|bytes?|bits?|tokens?|pixels?|px|dpi|fps|[kMG]?Hz|[kMG]?Wh?|m?Ah|[kM]?V|rpm|mph|km/h|bar"
    r"|psi|people|persons?|guests?"
    r"|passengers?|pages?|words?|items?|units?|pieces?|points?|percent|per\s?cent|x|a\.?m\.?"
    r"|p\.?m\.?|o['’]clock|Uhr|h"
    r"|Stunden?|Tagen?|Tage|Wochen?|Monaten?|Monate|Jahren?|Jahre|Minuten?|Prozent|Personen"
    r"|jours?|heures?|semaines?|mois"
    r"|ans|minutos?|horas?|días?|dias?|semanas?|mes(?:es)?|años?|anos?|ore|giorni|settimane|mesi"
    r"|anni|dagen|uur|weken"
    r"|руб\w{0,5}|лет|час\w{0,3}|дн\w{1,2}"
)
NUMERIC = re.compile(
    rf"(?<![A-Za-zÀ-ɏ\d_.,$€£¥￥#])(?P<prefix>{_CURRENCY}\s?|#|№\s?|\+|v|第|[Nn]o\.\s?|[-−]"
    rf"|[~≈<>≤≥]\s?)?"
    r"(?P<core>\d{1,3}(?:[ \u00a0\u202f]\d{3}){1,5}(?!\d)"
    r"|\d{1,40}+(?:[.,:/'’·~～–-]\d{1,40}+){0,12}+)"
    rf"(?P<unit>(?:\s?(?i:{_UNITS})(?:-old|\sold)?(?![^\W_])|-(?i:day|week|month|year|hour|minute"
    rf"|night|page|person)s?"
    rf"(?:-old)?(?![^\W_])|\s?多?(?:{_CJK_UNITS})))?"
)
PHONE = re.compile(
    r"(?<![\w+(])(?:\+\d{1,3}[ .-]?)?(?:\(\d{1,5}\)[ .-]?)?\d{2,5}(?:[ ./-]\d{2,5}){1,5}(?!\d)",
    re.ASCII,
)
CODE = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z0-9]{1,64}+(?:[-_./][A-Za-z0-9]{1,64}+){0,12}+")
SPACED_CODE = re.compile(
    r"(?i:(?<![a-z])(?:flight|vol|flug|vuelo|voo|train|gate|seat|room|航班|車次|车次"
    r"|列車)\s?)(?P<code>[A-Z]{1,3}\s?\d{1,5})(?!\w)"
)
ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|er|ème|e)\Z", re.IGNORECASE)

QUOTED = re.compile(
    r"(?<![\w\"=(\[{\\])(?<!\":)(?<!\": )\"(?P<a>[^\"\n{}<>;\\]{2,60}+)\"(?!\s?:|\w)"
    r"|(?<![\w'=(\[{\\])(?<!':)(?<!': )'(?P<b>[^'\n{}<>;\\]{2,60}+)'(?!\s?:|\w)"
    r"|“(?P<c>[^“”\n]{2,60}+)”|‘(?P<d>[^‘’\n]{2,60}+)’(?!\w)|«\s?(?P<e>[^«»\n]{2,60}+)»"
    r"|„(?P<f>[^„“”\n]{2,60}+)[“”]"
    r"|「(?P<g>[^「」\n]{1,40}+)」|『(?P<h>[^『』\n]{1,40}+)』|《(?P<i>[^《》\n]{1,40}+)》"
)
