"""Start the program of a session directory in a group of its own; its keeper writes down how it ended."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

home = Path(sys.argv[1])
config = json.loads((home / "config.json").read_text())
(home / "work_dir").write_text(config["work_dir"])
for key, value in config["meta"].items():
    (home / "meta" / key).write_text(value)
if shutil.which(config["argv"][0], path=config["env"].get("PATH")) is None:
    sys.exit(f"there is no program {config['argv'][0]}")

reading, writing = os.pipe()
if os.fork():
    os.close(writing)
    os.read(reading, 1)
    os._exit(0)
os.setsid()
null = os.open(os.devnull, os.O_RDWR)
for fd in (0, 1, 2):
    os.dup2(null, fd)
source = os.open(home / "input", os.O_RDWR) if config["takes_input"] else null
output = os.open(home / "output", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
child = subprocess.Popen(
    config["argv"], cwd=config["work_dir"], env=config["env"], stdin=source, stdout=output, stderr=output,
    process_group=0,
)  # fmt: skip
(home / "pid").write_text(f"{child.pid}\n")
os.write(writing, b".")
os.close(writing)
status = child.wait()
(home / "exit").write_text(f"{status if status >= 0 else 128 - status}\n")
