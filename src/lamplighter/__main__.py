"""The way in: `lamp`, or `python -m lamplighter`."""

import io
import os
import sys

from lamplighter import __version__


def main() -> None:
    _open_closed_streams()
    _show_what_can_be_shown()
    if sys.argv[1:] == ["--version"]:  # scripts ask this often; it needs nothing else loaded
        sys.stdout.write(f"lamp {__version__}\n")
        return
    from lamplighter.cli.main import run

    sys.exit(run(sys.argv[1:]))


def _open_closed_streams() -> None:
    """Open standard streams that were closed (`lamp status >&-`) on nothing.

    Otherwise the next file that is opened, such as the database, gets the number of one, and all that is printed to it.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _show_what_can_be_shown() -> None:
    """Print `?` for a character that the encoding of a terminal or pipe does not have, rather than nothing at all."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in {"strict", "surrogateescape"}:
            stream.reconfigure(errors="replace")


if __name__ == "__main__":
    main()
