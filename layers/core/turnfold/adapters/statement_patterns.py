"""How people begin to say something lasting about themselves, by language.

See `Phrases` for what a blank and an apostrophe mean. Every pattern is matched at the beginning of
a sentence, behind a short lead-in where the language has one here. Which language a sentence is in
does not have to be known: no pattern of one means something else in another.
"""

_LEAD_IN = (
    r"[\s\-*•>]{0,6}(?:(?:hi|hello|hey|well|also|and|so|oh|ok(?:ay)?|yes|yeah|no|nope|sure|right"
    r"|actually|btw|by the way|fyi|first|additionally|just so you know|for (?:your|the) information"
    r"|for the record|(?:please )?note(?: that)?|one more thing|another thing|in general|generally"
    r"|thanks|thank you)(?: there)?[\s,.!:—-]{1,3})*"
)
_I_AM = r"i(?: am|'m)"
_I_HAVE = r"i(?: have|'ve got)"
_COUNT = r"(?:an?|one|two|three|four|five|\d)"
_OCCUPATION = (
    r"(?:engineer|developer|programmer|designer|teacher|student|doctor|nurse|lawyer|accountant"
    r"|manager|consultant|analyst|scientist|researcher|professor|writer|artist|musician"
    r"|photographer|chef|pilot|architect|electrician|plumber|mechanic|farmer|entrepreneur|founder"
    r"|freelancer|vegetarian|vegan|pescatarian|diabetic|celiac|coeliac|citizen|resident|native"
    r"|beginner|veteran|retiree|parent|mother|father|widow(?:er)?|christian|muslim|jew|hindu"
    r"|buddhist|member)\b"
)
# A verb that tells the assistant what to do; "never mind" and "always wondered" are none.
_TASK = (
    r"(?:answer|use|reply|respond|write|send|e-?mail|call|contact|phone|text|include|format|ask|add"
    r"|put|keep|book|schedule|avoid|mention|suggest|recommend|speak|refer|address|provide|start|end"
    r"|translate|share|store|save|delete|deploy|round|quote|cite|confirm|explain|show|order|buy|pay"
    r"|charge|ship|deliver|serve|offer|propose|plan|log|commit|push|merge)\b"
)
_OWN_THING = (
    r"(?:(?:(?:full|first|last|user|family|middle|preferred|given)\s?)?name|nickname|pronouns"
    r"|birthday|date of birth|age|e-?mail(?: address)?|(?:phone|mobile|cell|telephone)(?: number)?"
    r"|(?:(?:home|postal|shipping|billing|mailing) )?address"
    r"|(?:user|customer|member|account|order|booking|reservation|employee|student)\s?"
    r"(?:id|number|code)|time\s?zone|native language|mother tongue|blood type"
    r"|(?:shoe|shirt|clothing) size|wedding anniversary|occupation|profession|home\s?town"
    r"|dietary (?:restrictions?|requirements?|preferences?)"
    r"|(?:all[- ]time )?favou?rite [\w\s-]{2,40}?"
    r"|preferred [\w\s-]{2,40}?|preference)"
)
_MONEY_OR_DATE = r"(?:budget|deadline|due date|spending limit|target date)"
_NOTHING_LIKED = (
    r"(?!it\b|that\b|this|those|these|them\b|how|what|when|where|the\s|your|you\b|him\b|her\b|his\b"
    r"|to (?:see|hear|know|think)|seeing|hearing|all\b|our\b|being able)"
)
_NOT_PREFERRED = (
    r"(?!it\b|that\b|this\b|them\b|the (?:first|second|third|last|other|latter|former)|your\b"
    r"|not to say)"
)
_GENERAL_BAN = (
    r"(?:ever|again|any\s?more|under any|on (?:mon|tues|wednes|thurs|fri|satur|sun)days?"
    r"|on weekends|at night|without (?:asking|my|checking|telling)|unless|(?:before|after) \d)"
)

