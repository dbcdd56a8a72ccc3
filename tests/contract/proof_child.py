"""Another process that holds a proof of life until it is killed, or told to end by the end of its input."""

import sys
from pathlib import Path

from lamplighter.store.url import open_proofs, parse_store_url

if __name__ == "__main__":
    url, runtime, owner = sys.argv[1:]
    proofs = open_proofs(parse_store_url(url, Path(runtime)))
    proofs.hold(owner)
    print("held", flush=True)
    sys.stdin.read()
