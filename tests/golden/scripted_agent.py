"""An agent program: says a few lines as Claude Code does, then completes its run over MCP.

Asked for the model `patient` it waits until it is stopped, so that others can end its run.
"""

import json
import os
import signal
import sys
import urllib.request
from pathlib import Path

MESSAGE = {"id": "msg_1", "role": "assistant", "content": [{"type": "text", "text": "The lamps are lit."}]}
RESULT = {
    "type": "result", "subtype": "success", "is_error": False, "result": "The lamps are lit.",
    "usage": {"input_tokens": 12, "output_tokens": 3}, "total_cost_usd": 0.25,
}  # fmt: skip


def main() -> None:
    say({"type": "system", "subtype": "init", "session_id": "program-session"})
    if "patient" in sys.argv:
        signal.pause()
    say({"type": "assistant", "message": MESSAGE})
    run = os.environ["LAMP_RUN_ID"]
    Path("lamp.txt").write_text("lit\n")
    complete(
        {
            "run_id": run,
            "completion_id": f"run:{run}:completion:v1",
            "outcome": "succeeded",
            "summary_markdown": "Two lamps are lit.",
            "citations": ["lamp.txt"],
        }
    )
    say(RESULT)


def say(line: dict[str, object]) -> None:
    print(json.dumps(line), flush=True)


def complete(arguments: dict[str, object]) -> None:
    token = Path(os.environ["LAMP_RUN_TOKEN_FILE"]).read_text().strip()
    call = {"name": "automation_complete", "arguments": arguments}
    request = urllib.request.Request(  # noqa: S310  the city's own address
        f"{os.environ['LAMP_API_URL']}/mcp",
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode(),
        {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        },
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=180) as answer:
        if json.load(answer)["result"].get("isError"):
            sys.exit(1)


if __name__ == "__main__":
    main()
