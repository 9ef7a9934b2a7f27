"""Lists of messages as JSON files in a folder, one for each id."""

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from turnfold.domain.errors import StoreError
from turnfold.domain.memory_ids import check_memory_id
from turnfold.domain.messages import Message


class FileMessages:
    """A `MessageStore` in a folder, which is made when something is first stored.

    A file is replaced as a whole, so a reader never sees half of one, and a process that dies while
    writing leaves the old list. The last of several writers wins. Its name is a hash of the id: no
    id can name another file, whatever the file system makes of letters and dots.
    """

    def __init__(self, folder: Path | str) -> None:
        """Use that folder."""
        self._folder = Path(folder)

    def get_messages(self, memory_id: str) -> list[Message]:
        """See `MessageStore`. Raises `StoreError` for a file that cannot be read."""
        path = self._path(memory_id)
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            return list(stored["messages"])
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path.name} cannot be read: {type(error).__name__}") from error

    def update_messages(self, memory_id: str, messages: Sequence[Message]) -> None:
        """See `MessageStore`. Raises `StoreError` if it cannot be written."""
        # ASCII keeps even characters that no encoding takes, such as half of a surrogate pair.
        text = json.dumps({"id": memory_id, "messages": list(messages)}, default=dict)
        path = self._path(memory_id)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._replace(path, text)
        except OSError as error:
            raise StoreError(f"{path.name} cannot be written: {type(error).__name__}") from error

    def delete_messages(self, memory_id: str) -> None:
        """See `MessageStore`. Raises `StoreError` if the file cannot be removed."""
        path = self._path(memory_id)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{path.name} cannot be removed: {type(error).__name__}") from error

    def _replace(self, path: Path, text: str) -> None:
        handle, name = tempfile.mkstemp(dir=self._folder, prefix=".new-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise

    def _path(self, memory_id: str) -> Path:
        digest = hashlib.sha256(
            check_memory_id(memory_id).encode("utf-8", "surrogatepass")
        ).hexdigest()
        return self._folder / f"{digest}.json"
