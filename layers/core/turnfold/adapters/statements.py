"""Sentences in which people state something lasting about themselves, in several languages.

Every pattern is anchored at the beginning of the sentence (behind a short lead-in such as "Hi," or
"By the way,"), which keeps out what is reported about others, quoted or embedded in a story.
"""

import re

_LEAD_IN = (
    r"\A[\s\-*•>]{0,6}(?:(?:hi|hello|hey|well|also|and|so|oh|ok(?:ay)?|yes|yeah|no|nope|sure|right|actually|btw|by\s+the\s+way"
    r"|fyi|first|additionally|just\s+so\s+you\s+know|for\s+(?:your|the)\s+(?:information|record)|(?:please\s+)?note(?:\s+that)?"
    r"|one\s+more\s+thing|another\s+thing|in\s+general|generally|remember|thanks|thank\s+you)(?:\s+there)?[\s,.!:—-]{1,3})*"
)
_COUNT_WORD = r"(?:an?|one|two|three|four|five|\d)"
_OCCUPATION = (
    r"(?:engineer|developer|programmer|designer|teacher|student|doctor|nurse|lawyer|accountant|manager|consultant|analyst"
    r"|scientist|researcher|professor|writer|artist|musician|photographer|chef|pilot|architect|electrician|plumber|mechanic"
    r"|farmer|entrepreneur|founder|freelancer|vegetarian|vegan|pescatarian|diabetic|celiac|coeliac|citizen|resident|native"
    r"|beginner|veteran|retiree|parent|mother|father|widow(?:er)?|christian|muslim|jew|hindu|buddhist|member)"
)
# A verb that tells the assistant what to do; "never mind" and "always wondered" are none.
_TASK_VERB = (
    r"(?:answer|use|reply|respond|write|send|e-?mail|call|contact|phone|text|include|format|ask|add|put|keep|book|schedule"
    r"|avoid|mention|suggest|recommend|speak|refer|address|provide|start|end|translate|share|store|save|delete|deploy|round"
    r"|quote|cite|confirm|explain|show|order|buy|pay|charge|ship|deliver|serve|offer|propose|plan|log|commit|push|merge)"
)
_OWN_THING = (
    r"(?:(?:full|first|last|user|family|middle|preferred|given)\s?)?name|nickname|pronouns|birthday|date\s+of\s+birth|age"
    r"|e-?mail(?:\s+address)?|(?:phone|mobile|cell|telephone)(?:\s+number)?|(?:home|postal|shipping|billing|mailing)?\s?address"
    r"|(?:user|customer|member|account|order|booking|reservation|employee|student)\s?(?:id|number|code)|time\s?zone"
    r"|native\s+language|mother\s+tongue|blood\s+type|(?:shoe|shirt|clothing)\s+size|wedding\s+anniversary|occupation|profession"
    r"|home\s?town|dietary\s+(?:restrictions?|requirements?|preferences?)|(?:all[- ]time\s+)?favou?rite\s[\w\s'-]{2,40}?"
    r"|preferred\s[\w\s'-]{2,40}?|preference"
)

