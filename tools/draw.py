"""Draws the pictures of the documents: each `docs/pictures/*.dot` becomes an SVG that names its source."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"


def main() -> int:
    for source in sorted(PICTURES.glob("*.dot")):
        text = source.read_text(encoding="utf-8")
        done = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True, check=True, timeout=60)
        body = re.sub(r"<!--.*?-->\n?", "", done.stdout, flags=re.DOTALL)
        body = re.sub(r"<\?xml.*?\?>\s*|<!DOCTYPE.*?>\s*", "", body, flags=re.DOTALL)
        mark = f"<!-- drawn from {source.name}, sha256 {hashlib.sha256(text.encode()).hexdigest()} -->\n"
        source.with_suffix(".svg").write_text(mark + body, encoding="utf-8")
        print(f"drawn: {source.with_suffix('.svg').name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
