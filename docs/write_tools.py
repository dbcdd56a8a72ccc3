"""Writes the reference page of the tools from the tools."""  # noqa: INP001  a script, not a package

from pathlib import Path

from lamplighter.mcp.reference import reference

if __name__ == "__main__":
    (Path(__file__).parent / "reference" / "tools.md").write_text(reference())