# Asked to be kept, or dangerous to forget. These count whenever they are said.
_STRONG = [
    rf"{_LEAD_IN}(?:please\s+|always\s+)?(?:remember|keep\s+in\s+mind|bear\s+in\s+mind|make\s+a\s+note|take\s+note|note"
    r"|don['’]?t\s+forget|do\s+not\s+forget)(?:\s+that|[:,]|\s+(?:i|i['’]m|my|we|our|the)\b)",
    rf"{_LEAD_IN}my\s+(?:(?:full|first|last|user|family|given)\s?)?name\s+is\s+(?!not\b)\S",
    rf"{_LEAD_IN}(?:please\s+|you\s+can\s+|just\s+)?call\s+me\s+(?-i:[A-Z])(?!\w*\s+(?:at|on|when|back|if|after))\w+",
    rf"{_LEAD_IN}i(?:\s+am|['’]m)\s+(?:also\s+)?(?:severely\s+|very\s+|highly\s+|deathly\s+|slightly\s+)?(?:allergic|intolerant)\s+to\b",
    rf"{_LEAD_IN}i(?:\s+am|['’]m)\s+(?:(?:lactose|gluten)[\s-]intolerant|(?:a\s+)?(?:strict\s+|lifelong\s+)?"
    r"(?:vegetarian|vegan|pescatarian|diabetic|celiac|coeliac)|pregnant|colou?r-?blind)\b",
    rf"{_LEAD_IN}i(?:\s+have|['’]ve\s+got)\s+(?:a\s+|an\s+)?(?:severe\s+|mild\s+|bad\s+|type\s+[12]\s+|[\w-]+\s+)?"
    r"(?:allerg(?:y|ies)|diabetes|asthma|(?:celiac|coeliac)(?:\s+disease)?|epilepsy|adhd|dyslexia|[\w-]+\s+intolerance)\b",
    rf"{_LEAD_IN}(?:my|our|the)\s+(?:[\w-]+\s+){{0,3}}?(?:budget|deadline|due\s+date|spending\s+limit|target\s+date)\s*"
    r"(?:is|are|will\s+be|was\s+(?:moved|extended|changed)|has\s+been\s+(?:moved|extended|changed)|moved|[:=])(?!\s+not\s+(?:clear|known|set))\s*\S",
    rf"{_LEAD_IN}(?:from\s+now\s+on|going\s+forward|henceforth)[\s,]+\S",
    r"\A(?:(?:你好|您好|嗨|对了|對了|另外|还有|其实|好的|嗯|哦|请注意)[，,！!：:\s]{0,2})*(?:请|請|麻烦|帮我|务必|一定要)?(?:你)?(?:务必|一定要?|帮我)?"
    r"(?:记住|記住|记得|記得|牢记|别忘了|不要忘记|别忘记)(?!了?吗|[，,。！!啊呀哦不起]|我们|当时|那|小时候)",
    r"\A(?:(?:你好|您好|嗨|对了|另外|还有|其实|好的|嗯|哦|大家好)[，,！!：:\s]{0,2})*(?:我|本人)(?:的名字)?(?:叫做?|名叫|的名字(?:是|叫))(?!你|他|她|它|了|不|什么|啥|车)\S",
    r"\A(?:(?:你好|您好|对了|另外|还有|其实|不过|但是|因为)[，,！!：:\s]{0,2})*我(?:是|的(?:体质|孩子))?对[^，。？！]{1,20}过敏",
    r"\A(?:(?:你好|您好|对了|另外|还有|其实|不过)[，,！!：:\s]{0,2})*我(?:有|患有|得了)[^，。？！]{0,10}(?:过敏|糖尿病|高血压|哮喘|心脏病|痛风|不耐受)",
    r"\A(?:(?:另外|还有|对了)[，,：:\s]{0,2})*(?:我们?的?|总|项目)?(?:预算|截止日期|截止时间|最后期限)(?:大概|大约)?(?:是|为|：|:|有|不超过|控制在|在)\S",
    r"\A(?:bitte\s+)?(?:merk(?:e)?\s+dir|denk\s+daran|vergiss\s+nicht)\b|\A(?:hallo[,!]?\s+)?(?:ich\s+heiße|mein\s+name\s+ist)\s+\S"
    r"|\Aich\s+(?:bin\s+[^,.!?]{0,20}?\ballergisch|habe\s+[^,.!?]{0,20}?\ballergie|vertrage\s+kein)|\A(?:mein|unser)\s+(?:budget|abgabetermin)\s+(?:ist|beträgt|liegt)\b",
    r"\A(?:souviens-toi|souvenez-vous|n['’]oublie[zs]?\s+pas|retiens|retenez|note[zs]?)\s+(?:bien\s+)?que\b|\A(?:bonjour[,!]?\s+)?(?:je\s+m['’]appelle|mon\s+nom\s+est)\s+\S"
    r"|\Aje\s+suis\s+(?:\S+\s+)?(?:allergique|intolérante?|végétarien(?:ne)?|végane?)\b|\A(?:mon|notre)\s+budget\s+est\b",
    r"\A(?:por\s+favor,?\s+)?(?:recuerda|recuerde|no\s+olvides|ten\s+en\s+cuenta)\s+que\b|\A(?:hola[,!]?\s+)?(?:me\s+llamo|mi\s+nombre\s+es)\s+\S"
    r"|\A(?:yo\s+)?soy\s+(?:\S+\s+)?(?:alérgic[oa]|intolerante|vegetarian[oa]|vegan[oa]|diabétic[oa])\b|\A(?:mi|nuestro)\s+presupuesto\s+es\b",
    r"\A(?:ricorda(?:ti)?|tieni\s+presente)\s+che\b|\A(?:ciao[,!]?\s+)?(?:mi\s+chiamo|il\s+mio\s+nome\s+è)\s+\S|\Asono\s+(?:\S+\s+)?(?:allergic[oa]|vegetarian[oa]|intollerante)\b",
    r"\A(?:por\s+favor,?\s+)?(?:lembre-se|lembra|não\s+(?:se\s+)?esqueça)\s+(?:de\s+)?que\b|\A(?:olá[,!]?\s+)?(?:(?:eu\s+)?me\s+chamo|(?:o\s+)?meu\s+nome\s+é)\s+\S"
    r"|\A(?:eu\s+)?sou\s+(?:\S+\s+)?(?:alérgic[oa]|vegetarian[oa]|intolerante)\b",
    r"\A(?:onthoud|vergeet\s+niet)\s+dat\b|\A(?:hallo[,!]?\s+)?(?:ik\s+heet|mijn\s+naam\s+is)\s+\S|\Aik\s+ben\s+(?:\S+\s+)?(?:allergisch|vegetari(?:ër|sch))\b",
    r"\A(?:私|僕|わたし)の名前は|\A[^。、]{1,20}(?:と申します|といいます)|\A(?:私|僕)?は?[^。？]{0,15}アレルギー(?:が(?:あり|ある)|です|を持)"
    r"|覚えておいて(?:ください|下さい|ね)?[。！]?\Z",
    r"\A(?:제|내)\s?이름은|기억해\s?(?:줘|주세요)[.!]?\Z|알레르기가\s?있(?:어요|습니다|어)[.!]?\Z",
    r"\A(?:запомни(?:те)?|не\s+забудь(?:те)?)[,\s]|\Aменя\s+зовут\s+\S|\Aу\s+меня\s+(?:\S+\s+)?аллергия\b",
]