_ENGLISH_STRONG = tuple(
    _LEAD_IN + pattern
    for pattern in (
        (
            r"(?:please |always )?(?:remember|(?:keep|bear) in mind|make a note|take note|note"
            r"|(?:don't|do not) forget)(?: that|[:,]| (?:i|i'm|my|we|our|the)\b)"
        ),
        r"my (?:(?:full|first|last|user|family|given)\s?)?name is (?!not\b)\S",
        r"(?:please |you can |just )?call me (?-i:[A-Z])(?!\w* (?:at|on|when|back|if|after))\w",
        (
            rf"{_I_AM} (?:also )?(?:severely |very |highly |deathly |slightly )?"
            r"(?:allergic|intolerant) to\b"
        ),
        (
            rf"{_I_AM} (?:(?:lactose|gluten)[\s-]intolerant|(?:a )?(?:strict |lifelong )?"
            r"(?:vegetarian|vegan|pescatarian|diabetic|celiac|coeliac)|pregnant|colou?r-?blind)\b"
        ),
        (
            rf"{_I_HAVE} (?:an? )?(?:type [12] |[\w-]{{1,20}} )?(?:allerg(?:y|ies)|diabetes|asthma"
            r"|(?:celiac|coeliac)(?: disease)?|epilepsy|adhd|dyslexia|[\w-]{1,20} intolerance)\b"
        ),
        (
            rf"(?:my|our|the) (?:[\w-]{{1,30}} ){{0,3}}?{_MONEY_OR_DATE}\s?"
            r"(?:is|are|will be|(?:was|has been) (?:moved|extended|changed)|moved|[:=])"
            r"(?! not (?:clear|known|set))\s?\S"
        ),
        r"(?:from now on|going forward|henceforth)[\s,]\s?\S",
    )
)
_ENGLISH_PLAIN = tuple(
    _LEAD_IN + pattern
    for pattern in (
        (
            rf"my {_OWN_THING} (?:is|are) "
            r"(?!not\b|the (?:same|one|problem)|important|so\b|very\b|too\b|a bit\b)\S"
        ),
        rf"{_I_AM} (?:originally |currently )?(?:from|based in|located in|living in) (?-i:[A-Z])",
        (
            rf"{_I_AM} (?!sorry|fine|good|great"
            rf"|ok)(?-i:[A-Z][a-zà-ÿ]{{1,20}})(?: (?-i:[A-Z])[a-zà-ÿ]+)?"
            r"(?:[.!]?\Z|, (?:an?|the|and|i)\b| from\b| and i\b)"
        ),
        r"i (?:currently )?(?:live|reside) (?:in|at|on|near|with)\b",
        r"i (?:currently )?work (?:as|at|for) (?!least|the moment|it\b|this\b|that\b|me\b)\S",
        r"i was born (?:in|on)\b",
        rf"{_I_AM} an? (?:[\w-]{{1,20}} ){{0,3}}{_OCCUPATION}",
        rf"{_I_AM} \d{{1,3}}(?: years? old|[.!]?\Z|,| and\b)",
        (
            rf"{_I_AM} (?:happily )?(?:married|divorced|widowed|retired|left-handed|deaf|blind)\b"
            r"(?! (?:to the|by))"
        ),
        (
            rf"{_I_HAVE} {_COUNT} (?:[\w-]{{1,20}} )?(?:kids?|child(?:ren)?|sons?|daughters?|dogs?"
            rf"|cats?"
            r"|brothers?|sisters?)\b"
        ),
        (
            r"i(?:'d)? (?:(?:strongly|really|much|always|generally|usually|would|also|definitely"
            rf"|personally) ){{0,3}}prefer {_NOT_PREFERRED}\S"
        ),
        (
            r"i (?:(?:really|absolutely|also|generally|especially) ){0,3}(?:like|love|hate|dislike"
            r"|detest"
            rf"|enjoy) {_NOTHING_LIKED}[a-z]"
        ),
        r"i (?:do not|don'?t|can\s?not|can'?t|never|only) (?:eat|drink|smoke|drive)\b",
        r"i speak (?:only |fluent |a little |some )?(?-i:[A-Z])",
        r"i use a (?:wheelchair|hearing aid|screen reader)\b",
        rf"(?:please |you (?:must|should) )?(?:always|never) (?:ever )?{_TASK}",
        rf"(?:please )?(?:do not|don't) (?:ever {_TASK}|{_TASK}[^.]{{1,160}}\b{_GENERAL_BAN}\b)",
        (
            r"(?:i've|i have|we've|we have|we) (?:finally )?(?:decided|agreed|settled) "
            r"(?:to|on|that|not to)\b"
        ),
    )
)

