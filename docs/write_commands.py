"""Writes the reference page of the commands from the commands."""  # noqa: INP001  a script, not a package

from pathlib import Path

from lamplighter.cli.reference import reference

if __name__ == "__main__":
    (Path(__file__).parent / "reference" / "commands.md").write_text(reference())
