"""Writes the reference page of the configuration from the model."""  # noqa: INP001  a script, not a package

from pathlib import Path

from lamplighter.domain.city.reference import reference

if __name__ == "__main__":
    (Path(__file__).parent / "reference" / "configuration.md").write_text(reference())
