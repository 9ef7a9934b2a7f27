"""Words that tell what kind of sentence one is, in several languages. See `Phrases`."""

_STOP = """
the and of to in is it that for on with as are was be this you have has had not but or an at by from
they we he she his her its our your their my me him them us i am do does did can could will would
should may might must shall if so then than there here what which who whom when where why how all
any
some no nor too very just also more most other such only own same into over under again once
about up
down out off because while during before after above below between both each few these those been
being having doing let get got go going make made like need want know think see good great sure
thanks thank please yes okay well really much many one two first new way use using help it's i'm
i've
don't that's you're let's here's can't i'll i'd we're they're there's what's
der die das und ist nicht ich ein eine mit auf für sich auch wird dem den zu dass sie wir es im von
als oder aber
le la les des et est une un dans pas vous nous qui sur avec ce mais sont je du cette pour plus leur
ont il elle au
el los las del y pero que en para por con se su lo como más al o di che è per non della dei do da os
não uma
het een van dat niet ook maar voor zijn de
"""
STOP_WORDS = frozenset(_STOP.split())
"""Words that are about nothing."""

SMALL_TALK = (
    (
        r"\A\W{0,4}(?:hi|hello|hey|thanks?|thank you|great|sure|ok(?:ay)?|cool|wow|nice|awesome"
        r"|perfect"
        r"|absolutely|certainly|of course|you'?re (?:very )?welcome|welcome|bye|goodbye|see you"
        r"|take care"
        r"|no problem|good (?:luck|morning|night|idea|point|question)|sounds (?:good|great|real)"
        r"|glad"
        r"|happy to|i hope|hope (?:this|that|you|it)|let me know|feel free|please let me"
        r"|if you (?:have|need) any|is there anything|enjoy|congrat\w{0,12}|how are you"
        r"|how have you"
        r"|that'?s (?:great|awesome|cool|amazing|so|really|wonderful)|haha|lol|yeah|yep|yup|totally"
        r"|definitely|exactly|agreed?|i agree|that'?s right|got it|i see|understood)(?!\w)"
    ),
    (
        r"\A\W{0,4}(?:danke|gerne|hallo|natürlich|merci|bonjour|bien sûr|d'accord|gracias|hola"
        r"|claro"
        r"|por supuesto|grazie|ciao|obrigad[oa]|olá|спасибо|привет)(?!\w)"
    ),
    (
        r"\A\W{0,4}(?:你好|您好|谢谢|感谢|不客气|好的|当然|没问题|太好了|再见|嗯|哈哈|加油|很高兴"
        r"|希望|祝"
        r"|是的|是啊|没错|对的|ありがとう|こんにちは|はい|감사|안녕)"
    ),
)
OFFER = (
    (
        r"\b(?:let me know|feel free|would you like|i'?m here to help|hope this helps|anything else"
        r"|happy (?:to help|coding)|assist you (?:today|further|with anything)"
        r"|if you (?:have|need|would like|want) (?:any|more|further|me))\b"
    ),
    r"有什么(?:可以|能)|随时(?:告诉|联系|问)|需要我|如果你(?:需要|想)|希望(?:这|对你)",
    r"お手伝い|お気軽に",
)
REFERS_BACK = (
    (
        r"\A(?:this|that|these|those|it|they|he|she|here|there|however|but|and|so|then|also"
        r"|for (?:example|instance)|in addition|additionally|otherwise|else|or)\b"
    ),
    r"\A(?:这|那|它|他|她|但|而|也|另外|此外|例如|比如|推荐|これ|それ|その|しかし)",
)
"""What such a sentence refers to may not be chosen with it."""

DECISION = (
    (
        r"\b(?:decid\w{1,4}|agreed?|confirm\w{0,6}|chose|choos\w{1,3}|settled|let's (?:go with|use"
        r"|do)"
        r"|(?:go|went) with|i'll (?:take|go|use|have)|will use|switched|changed? (?:to|from|the)"
        r"|updated?|fixed|resolved|solved|completed?|finished|booked|scheduled|postponed|moved to"
        r"|cancel\w{0,6}|due|deadline|because|instead|root cause|turned out|as a result"
        r"|conclu\w{1,6}|found that)\b"
    ),
    r"\b(?:entschied\w{0,3}|beschlossen|décid\w{1,4}|confirmad[oa])\b",
    (
        r"决定|确认|确定|选择|改为|改成|改到|定在|约好|预订|完成|解决|修复|原因|因为|所以|结果|结论"
        r"|已经"
    ),
    r"計画|決め|確認|予約",
)
FIRST_PERSON = (
    (
        r"\b(?:i|i'(?:m|ve|d|ll)|my|we|our|we'(?:re|ve|ll)|ich|mein\w{0,2}|je|j'|mon|ma|mi|mis|meu"
        r"|minha"
        r"|io|mio)\b"
    ),
    r"我|私|僕|저는|제가|\bя\b|\bмой",
)
