"""Words that say nothing about what a text is about."""

_ENGLISH = (
    "a about all am an and another any are as at be been being both but by can could d did do"
    " does doing don down each every few for from get give given go going got had has have"
    " having he her hers him his how i if in into is it its just list ll m many me more most"
    " much my no nor not of off on or other our out over please re s shall she should so some"
    " such t tell than that the their them then there these they this those to too up us ve very"
    " was we went were what when where which who whom why will with would you your yours"
)
_CHINESE = "的了是我你您他她它们在有和就不都也这那吗呢吧啊很着过哦呀嘛把被让给"
_JAPANESE = "のはがをにでともへやか"

FUNCTION_WORDS = frozenset(_ENGLISH.split()) | frozenset(_CHINESE) | frozenset(_JAPANESE)
"""Folded words and single characters. They are indexed, but a query with other words does without
them, and they do not make a text long."""
