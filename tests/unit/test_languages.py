"""Scripts and languages: an answer in the wrong one is noticed, a right one never refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnfold.domain.languages import dominant_script, language_of, same_language

TEXTS = {
    "en": "I am going to the market and will buy some bread for the dinner that we have planned.",
    "de": "Ich gehe auf den Markt und kaufe Brot für das Abendessen, das wir geplant haben.",
    "fr": "Je vais au marché et j'achète du pain pour le dîner que nous avons prévu avec eux.",
    "es": "Voy al mercado y compraré pan para la cena que tenemos planeada, pero no hoy.",
    "it": "Vado al mercato e comprerò il pane per la cena che non è della mia amica.",
    "pt": "Vou ao mercado e não comprei pão para o jantar, mas você também está com os amigos.",
    "nl": "Ik ga naar de markt en koop brood voor het avondeten dat we niet gepland hebben.",
    "zh": "我要去市场买一些面包，准备今天的晚饭，因为朋友们要来。",
    "ja": "今日は市場に行って、夕食のためにパンを買います。友達が来ます。",
    "ko": "오늘 저녁 식사를 위해 시장에 가서 빵을 살 예정입니다.",
    "ru": "Сегодня я иду на рынок и куплю хлеб для ужина, который мы запланировали.",
}


@pytest.mark.parametrize("language", TEXTS)
def test_languages_are_told(language: str) -> None:
    assert language_of(TEXTS[language]) == language


@pytest.mark.parametrize("source", TEXTS)
@pytest.mark.parametrize("answer", TEXTS)
def test_another_language_is_another_language(source: str, answer: str) -> None:
    assert same_language(TEXTS[source] * 3, TEXTS[answer]) is (source == answer)


@pytest.mark.parametrize("answer", TEXTS)
def test_every_language_of_a_mixed_source_will_do(answer: str) -> None:
    source = "\n".join([TEXTS["en"], TEXTS[answer], TEXTS["en"]])
    assert same_language(source, TEXTS[answer])


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (TEXTS["zh"], "OK: INV-20931"),
        (TEXTS["en"], "北京"),
        ("", TEXTS["en"]),
        ("42", TEXTS["zh"]),
        (TEXTS["en"], "Kept: INV-20931; 12; 2027-02-03"),
        ("We met Anna Müller and Jürgen Groß in Düsseldorf.", "Anna Müller, Jürgen Groß"),
        (TEXTS["ja"], "会議改善計画書作成"),
        (TEXTS["zh"] + "\n```python\nfor item in items:\n    print(item)\n```", TEXTS["zh"]),
        ("项目用 Python 和 Django，部署在 Kubernetes。" * 3, "项目用 Python 和 Django 部署。"),
    ],
)
def test_short_and_mixed_texts_are_never_refused(source: str, answer: str) -> None:
    assert same_language(source, answer)


def test_terms_do_not_make_a_source_english() -> None:
    source = "我们的项目用 Python 和 Django 做后端，部署在 Kubernetes 上，数据库是 PostgreSQL。" * 3
    assert not same_language(source, TEXTS["en"])


@pytest.mark.parametrize(
    ("text", "script"),
    [
        (TEXTS["de"], "latin"),
        (TEXTS["zh"], "han"),
        (TEXTS["ja"], "kana"),
        (TEXTS["ko"], "hangul"),
        (TEXTS["ru"], "cyrillic"),
        ("مرحبا كيف حالك", "arabic"),
        ("नमस्ते दुनिया", "devanagari"),
        ("Καλημέρα κόσμε", "greek"),
        ("שלום עולם", "hebrew"),
        ("สวัสดีชาวโลก", "thai"),
        ("看这里 https://example.test/a/very/long/path/that/is/latin/only", "han"),
        ("你好 `some_function_name(argument)`", "han"),
        ("12:30, 42 %", None),
        ("", None),
    ],
)
def test_the_dominant_script(text: str, script: str | None) -> None:
    assert dominant_script(text) == script


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", [" ", "a", "三", "`", "```", "a@", "http://", "the "])
def test_repetition_takes_linear_time(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    assert same_language(text, text)


@given(st.text())
def test_every_text_is_in_its_own_language(text: str) -> None:
    assert same_language(text, text)
    assert same_language(text, "")
    assert language_of(text) == language_of(text)