# Lasting unless the sentence ties them to the moment.
_PLAIN = [
    rf"{_LEAD_IN}my\s+(?:{_OWN_THING})\s+(?:is|are)\s+(?!not\b|the\s+(?:same|one|problem)|important|so\b|very\b|too\b|a\s+bit\b)\S",
    rf"{_LEAD_IN}i(?:\s+am|['’]m)\s+(?:originally\s+|currently\s+)?(?:from|based\s+in|located\s+in|living\s+in)\s+(?-i:[A-Z])",
    rf"{_LEAD_IN}i(?:\s+am|['’]m)\s+(?!sorry|fine|good|great|ok)(?-i:[A-Z][a-zà-ÿ]+)(?:\s+(?-i:[A-Z])[a-zà-ÿ]+)?(?:[.!]?\Z|,\s+(?:an?|the|and|i)\b|\s+from\b|\s+and\s+i\b)",
    rf"{_LEAD_IN}i\s+(?:currently\s+)?(?:live|reside)\s+(?:in|at|on|near|with)\b",
    rf"{_LEAD_IN}i\s+(?:currently\s+)?work\s+(?:as|at|for)\s+(?!least|the\s+moment|it\b|this\b|that\b|me\b)\S",
    rf"{_LEAD_IN}i\s+was\s+born\s+(?:in|on)\b",
    rf"{_LEAD_IN}i(?:\s+am|['’]m)\s+(?:an?\s+)(?:[\w-]+\s+){{0,3}}{_OCCUPATION}\b",
    rf"{_LEAD_IN}i(?:\s+am|['’]m)\s+\d{{1,3}}(?:\s+years?\s+old|[.!]?\Z|,|\s+and\b)",
    rf"{_LEAD_IN}i(?:\s+am|['’]m)\s+(?:happily\s+)?(?:married|divorced|widowed|retired|left-handed|deaf|blind)\b(?!\s+(?:to\s+the|by))",
    rf"{_LEAD_IN}i(?:\s+have|['’]ve\s+got)\s+{_COUNT_WORD}\s+(?:[\w-]+\s+)?(?:kids?|child(?:ren)?|sons?|daughters?|dogs?|cats?|brothers?|sisters?)\b",
    rf"{_LEAD_IN}i(?:['’]d)?\s+(?:strongly\s+|really\s+|much\s+|always\s+|generally\s+|usually\s+|would\s+|also\s+|definitely\s+|personally\s+)*"
    r"prefer\s+(?!it\b|that\b|this\b|them\b|the\s+(?:first|second|third|last|other|latter|former)|your\b|not\s+to\s+say)\S",
    rf"{_LEAD_IN}i\s+(?:really\s+|absolutely\s+|also\s+|generally\s+|especially\s+)*(?:like|love|hate|dislike|detest|enjoy)\s+"
    r"(?!it\b|that\b|this|those|these|them\b|how|what|when|where|the\s|your|you\b|him\b|her\b|his\b|to\s+(?:see|hear|know|think)|seeing|hearing|all\b|our\b|being\s+able)[a-z]",
    rf"{_LEAD_IN}i\s+(?:do\s+not|don['’]?t|can\s?not|can['’]?t|never|only)\s+(?:eat|drink|smoke|drive)\b",
    rf"{_LEAD_IN}i\s+speak\s+(?:only\s+|fluent\s+|a\s+little\s+|some\s+)?(?-i:[A-Z])",
    rf"{_LEAD_IN}i\s+use\s+a\s+(?:wheelchair|hearing\s+aid|screen\s+reader)\b",
    rf"{_LEAD_IN}(?:please\s+|you\s+(?:must|should)\s+)?(?:always|never)\s+(?:ever\s+)?{_TASK_VERB}\b",
    rf"{_LEAD_IN}(?:please\s+)?(?:do\s+not|don['’]t)\s+(?:ever\s+{_TASK_VERB}\b|{_TASK_VERB}\b[^.]*\b(?:ever|again|any\s?more|under\s+any|on\s+(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
    r"|on\s+weekends|at\s+night|without\s+(?:asking|my|checking|telling)|unless|before\s+\d|after\s+\d))",
    rf"{_LEAD_IN}(?:i['’]ve|i\s+have|we['’]ve|we\s+have|we)\s+(?:finally\s+)?(?:decided|agreed|settled)\s+(?:to|on|that|not\s+to)\b",
    r"\A(?:(?:你好|您好|嗨|对了|另外|还有|其实|不过|但是|因为|好的|嗯)[，,！!：:\s]{0,2})*(?:"
    r"我(?:是|来自)(?!说|想|不|在|要|因为|来|怕|觉得|第|个(?:很|比较)|一个(?:很|比较|人))[^，。？！]{1,14}(?:人|工程师|程序员|设计师|老师|教师|医生|护士|律师|学生|大学生|研究生|会计|经理|作家|画家|司机|厨师|素食者|素食主义者)(?=[，。！,!；]|\Z)"
    r"|我(?:今年|现在)?\d{1,3}岁|我(?:现在|目前|一直)?(?:住在|来自|出生于|毕业于)(?!这|那|哪)\S|我在[^，。？！]{2,15}(?:工作|上班|上学|读书|念书)(?=[，。！,!；]|\Z)"
    r"|我(?:个人|平时|一直|从小|从来|最|很|非常|特别|比较|更|挺|超|超级|真的)*(?:喜欢|爱吃|爱喝|讨厌|偏好|偏爱|不喜欢|不吃|不喝|不爱吃|吃不了|喝不了|习惯(?!了))"
    r"(?![你他她它这那了吗，。！,!；]|上了|的是你|和你)\S"
    r"|我(?:只|从不|从来不|不能|不可以)(?:吃|喝|坐|用|住|接受)\S|我的(?:生日|电话|手机号|手机|邮箱|地址|职业|爱好|血型|最爱|家乡|老家|专业|微信)(?:号码?)?(?:是|为|在|：|:)\S"
    r"|(?:请|以后|今后|千万|绝对|一定)(?:都|请|你|一定|务必)*(?:不要|别|勿|用|使用|称呼我|叫我)(?!紧|担心|客气|着急|急|难过|再说|这样|想太多|生气|害怕|哭|忘)\S"
    r"|(?:不要|别)(?:给我|再给我|往|在|把)?[^，。？！]{0,8}(?:推荐|安排|放|加|使用|联系|发送|打电话|预订|订)\S"
    r"|我们?(?:已经)?决定(?!了吗|不了)\S)",
    r"\A(?:außerdem\s+|übrigens\s+|und\s+)?(?:ich\s+(?:wohne|lebe)\s+in\b|ich\s+(?:arbeite\s+(?:als|bei)|komme\s+aus)\b|ich\s+bevorzuge\b|ich\s+(?:esse|trinke)\s+(?:kein|nie|nur)"
    r"|ich\s+bin\s+(?:vegetarier|veganer|diabetiker)|ich\s+mag\s+(?!es\b|das\b|dich\b|sie\b|ihn\b)\S|mein(?:e)?\s+(?:adresse|e-mail(?:-adresse)?|geburtstag|lieblings\w+|telefonnummer)\s+ist\b"
    r"|(?:bitte\s+)?(?:antworte|schreib|sende|schick|ruf)\w*\s+(?:mir\s+|mich\s+)?(?:immer|nie|niemals|nur)\b)",
    r"\A(?:et\s+|aussi,?\s+)?(?:j['’]habite\b|je\s+(?:vis|travaille)\s+(?:à|en|au|chez|comme)\b|je\s+viens\s+de\s+(?-i:[A-Z])|je\s+préfère\b(?!\s+(?:ça|cela|celui|celle))|je\s+ne\s+(?:mange|bois)\s+(?:pas|jamais|que)\b"
    r"|j['’](?:aime|adore|déteste)\s+(?!ça\b|bien\s+ça|cette\b|ton\b|votre\b|ce\b)\S|mon\s+(?:adresse|anniversaire|e-?mail|numéro)\b[^.?]{0,20}\best\b)",
    r"\A(?:y\s+|también\s+)?(?:(?:yo\s+)?vivo\s+en\b|trabajo\s+(?:en|como)\b|soy\s+de\s+(?-i:[A-Z])|(?:yo\s+)?prefiero\b(?!\s+(?:eso|esa|ese|este|esta)\b)|no\s+(?:como|bebo)\s+\S"
    r"|(?:me\s+(?:gusta|gustan|encanta|encantan)|odio)\s+(?!eso|esa|ese|esto|esta|tu\b|cómo|la\s+idea)\S|mi\s+(?:dirección|cumpleaños|correo|teléfono)\b[^.?]{0,20}\bes\b)",
    r"\A(?:abito\s+(?:a|in)\b|vivo\s+(?:a|in)\b|lavoro\s+(?:come|per|a)\b|preferisco\b|non\s+(?:mangio|bevo)\s+\S)",
    r"\A(?:eu\s+)?(?:moro\s+(?:em|no|na)\b|vivo\s+em\b|trabalho\s+(?:como|na|no|em)\b|prefiro\b|não\s+(?:como|bebo)\s+\S|(?:gosto|não\s+gosto)\s+de\s+(?!isso|você)\S)",
    r"\A(?:ik\s+woon\s+in\b|ik\s+werk\s+(?:als|bij)\b|ik\s+kom\s+uit\b|ik\s+geef\s+de\s+voorkeur\b|ik\s+eet\s+geen\b)",
    r"\A(?:私|僕|わたし)は[^。？]{1,30}(?:に住んでいます|に住んでいる|出身です|が(?:大)?(?:好き|嫌い)です|を食べません|が苦手です|で働いています)|\A[^。？]{1,20}に住んでいます[。！]?\Z"
    r"|\A(?:必ず|絶対に|いつも)[^。？]{2,40}(?:してください|しないでください|でお願いします)",
    r"\A(?:저는|나는)\s[^.?]{1,30}(?:살아요|삽니다|살고\s?있어요|살고\s?있습니다|좋아해요|좋아합니다|싫어해요|싫어합니다|못\s?먹어요|출신이에요|출신입니다)",
    r"\Aя\s+(?:живу\s+в|работаю\s+(?:в|на)|предпочитаю|не\s+(?:ем|пью)|люблю\s+(?!тебя|вас|это)|родился|родилась)\s?\S",
]
_STRONG_PATTERN = re.compile("|".join(f"(?:{one})" for one in _STRONG), re.IGNORECASE)
_PLAIN_PATTERN = re.compile("|".join(f"(?:{one})" for one in _PLAIN), re.IGNORECASE)