_CHINESE_LEAD_IN = (
    r"(?:(?:你好|您好|大家好|嗨|对了|對了|另外|还有|其实|不过|但是|因为|好的|嗯|哦)"
    r"[，,！!：:\s]{0,2}){0,3}"
)
_LIKES = (
    r"(?:喜欢|爱吃|爱喝|讨厌|偏好|偏爱|不喜欢|不吃|不喝|不爱吃|吃不了|喝不了|习惯(?!了))"
    r"(?![你您他她它这那了吗，。！,!；]|上了|的是你|和你)\S"
)
_PROFESSION = (
    r"(?:人|工程师|程序员|设计师|老师|教师|医生|护士|律师|学生|大学生|研究生|会计|经理|作家|画家"
    r"|司机"
    r"|厨师|素食者|素食主义者)(?=[，。！,!；]|\Z)"
)
_CHINESE_STRONG = tuple(
    _CHINESE_LEAD_IN + pattern
    for pattern in (
        (
            r"(?:请|請|麻烦|帮我|务必|一定要?)?你?(?:务必|一定要?|帮我)?"
            r"(?:记住|記住|记得|記得|牢记|别忘了|不要忘记|别忘记)"
            r"(?!了?吗|[，,。！!啊呀哦不起]|我们|当时|那|小时候)\S"
        ),
        r"(?:我|本人)(?:的名字)?(?:叫做?|名叫|是?叫|的名字是)(?![你您他她它了不啥车]|什么)\S",
        r"我(?:是)?对[^，。？！]{1,20}过敏",
        r"我(?:有|患有|得了)[^，。？！]{0,10}(?:过敏|糖尿病|高血压|哮喘|心脏病|痛风|不耐受)",
        (
            r"(?:我们?的?|总|项目)?(?:预算|截止日期|截止时间|最后期限)(?:大概|大约)?"
            r"(?:是|为|：|:|有|不超过|控制在|在)\S"
        ),
    )
)
_CHINESE_PLAIN = tuple(
    _CHINESE_LEAD_IN + pattern
    for pattern in (
        (
            r"我(?:是|来自)(?!说|想|不|在|要|因为|来|怕|觉得|第|个(?:很|比较)|一个(?:很|比较|人))"
            rf"[^，。？！]{{1,14}}{_PROFESSION}"
        ),
        r"我(?:今年|现在)?\d{1,3}岁",
        r"我(?:现在|目前|一直)?(?:住在|来自|出生于|毕业于)(?![这那哪])\S",
        r"我在[^，。？！]{2,15}(?:工作|上班|上学|读书|念书)(?=[，。！,!；]|\Z)",
        rf"我(?:个人|平时|一直|从小|从来|最|很|非常|特别|比较|更|挺|超级?|真的){{0,3}}{_LIKES}",
        r"我(?:只|从不|从来不|不能|不可以)(?:吃|喝|坐|用|住|接受)\S",
        (
            r"我的(?:生日|电话|手机号|手机|邮箱|地址|职业|爱好|血型|最爱|家乡|老家|专业"
            r"|微信)(?:号码?)?"
            r"(?:是|为|在|：|:)\S"
        ),
        (
            r"(?:请|以后|今后|千万|绝对|一定)(?:都|请|你|一定|务必){0,2}(?:不要|别|勿|用|使用"
            r"|称呼我|叫我)"
            r"(?!紧|担心|客气|着急|急|难过|再说|这样|想太多|生气|害怕|哭|忘)\S"
        ),
        (
            r"(?:不要|别)(?:给我|再给我|往|在|把)?[^，。？！]{0,8}"
            r"(?:推荐|安排|放|加|使用|联系|发送|打电话|预订|订)\S"
        ),
        r"我们?(?:已经)?决定(?!了吗|不了)\S",
    )
)

