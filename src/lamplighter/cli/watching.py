"""`lamp status --watch`: a page redrawn in place on a terminal, with keys to quit, move and look closer."""

import io
import os
import re
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import click

from lamplighter.cli import table as tables
from lamplighter.cli.base import same_city
from lamplighter.cli.status import Line
from lamplighter.kit.errors import LampError

ENTER = "\x1b[?1049h\x1b[?25l"
LEAVE = "\x1b[?25h\x1b[?1049l"
HOME, REST, END_OF_LINE = "\x1b[H", "\x1b[J", "\x1b[K"
KEYS = {
    "\x1b[A": "up", "\x1bOA": "up", "k": "up", "\x1b[B": "down", "\x1bOB": "down", "j": "down", "\r": "open",
    "\n": "open", "q": "quit", "Q": "quit", "\x1b": "quit", "\x03": "quit", "\x04": "quit", "": "quit",
}  # fmt: skip
HELP = "q quits · ↑ ↓ choose · Enter shows more"
BACK = "any key goes back"
_STYLE = re.compile(r"\x1b\[[0-9;]*m")

Page = Callable[[int], list[Line]]


def watch_pages(page: Page, *, every: float, title: str = "lamp status") -> None:
    """Draw the page every so many seconds until a key ends it; an error is shown in its place, and tried again."""
    chosen = -1
    with _screen(title) as resized:
        while True:
            lines = _made(page)
            items = [n for n, line in enumerate(lines) if line.shows]
            chosen = min(chosen, len(items) - 1)
            _draw(lines, items[chosen] if chosen >= 0 else None)
            match _key(every, resized):
                case "quit":
                    return
                case "up":
                    chosen = max(chosen - 1, 0) if items else -1
                case "down":
                    chosen = min(chosen + 1, len(items) - 1)
                case "open" if chosen >= 0:
                    _draw(_detail(lines[items[chosen]].shows), None, foot=BACK)
                    if _key(None, resized) == "quit":
                        continue


def _made(page: Page) -> list[Line]:
    try:
        return page(_size()[0])
    except LampError as error:
        return [Line(click.style("error:", fg="red") + f" {error.message}"), Line(error.hint or "")]


def _detail(words: tuple[str, ...]) -> list[Line]:
    """What the command prints, as lines."""
    from lamplighter.cli.main import run

    heard = io.StringIO()
    with redirect_stdout(heard), redirect_stderr(heard):
        run([*same_city(), *words])
    text = tables.paragraphs(heard.getvalue().expandtabs(), _size()[0])
    return [Line(line) for line in text.splitlines()]


def _draw(lines: list[Line], chosen: int | None, *, foot: str = HELP) -> None:
    width, height = _size()
    room = max(height - 1, 1)
    first = 0 if chosen is None or chosen < room else chosen - room + 1
    told = []
    for n, line in enumerate(lines[first : first + room], first):
        text = line.text
        if n == chosen:
            bare = _STYLE.sub("", text)
            text = click.style(bare + " " * (width - tables.width_of(bare)), reverse=True)
        told.append(f"{text}{END_OF_LINE}")
    hidden = len(lines) - first - room
    more = f"{hidden} more lines · " if hidden > 0 else ""
    told += [END_OF_LINE] * (room - len(told)) + [click.style(tables.cut(more + foot, width - 1), dim=True)]
    text = HOME + "\r\n".join(told) + END_OF_LINE + REST
    click.echo(text, nl=False)
    sys.stdout.flush()


def _key(within: float | None, resized: int) -> str | None:
    """The key that comes within so many seconds; None if none does, or the terminal's size changed."""
    ready, _, _ = select.select([sys.stdin.fileno(), resized], [], [], within)
    if resized in ready:
        os.read(resized, 100)
        return None
    if not ready:
        return None
    return KEYS.get(os.read(sys.stdin.fileno(), 16).decode(errors="replace"), "other")


def _size() -> tuple[int, int]:
    try:
        width, height = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        return 80, 24
    return width or 80, height or 24


@contextmanager
def _screen(title: str) -> Iterator[int]:
    """The terminal's other screen, keys one at a time; all is put back at the end. Yields what tells a new size."""
    stdin = sys.stdin.fileno()
    before = termios.tcgetattr(stdin)
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    old = signal.signal(signal.SIGWINCH, lambda *_: os.write(tell, b"."))
    tty.setcbreak(stdin)
    click.echo(f"\x1b[22;2t\x1b]2;{title}\x07{ENTER}", nl=False)
    try:
        yield told
    except KeyboardInterrupt:
        return
    finally:
        click.echo(f"{LEAVE}\x1b[23;2t", nl=False)
        sys.stdout.flush()
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, old)
        os.close(told)
        os.close(tell)