_PASSING = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|right\s+now|at\s+the\s+moment|just\s+now|this\s+(?:time|morning|afternoon|evening|week(?:end)?|month)"
    r"|last\s+(?:night|week|month|year|time)|for\s+now|lately|recently|so\s+far|heute|gestern|morgen|gerade|diese\s+woche|aujourd['’]hui|demain|hier"
    r"|en\s+ce\s+moment|hoy|ayer|mañana|ahora\s+mismo|oggi|ieri|domani|hoje|ontem|amanhã|vandaag|gisteren|сегодня|вчера|завтра|сейчас)\b"
    r"|今天|今晚|今早|明天|昨天|昨晚|刚才|刚刚|这次|最近|目前|这几天|上周|下周|这周|此刻|今日|昨日|明日|오늘|어제|내일",
    re.IGNORECASE,
)
_HYPOTHETICAL = re.compile(
    r"\A\W*(?:if|when|suppose|supposing|imagine|say|assuming|unless|although|wenn|falls|si|se|als|если|如果|假如|要是|假设|もし|만약)\b"
    r"|\A\W*(?:如果|假如|要是|假设|もし|만약)"
    r"|\b(?:suppos(?:e|ing)|imagine|maybe|perhaps|hypothetical(?:ly)?|pretend(?:ing)?|what\s+if|let['’]?s\s+say|i\s+wish|might|probably|as\s+if"
    r"|not\s+sure|i\s+guess|if\s+i\s+(?:were|was|had|could)|would\s+have|just\s+kidding|vielleicht|angenommen|peut-être|imagine[zr]|quizás?"
    r"|tal\s+vez|forse|talvez|misschien|может\s+быть|наверное)\b"
    r"|如果|假如|要是|也许|可能|或许|假设|万一|比如说|开玩笑|かもしれ|たぶん|아마",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"[?？؟]|[吗呢么][。！!]?\Z|\A\W*(?:can|could|would|will|do|does|did|are|is|should|what|which|how|why|where|who)\s+(?:you|i|we|they|it|the|my|there)\b",
    re.IGNORECASE,
)


def is_question(sentence: str) -> bool:
    """Whether the sentence asks something."""
    return _QUESTION.search(sentence) is not None


def is_asked_to_be_kept(sentence: str) -> bool:
    """Whether it asks to be remembered, or states a name, an allergy, a budget or a deadline."""
    return (
        _STRONG_PATTERN.match(sentence) is not None
        and not is_question(sentence)
        and _HYPOTHETICAL.search(sentence) is None
    )


def is_lasting_statement(sentence: str) -> bool:
    """Whether the speaker states a stable fact, preference, constraint or decision of their own.

    Precise rather than complete: questions, suppositions, passing remarks, reports about others and
    quotations are none.
    """
    if is_asked_to_be_kept(sentence):
        return True
    return (
        _PLAIN_PATTERN.match(sentence) is not None
        and not is_question(sentence)
        and _HYPOTHETICAL.search(sentence) is None
        and _PASSING.search(sentence) is None
    )
