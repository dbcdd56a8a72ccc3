from pathlib import Path

from lamplighter.cli.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"


def test_the_commands_page_says_what_the_commands_say() -> None:
    assert PAGE.read_text() == reference(), "write it anew: python docs/write_commands.py"