_OTHERS_STRONG = (
    # German
    r"(?:bitte )?(?:merke? dir|denk daran|vergiss nicht)\b",
    r"(?:hallo[,!]? )?(?:ich heiße|mein name ist) \S",
    r"ich (?:bin [^,.!?]{0,20}\ballergisch|habe [^,.!?]{0,20}\b\w{0,20}allergie|vertrage kein)",
    r"(?:mein|unser) (?:budget|abgabetermin) (?:ist|beträgt|liegt)\b",
    # French
    r"(?:souviens-toi|souvenez-vous|n'oublie[zs]? pas|retiens|retenez|notez?) (?:bien )?que\b",
    r"(?:bonjour[,!]? )?(?:je m'appelle|mon nom est) \S",
    r"je suis (?:\S{1,20} )?(?:allergique|intolérante?|végétarien(?:ne)?|végane?)\b",
    r"(?:mon|notre) budget est\b",
    # Spanish
    r"(?:por favor,? )?(?:recuerda|recuerde|no olvides|ten en cuenta) que\b",
    r"(?:hola[,!]? )?(?:me llamo|mi nombre es) \S",
    r"(?:yo )?soy (?:\S{1,20} )?(?:alérgic|intolerante|vegetarian[oa]|vegan[oa]|diabétic)",
    r"(?:mi|nuestro) presupuesto es\b",
    # Italian
    r"(?:ricorda(?:ti)?|tieni presente) che\b",
    r"(?:ciao[,!]? )?(?:mi chiamo|il mio nome è) \S",
    r"sono (?:\S{1,20} )?(?:allergic[oa]|vegetarian[oa]|intollerante)\b",
    # Portuguese
    r"(?:por favor,? )?(?:lembre-se|lembra|não (?:se )?esqueça) (?:de )?que\b",
    r"(?:olá[,!]? )?(?:(?:eu )?me chamo|(?:o )?meu nome é) \S",
    r"(?:eu )?sou (?:\S{1,20} )?(?:alérgic[oa]|vegetarian[oa]|intolerante)\b",
    # Dutch
    r"(?:onthoud|vergeet niet) dat\b",
    r"(?:hallo[,!]? )?(?:ik heet|mijn naam is) \S",
    r"ik ben (?:\S{1,20} )?(?:allergisch|vegetari(?:ër|sch))\b",
    # Russian
    r"(?:запомни(?:те)?|не забудь(?:те)?)[,\s]",
    r"меня зовут \S",
    r"у меня (?:\S{1,20} )?аллергия\b",
    # Japanese
    r"(?:私|僕|わたし)の名前は",
    r"[^。、]{1,20}(?:と申します|といいます)",
    r"(?:私|僕)?は?[^。？]{0,15}アレルギー(?:が(?:あり|ある)|です|を持)",
    r"[^。？]{2,80}覚えておいて(?:ください|下さい|ね)?[。！]?\Z",
    # Korean
    r"(?:제|내)\s?이름은",
    r"[^.?]{2,80}기억해\s?(?:줘|주세요)[.!]?\Z",
    r"[^.?]{1,40}알레르기가\s?있(?:어요|습니다|어)[.!]?\Z",
)
_OTHERS_PLAIN = (
    # German
    r"(?:(?:außerdem|übrigens|und) )?ich (?:wohne|lebe) in\b",
    r"(?:(?:außerdem|übrigens|und) )?ich (?:arbeite (?:als|bei)|komme aus|bevorzuge)\b",
    r"ich (?:esse|trinke) (?:kein|nie|nur)",
    r"ich bin (?:vegetarier|veganer|diabetiker)",
    r"ich mag (?!es\b|das\b|dich\b|sie\b|ihn\b)\S",
    r"meine? (?:adresse|e-mail(?:-adresse)?|geburtstag|lieblings\w{1,20}|telefonnummer) ist\b",
    (
        r"(?:bitte )?(?:antworte|schreib|sende|schick|ruf)\w{0,3} (?:mir |mich )?"
        r"(?:immer|nie|niemals|nur)\b"
    ),
    # French
    r"(?:et |aussi,? )?j'habite\b",
    r"je (?:vis|travaille) (?:à|en|au|chez|comme)\b",
    r"je viens de (?-i:[A-Z])",
    r"je préfère\b(?! (?:ça|cela|celui|celle))",
    r"je ne (?:mange|bois) (?:pas|jamais|que)\b",
    r"j'(?:aime|adore|déteste) (?!ça\b|bien ça|cette\b|ton\b|votre\b|ce\b)\S",
    r"mon (?:adresse|anniversaire|e-?mail|numéro)\b[^.?]{0,20}\best\b",
    # Spanish
    r"(?:y |también )?(?:yo )?vivo en\b",
    r"trabajo (?:en|como)\b",
    r"soy de (?-i:[A-Z])",
    r"(?:yo )?prefiero\b(?! (?:eso|esa|ese|este|esta)\b)",
    r"no (?:como|bebo) \S",
    r"(?:me (?:gustan?|encantan?)|odio) (?!eso|esa|ese|esto|esta|tu\b|cómo|la idea)\S",
    r"mi (?:dirección|cumpleaños|correo|teléfono)\b[^.?]{0,20}\bes\b",
    # Italian
    r"(?:abito|vivo) (?:a|in)\b",
    r"lavoro (?:come|per|a)\b",
    r"preferisco\b",
    r"non (?:mangio|bevo) \S",
    # Portuguese
    r"(?:eu )?(?:moro (?:em|no|na)|vivo em|trabalho (?:como|na|no|em)|prefiro)\b",
    r"(?:eu )?(?:não )?gosto de (?!isso|você)\S",
    r"(?:eu )?não (?:como|bebo) \S",
    # Dutch
    r"ik (?:woon in|werk (?:als|bij)|kom uit|geef de voorkeur|eet geen)\b",
    # Russian
    (
        r"я (?:живу в|работаю (?:в|на)|предпочитаю|не (?:ем|пью)|люблю (?!тебя|вас|это)|родил(?:ся"
        r"|ась))"
    ),
    # Japanese
    (
        r"(?:私|僕|わたし)は[^。？]{1,30}(?:に住んで(?:います|いる)|出身です|が(?:大)?(?:好き"
        r"|嫌い)です"
        r"|を食べません|が苦手です|で働いています)"
    ),
    r"[^。？]{1,20}に住んでいます[。！]?\Z",
    r"(?:必ず|絶対に|いつも)[^。？]{2,40}(?:してください|しないでください|でお願いします)",
    # Korean
    (
        r"(?:저는|나는) [^.?]{1,30}(?:살아요|삽니다|살고\s?있어요|살고\s?있습니다|좋아해요"
        r"|좋아합니다"
        r"|싫어해요|싫어합니다|못\s?먹어요|출신이에요|출신입니다)"
    ),
)

