"""A patch by file, for a page."""

from hypothesis import given
from hypothesis import strategies as st

from lamplighter.web.console.patches import files_of
from lamplighter.web.console.remarks import FIRST, message_of, remarks_of

PATCH = """\
diff --git a/lamp.py b/lamp.py
index 1..2 100644
--- a/lamp.py
+++ b/lamp.py
@@ -1,3 +1,3 @@ def light():
 same
-old
+new
+--- not a header
diff --git a/new file.txt b/new file.txt
new file mode 100644
index 0..3
--- /dev/null
+++ b/new file.txt
@@ -0,0 +1 @@
+<b>text</b>
"""


def test_files_with_their_counts_and_lines() -> None:
    (first, second), left_out = files_of(PATCH)
    assert (first.name, first.added, first.removed) == ("lamp.py", 2, 1)
    assert [(one.kind, one.number) for one in first.lines] == [
        ("hunk", None), ("same", 1), ("del", 2), ("add", 2), ("add", 3),
    ]  # fmt: skip
    assert (second.name, second.added, second.removed) == ("new file.txt", 1, 0)
    assert second.lines[0] == ("hunk", "new file mode 100644", None)
    assert second.lines[-1] == ("add", "+<b>text</b>", 1)
    assert left_out == 0


def test_of_a_long_patch_the_first_lines_are_shown_and_all_are_counted() -> None:
    long = PATCH + "".join(f"+line {number}\n" for number in range(100))
    files, left_out = files_of(long, most=10)
    assert sum(len(file.lines) for file in files) == 10
    assert (files[1].added, left_out) == (101, 98)


def test_remarks_become_one_message_with_file_line_and_text() -> None:
    files, lines = ["lamp.py", "lamp.py", "new.txt", "x"], ["2", "", "7\n8", "1"]
    found = remarks_of(files, lines, ["+new", "", "", ""], [" Why? ", "Split it.", "  ", "No"])
    assert message_of(found) == f"{FIRST}\n\nlamp.py, line 2:\n> +new\nWhy?\n\nlamp.py:\nSplit it.\n\nx, line 1:\nNo"
    assert remarks_of(["a"], ["1"], [], ["text"]) == []


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    files_of(text)
