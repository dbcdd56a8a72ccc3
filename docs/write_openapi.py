"""Writes the description of the HTTP API from the table of operations."""  # noqa: INP001  a script, not a package

from pathlib import Path

from lamplighter.web.description import written

if __name__ == "__main__":
    (Path(__file__).parent / "reference" / "openapi.json").write_text(written())