STRONG = (*_ENGLISH_STRONG, *_CHINESE_STRONG, *_OTHERS_STRONG)
"""Asked to be kept, or dangerous to forget: these count whenever they are said."""

PLAIN = (*_ENGLISH_PLAIN, *_CHINESE_PLAIN, *_OTHERS_PLAIN)
"""Lasting unless the sentence ties them to the moment."""

PASSING = (
    (
        r"\b(?:today|tonight|tomorrow|yesterday|right now|at the moment|just now|for now|lately"
        r"|recently"
        r"|this (?:time|morning|afternoon|evening|week(?:end)?|month)|so far"
        r"|last (?:night|week|month|year|time))\b"
    ),
    (
        r"\b(?:heute|gestern|morgen|gerade|diese woche|aujourd'hui|demain|hier|en ce moment|hoy"
        r"|ayer"
        r"|mañana|ahora mismo|oggi|ieri|domani|hoje|ontem|amanhã|vandaag|gisteren|сегодня|вчера"
        r"|завтра"
        r"|сейчас)\b"
    ),
    r"今天|今晚|今早|明天|昨天|昨晚|刚才|刚刚|这次|最近|目前|这几天|上周|下周|这周|此刻",
    r"今日|昨日|明日|오늘|어제|내일",
)

HYPOTHETICAL = (
    (
        r"\A\W{0,4}(?:if|when|suppose|supposing|imagine|say|assuming|unless|although|wenn|falls|si"
        r"|se|als"
        r"|если)\b"
    ),
    (
        r"\b(?:suppos(?:e|ing)|imagine|maybe|perhaps|hypothetical(?:ly)?|pretend(?:ing)?|what if"
        r"|let'?s say|i wish|might|probably|as if|not sure|i guess|if i (?:were|was|had|could)"
        r"|would have|just kidding)\b"
    ),
    (
        r"\b(?:vielleicht|angenommen|peut-être|imagine[zr]|quizás?|tal vez|forse|talvez|misschien"
        r"|может быть|наверное)\b"
    ),
    r"如果|假如|要是|也许|可能|或许|假设|万一|比如说|开玩笑|もし|かもしれ|たぶん|만약|아마",
)

QUESTION = (
    r"[?？؟]",
    r"[吗呢么][。！!]?\Z",
    (
        r"\A\W{0,4}(?:can|could|would|will|do|does|did|are|is|should|what|which|how|why|where|who) "
        r"(?:you|i|we|they|it|the|my|there)\b"
    ),
)

CHINESE_COURTESY = (
    r"(?:你好|您好|大家好|嗨|哈[喽啰])[啊呀]?\Z",
    r"(?:我)?(?:很|非常|真|好)?(?:高兴|開心|开心|荣幸)(?:能|可以)?(?:认识|見到|见到)",
    r"(?:初次见面|请多多?关照|谢谢|多谢|这是我们的?第一次)",
)
"""Clauses that greet: no part of a fact."""

CHINESE_REMARK = (
    r"(?:那|这)(?:里|儿|边|首|种|些|个|部|本|样|让)(?!我)",
    r"(?:这)?(?:让|使)(?:我|人)",
    r"[^我不]{1,8}?(?:很|非常|十分|特别|真)(?:美|优美|漂亮|棒|动听|好听|好看|有感觉|有趣|舒服|享受)",
)
"""Clauses that say how what was just named is, or how it feels."""
