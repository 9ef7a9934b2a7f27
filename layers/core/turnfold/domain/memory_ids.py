"""The ids of conversations in the in-process library: any text, blank ones included."""


def check_memory_id(value: object) -> str:
    """The id itself; `ValueError`, the error for a wrong argument, if it is no text."""
    if not isinstance(value, str):
        raise ValueError("an id must be a text")  # noqa: TRY004 - one error for every wrong id
    return value
