"""The prompts, by name and version. An operator replaces one by a file of the same name.

A placeholder such as `$max_tokens` is filled in the prompt's own text only. What users said is
never part of a template (see `turnfold.application.prompt_data`).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

VERSIONS: Mapping[str, str] = {
    "round_summary": "v1",
    "history_summary": "v1",
    "pin_judgement": "v1",
    "pin_aggregation": "v1",
    "stricter": "v1",
}
"""The current version of each prompt. A changed text is a new version and a new file."""

_HASH_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class Prompt:
    """An instruction to the model. `version` names text and origin, for provenance.

    It is `round_summary.v1` for the prompt that ships, and `round_summary.v1+3f2a9c10` (a hash of
    the text) for an operator's own.
    """

    version: str
    text: str

    def filled(self, **values: object) -> str:
        """The text with its placeholders filled in; unknown dollars stay as they are."""
        return Template(self.text).safe_substitute({name: str(one) for name, one in values.items()})


class PromptLibrary:
    """The prompts that ship, with those in `folder` in their place.

    Files are read once, at first use. A file of the folder that is blank or not UTF-8 is refused
    with `ValueError`: a typing error in a path must not silently change what is remembered.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` may hold any of the files `<name>.<version>.md`, and others."""
        self._folder = folder
        self._read: dict[str, Prompt] = {}

    def get(self, name: str) -> Prompt:
        """The prompt of that name; `KeyError` if there is none."""
        if name not in self._read:
            self._read[name] = self._load(f"{name}.{VERSIONS[name]}")
        return self._read[name]

    def stricter(self, name: str) -> Prompt:
        """The prompt of that name for a second try, after an answer that had to be rejected."""
        first, addition = self.get(name), self.get("stricter")
        return Prompt(f"{first.version}+{addition.version}", f"{first.text}\n\n{addition.text}")

    def _load(self, version: str) -> Prompt:
        own = None if self._folder is None else self._folder / f"{version}.md"
        if own is None or not own.is_file():
            shipped = files("turnfold.prompts").joinpath(f"{version}.md")
            return Prompt(version, shipped.read_text(encoding="utf-8").strip())
        try:
            text = own.read_text(encoding="utf-8").strip()
        except UnicodeDecodeError as error:
            raise ValueError(f"the prompt {own.name} is not UTF-8") from error
        if not text:
            raise ValueError(f"the prompt {own.name} is empty")
        digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH_CHARACTERS]
        return Prompt(f"{version}+{digest}", text)
