"""Stands in for an agent program in pictures and browsers: prints what the preset's would, and reports the end."""

import json
import os
import sys
import time
import urllib.request
from typing import Any

PROMPT = sys.argv[-1]
SORTED = "Sorted 3 new issues: **#812** is a bug, #815 is about speed, #816 is a wish."
QUESTION = "Does 2.4 drop Python 3.10? The changelog says so, the metadata does not."
PLAN = """1. Raise the five packages without breaking changes in one commit.
2. Raise `httpx2` and mend the two callers of its old timeouts.
3. Leave `numpy` for its own change, because it touches 14 files."""


def say(**event: Any) -> None:
    print(json.dumps(event), flush=True)
    time.sleep(0.2)


def text(said: str) -> None:
    say(type="assistant", message={"content": [{"type": "text", "text": said}]})


def tool(number: int, given: str, answer: str) -> None:
    call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": given}}
    say(type="assistant", message={"content": [call]})
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": answer}
    say(type="user", message={"content": [result]})


def usage(cost: float) -> None:
    counted = {"input_tokens": int(cost * 90_000), "output_tokens": int(cost * 9_000)}
    say(type="result", is_error=False, stop_reason="end_turn", total_cost_usd=cost, usage=counted)


def report(what: str, **body: Any) -> None:
    run = os.environ["LAMP_RUN_ID"]
    with open(os.environ["LAMP_RUN_TOKEN_FILE"], encoding="utf-8") as file:  # noqa: PTH123  short
        token = file.read().strip()
    told = json.dumps(body | {"completion_id": f"run:{run}:completion:v1"}).encode()
    to = f"{os.environ['LAMP_API_URL']}/api/v1/runs/{run}/{what}"
    head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    asked = urllib.request.Request(to, told, head, method="POST")  # noqa: S310  the city's own address
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked)


def main() -> None:
    if "--version" in sys.argv:
        print("2.0.1")
    elif "Sort the new issues" in PROMPT:
        text("I will look at what came in since Friday.")
        tool(1, "gh issue list --label new", "#812 Rounding of totals\n#815 Slow start\n#816 Dark theme")
        tool(2, "gh issue edit 812 --add-label bug", "ok")
        text("Three issues are sorted: one bug, one about speed, one wish.")
        usage(0.21)
        report("complete", outcome="succeeded", summary_markdown=SORTED, citations=["#812", "#815", "#816"])
    elif "Write the release notes" in PROMPT:
        text("The notes are ready but for one decision.")
        usage(0.08)
        without = "The notes do not mention it."
        choices = ["Drop it", "Keep it for 2.4"]
        report(
            "ask", question=QUESTION, choices=choices, without_answer=without, summary_markdown="Collected 41 commits."
        )
    elif "Plan the upgrade" in PROMPT:
        text("Seven packages are behind; two of them with breaking changes.")
        usage(0.12)
        report("complete", outcome="succeeded", summary_markdown=PLAN)
    elif "--version" in sys.argv:
        print("2.0.1")
    elif "Review open pull requests" not in PROMPT:
        text("I looked through the repository.")
        usage(0.02)
        report("complete", outcome="succeeded", summary_markdown="Nothing needs a word this time.")
    else:
        text("Reading the two open pull requests.")
        tool(1, "gh pr diff 431", "+ def rounded(total): ...")
        time.sleep(3600)


if __name__ == "__main__":
    main()
