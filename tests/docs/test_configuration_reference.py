from pathlib import Path

from lamplighter.domain.city.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"


def test_the_configuration_page_says_what_the_model_says() -> None:
    assert PAGE.read_text() == reference(), "write it anew: python docs/write_configuration.py"
