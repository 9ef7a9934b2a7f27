"""An independent count: tiktoken's o200k_base and the contract's overheads, written anew."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

MOST_OF_A_PART = 3000
"""No picture, sound or file may be counted with more."""


@cache
def _encoding() -> Any:
    import tiktoken

    from support.reports.stack import VOCABULARY

    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(VOCABULARY)
    encoding = tiktoken.get_encoding("o200k_base")
    if before is None:
        del os.environ["TIKTOKEN_CACHE_DIR"]
    else:
        os.environ["TIKTOKEN_CACHE_DIR"] = before
    return encoding


def tokens_of(text: str) -> int:
    return len(_encoding().encode_ordinary(text))


def least_and_most(messages: list[dict[str, Any]]) -> tuple[int, int]:
    """What messages cost: exactly, but for parts that are not texts (0 to 3,000 each)."""
    least, others = 3, 0
    for message in messages:
        least += 3 + tokens_of(message["role"])
        content = message.get("content")
        if isinstance(content, str):
            least += tokens_of(content)
        for part in content if isinstance(content, list) else ():
            text = part.get("text", part.get("refusal"))
            if isinstance(text, str):
                least += tokens_of(text)
            else:
                others += 1
        if message.get("name"):
            least += 1 + tokens_of(message["name"])
        least += tokens_of(message.get("refusal") or "")
        for call in message.get("tool_calls") or ():
            target = call.get("custom") or call["function"]
            given = target.get("input", target.get("arguments", ""))
            least += sum(tokens_of(text) for text in (call["id"], target["name"], given))
    return least, least + others * MOST_OF_A_PART
