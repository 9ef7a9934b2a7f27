"""`python -m infra.local.demo`: a conversation of thirty turns, drawn turn by turn.

Speaks HTTP only, to the local stack at PORT; starts one for its own time if none is running.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

import httpx
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from infra.local.demo_conversation import turns
from infra.local.settings import LOOPBACK, REPOSITORY, Settings, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

BUDGET = 1500
READY_SECONDS = 120.0
# Compaction starts a second after a commit; a model needs longer than the extractive summariser.
PATIENCE_SECONDS = 6.0
PATIENCE_WITH_MODEL_SECONDS = 30.0
BARS = "▁▂▃▄▅▆▇█"
MARKS = {"history_summary": ("■", "magenta"), "round_summary": ("▪", "cyan"), "raw": ("·", "green")}
HEADING = "turn   history   context  head  window              tail  pins  context so far"
SHOWN_CHARACTERS = 700
ELLIPSIS_CHARACTERS = 3


class DemoError(Exception):
    """The demo cannot go on; the text says why."""


class Memory:
    """One session of the service, over HTTP."""

    def __init__(self, url: str, session_id: str) -> None:
        """Speak to the service with the key `local`, or the one in TURNFOLD_KEY."""
        key = os.environ.get("TURNFOLD_KEY") or "local"
        self.session_id = session_id
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=60,
            trust_env=False,
        )

    def commit(self, messages: list[dict[str, Any]]) -> int:
        """Commit a turn and return its tokens."""
        answer = self._call("POST", "/turns", json={"messages": messages})
        tokens = answer["tokens"]
        return int(tokens["total"] if isinstance(tokens, dict) else tokens)

    def wait_until_compacted(self, seconds: float) -> None:
        """Wait until the background work has caught up, but not for ever."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            watermark = self._call("GET", "")["watermark"]
            if watermark["pending_turns"] == 0:
                return
            time.sleep(0.1)

    def context(self, max_tokens: int | None = None) -> dict[str, Any]:
        """Read the context that would go to the model."""
        return self._call(
            "GET", "/context", params={"max_tokens": max_tokens} if max_tokens else {}
        )

    def _call(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        try:
            response = self._http.request(
                method, f"/v1/sessions/{self.session_id}{path}", **options
            )
        except httpx.TransportError as error:
            raise DemoError(f"the service does not answer: {error}") from error
        if response.is_error:
            raise DemoError(f"{method} {path or 'session'}: {response.status_code} {response.text}")
        result: dict[str, Any] = response.json()
        return result


def sparkline(values: list[int]) -> str:
    """Draw the values as bars, the highest one full."""
    top = max(values, default=0) or 1
    return "".join(BARS[min(len(BARS) - 1, value * len(BARS) // (top + 1))] for value in values)


def row(turn: int, history: int, context: dict[str, Any], course: list[int]) -> Text:
    """One line of the table."""
    regions = context["regions"]
    text = Text(f"{turn:4}  {history:8,}  {context['tokens']['total']:8,}  ")
    text.append(f"{len(regions['head']):4}  ")
    window = Text()
    for entry in regions["window"]:
        mark, style = MARKS[entry["kind"]]
        covered = entry["to_turn"] - entry["from_turn"] + 1
        window.append(mark, style)
        if covered > 1:
            window.append(str(covered), f"dim {style}")
    window.truncate(18, pad=True)
    text.append_text(window)
    text.append(f"  {len(regions['tail']):4}  {len(regions['pins']):4}  ")
    text.append(sparkline(course), "yellow")
    return text


def drive(console: Console, memory: Memory, *, patience: float) -> None:
    """Commit the conversation and draw how the memory develops."""
    console.print(f"Session [bold]{memory.session_id}[/bold]: tokens of the full history against")
    console.print("tokens of the context, and the regions of the memory.")
    console.print(
        "Window: [green]·[/green] a turn word for word, [cyan]▪[/cyan] a round summary, "
        "[magenta]■[/magenta] a history summary; a number is how many turns it covers.\n"
    )
    console.print(HEADING, style="bold")
    history, course = 0, []
    conversation = turns()
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("turns"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("turns", total=len(conversation))
        for number, messages in enumerate(conversation, start=1):
            history += memory.commit(messages)
            memory.wait_until_compacted(patience)
            context = memory.context()
            course.append(context["tokens"]["total"])
            progress.console.print(row(number, history, context, course), no_wrap=True, crop=True)
            progress.advance(task)
    saved = 100 - 100 * course[-1] / history
    console.print(
        f"\nThe context is {saved:.0f} % smaller than the history, and no turn is lost.\n"
    )


def show_context(console: Console, context: dict[str, Any]) -> None:
    """Print the messages that would go to the model."""
    tokens = context["tokens"]
    console.print(
        f"The context for a budget of {BUDGET:,} tokens: {tokens['total']:,}", style="bold"
    )
    for message in context["messages"]:
        console.print(f"\n{message['role']}", style="bold cyan")
        console.print(_shown(message), markup=False, highlight=False)
    left_out = [f"{part['from_turn']} to {part['to_turn']}" for part in context.get("dropped", [])]
    if left_out:
        console.print(f"\nLeft out for the budget: turns {', '.join(left_out)}", style="dim")


def _shown(message: dict[str, Any]) -> str:
    content = message.get("content")
    text = content if isinstance(content, str) else str(content or "")
    for call in message.get("tool_calls") or []:
        text += f"{call['function']['name']}({call['function']['arguments']}) "
    if len(text) > SHOWN_CHARACTERS:
        return text[: SHOWN_CHARACTERS - ELLIPSIS_CHARACTERS].rstrip() + "..."
    return text


@contextlib.contextmanager
def service(console: Console) -> Iterator[str]:
    """The address of a running stack; one that is started here is stopped at the end."""
    settings = Settings.from_environment()
    url = f"http://{LOOPBACK}:{settings.port}"
    if settings.port and _is_healthy(url):
        yield url
        return
    console.print("No local stack is running; starting one for this demo", style="dim")
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "infra.local"],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        try:
            yield _ready_address(process, log)
        finally:
            process.terminate()
            process.wait()


def _is_healthy(url: str) -> bool:
    try:
        answer = httpx.get(f"{url}/healthz", timeout=2, trust_env=False)
    except httpx.TransportError:
        return False
    return answer.is_success and "status" in answer.text


def _ready_address(process: subprocess.Popen[str], log: Any) -> str:
    for line in process.stdout or ():
        if line.startswith("Turnfold is ready at "):
            return line.split()[-1]
    log.seek(0)
    raise DemoError("the local stack does not start:\n" + log.read()[-3000:])


def main() -> int:
    """Run the demo."""
    console = Console(width=None if sys.stdout.isatty() else 110)
    with_model = bool(os.environ.get("OPENAI_API_KEY"))
    try:
        with service(console) as url:
            memory = Memory(url, f"demo-{time.strftime('%Y%m%d-%H%M%S')}")
            patience = PATIENCE_WITH_MODEL_SECONDS if with_model else PATIENCE_SECONDS
            drive(console, memory, patience=patience)
            show_context(console, memory.context(BUDGET))
    except (DemoError, SettingsError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
