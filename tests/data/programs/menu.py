"""Asks a question with No preselected, as agent programs do on their first start, then shows a prompt."""

import os
import sys
import termios
import tty

modes = termios.tcgetattr(0)
tty.setcbreak(0)
place, options = 0, ["No, exit", "Yes, trust"]
key = b""
while key not in (b"\r", b"\n"):
    print("\033[2J\033[HDo you trust this folder?")
    for number, text in enumerate(options):
        print(("> " if number == place else "  ") + f"{number + 1}. {text}")
    sys.stdout.flush()
    key = os.read(0, 1)
    if key == b"\x1b":
        place = 1 if os.read(0, 2).endswith(b"B") else 0
print("\033[2J\033[H", end="")
if place == 0:
    sys.exit("you said no")
termios.tcsetattr(0, termios.TCSADRAIN, modes)
print("% ", end="", flush=True)
print("heard", sys.stdin.readline(), flush=True)
sys.stdin.read()
