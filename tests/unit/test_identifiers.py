"""What a summary must repeat letter for letter: found, compared, and kept within a cap."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnfold.domain.identifiers import extract_identifiers, kept_line, missing_identifiers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            (
                "Invoice INV-20931 goes to mira@example.test by 2027-02-03, see"
                " https://example.test/plan?id=7."
            ),
            ["INV-20931", "mira@example.test", "2027-02-03", "https://example.test/plan?id=7"],
        ),
        (
            "Region is eu-south-7, incident INC-40417, bucket ab-9f3.",
            ["eu-south-7", "INC-40417", "ab-9f3"],
        ),
        ("My order #4512 cost $1,299.99, about 1 200 €.", ["#4512", "$1,299.99", "1 200 €"]),
        ("On May 20th at 6 am or 14:00 Uhr.", ["May 20th", "6 am", "14:00 Uhr"]),
        ("March 15, 2024, then Nov 1, then 3 mai 2024.", ["March 15, 2024", "Nov 1", "3 mai 2024"]),
        ("Am 15. März 2025 und el 15 de marzo de 2025.", ["15. März 2025", "15 de marzo de 2025"]),
        (
            "Call +1 (555) 123-4567 or 020 7946 0958 about flight CA 1234.",
            ["+1 (555) 123-4567", "020 7946 0958", "CA 1234"],
        ),
        (
            r"See /etc/nginx/nginx.conf, src/app/main.py, C:\temp\new and report_final.pdf",
            ["/etc/nginx/nginx.conf", "src/app/main.py", r"C:\temp\new", "report_final.pdf"],
        ),
        ("Python 3.11 and v2.1.0 on 192.168.0.1:8080", ["3.11", "v2.1.0", "192.168.0.1:8080"]),
        (
            "The 20-year-old ran 10kg, 3.5 kg, -5°C and 80k.",
            ["20-year-old", "10kg", "3.5 kg", "-5°C", "80k"],
        ),
        (
            "She called it \"Project Falcon\" and 'Blue Door'.",
            ["Project Falcon", "Blue Door"],
        ),
        ("“红楼梦”和《远山来信》，「東京タワー」", ["红楼梦", "远山来信", "東京タワー"]),
        (
            "订单号88417，￥300，2025年3月1日下午3点半，预算100-200元，我32岁。",
            ["88417", "￥300", "2025年3月1日", "下午3点半", "100-200元", "32岁"],
        ),
        ("下周二的会议改到三点，押金三百元。", ["三点", "三百元"]),
        ("午後3時30分に、料金は1,500円です。", ["午後3時30分", "1,500円"]),
        (
            "(https://a.test/c_(d)) and <https://x.test/z>, www.example.test.",
            ["https://a.test/c_(d)", "https://x.test/z", "www.example.test"],
        ),
    ],
)
def test_identifiers_are_found_in_order(text: str, expected: list[str]) -> None:
    assert list(extract_identifiers(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "I have 2 kids and 1 dog, and the 3rd turn was mine.",
        "You may 5 times march on.",
        "She said \"I will not go there.\" It's the dogs' and the cats'.",
        "1. First\n2. Second\n10. Tenth\n",
        '{"departure_city": "x", "kind": "direct"}',
        "```python\nx = 4096\nname = 'Falcon'\n```",
        "data:image/png;base64," + "iVBORw0KGgo4" * 40,
        "Uhm... ok! — yes; no?",
        "",
    ],
)
def test_ordinary_text_has_none(text: str) -> None:
    assert extract_identifiers(text) == ()


def test_each_is_given_once_as_first_written() -> None:
    assert extract_identifiers("INV-7, inv-7, 1,000 kg and 1000 kg") == ("INV-7", "1,000 kg")


def test_addresses_and_paths_in_program_text_count() -> None:
    text = "```\nrequests.get('https://api.example.test/v1')  # 4096\n```"
    assert extract_identifiers(text) == ("https://api.example.test/v1",)


def test_items_of_a_kept_line_are_identifiers_again() -> None:
    found = ("Blue Door", "12", "INV-20931", "三点")
    line = kept_line(found, 1000, len)
    assert extract_identifiers(f"They talked.\n{line}") == found


@pytest.mark.parametrize(
    ("identifier", "text"),
    [
        ("12", "123 and 12.5 and 12:30"),
        ("INV-7", "INV-71"),
        ("-5°C", "5 °C"),
        ("$30", "30 people"),
        ("ABC1", "XABC1 ABC12"),
        ("2025-03-01", "2025-03-02"),
    ],
)
def test_a_part_of_another_identifier_does_not_count(identifier: str, text: str) -> None:
    assert missing_identifiers([identifier], text) == (identifier,)


@pytest.mark.parametrize(
    ("identifier", "text"),
    [
        ("INV-20931", "invoice inv-20931."),
        ("1,299.99", "1299.99"),
        ("1 200 €", "1200€"),
        ("１２３円", "123円でした"),
        ("May 20th", "may 20"),
        ("November 1", "Nov. 1"),
        ("3 点", "3点见"),
        ("Blue Door", "the “blue  door”"),
        ("10kg", "10 kg"),
        ("100–200元", "约100-200元"),
    ],
)
def test_the_manner_of_writing_does_not_matter(identifier: str, text: str) -> None:
    assert missing_identifiers([identifier], text) == ()


def test_missing_ones_keep_their_order() -> None:
    assert missing_identifiers(["z9", "b2b", "a1a"], "only b2b") == ("z9", "a1a")


def test_a_kept_line_takes_the_first_ones_that_fit() -> None:
    assert kept_line(["one1", "two2", "three3"], 16, len) == "Kept: one1; two2"
    assert kept_line(["much-too-long-for-it-1", "two2"], 12, len) == "Kept: two2"
    assert kept_line(["one1"], 9, len) == ""
    assert kept_line([], 100, len) == ""


HOSTILE = [
    " ",
    "a",
    "1",
    '"',
    "'a ",
    "“",
    "a.",
    "1-",
    "/a",
    "a/",
    "a@",
    "12 ",
    "\n",
    "三",
    "3月",
    "```\n",
    "Kept: ",
    "\\",
    "_",
    ".",
    "http://",
    "- 1. ",
    "(1",
    "1,",
    "+",
    "1 000 ",
    "Jan ",
    "第",
    "a-1 ",
    "data:",
    "data:a/b,",
    "A1" * 40 + " ",
]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", HOSTILE, ids=repr)
def test_repetition_takes_linear_time(unit: str) -> None:
    """Quadratic work on this much would run into the time limit by orders of magnitude."""
    text = unit * (100_000 // len(unit))
    missing_identifiers(extract_identifiers(text), text)


@given(st.text())
@example("\x00\ud800 12\u0301 ½ ² ① ºA0")
@example("Kept: 12; ; a\nKept: ")
def test_every_identifier_stands_in_its_text(text: str) -> None:
    found = extract_identifiers(text)
    assert found == extract_identifiers(text)
    assert all(identifier in text for identifier in found)
    missing_identifiers(found, text)


WORDS = [
    "see",
    "and",
    "我们",
    "the",
    "plan",
    "(",
    ")",
    ".",
    "INV-20931",
    "$1,299.99",
    "12",
    "123",
    "2027-02-03",
    "May 20th",
    "三点",
    "下午3点",
    "a@b.test",
    "https://x.test/?id=7",
    "C:\\temp\\new",
    "v2.1.0",
    "“Blue Door”",
    "《远山来信》",
    "-5°C",
    "10 kg",
    "6 am",
    "1.",
    "２３円",
    "#4512",
]


@given(st.lists(st.sampled_from(WORDS)))
def test_no_identifier_is_missing_from_its_own_text(words: list[str]) -> None:
    text = "\n".join(words)
    assert missing_identifiers(extract_identifiers(text), text) == ()


@given(st.lists(st.text(min_size=1, max_size=20)), st.integers(0, 60))
def test_a_kept_line_keeps_to_its_cap(identifiers: list[str], cap: int) -> None:
    for count in (len, lambda text: len(text.encode(errors="replace")) // 4 + 1):
        line = kept_line(identifiers, cap, count)
        assert not line or count(line) <= cap
