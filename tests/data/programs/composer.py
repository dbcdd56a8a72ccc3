"""Edits its input row itself, as agent programs do. Takes three arguments: how many Enters it loses, `seen` or `blind`
for whether it shows what is typed, and how many seconds pass before it reads its input.
"""

import os
import sys
import time
import tty

enters_lost, shows, deaf_s = int(sys.argv[1]), sys.argv[2] == "seen", float(sys.argv[3])
tty.setraw(0)
text = ""
print("\r\n" * 3 + "> Type your message", end="\r\033[2C", flush=True)
time.sleep(deaf_s)
while True:
    for character in os.read(0, 1024).decode():
        if character == "\r" and enters_lost:
            enters_lost -= 1
        elif character == "\r":
            print(f"\r\033[2Kheard [{text}]\r\n", end="")
            text = ""
        elif character == "\x15":
            text = ""
        else:
            text += character
    print(
        "\r\033[2K> " + (text if shows else ""), end="" if text and shows else "Type your message\r\033[2C", flush=True
    )
