"""A notice as a message of Slack."""

from lamplighter.domain.slack.messages import notice


def test_its_lines_stand_below_the_sentence_each_made_harmless_and_not_more_than_ten() -> None:
    body = {"sentence": "Two runs failed.", "lines": ["<!channel> one", *(f"line {n}" for n in range(2, 13))]}
    text = notice(body, notice_id="ntc_1", city="town", link="", buttons=False)["blocks"][0]["text"]["text"]
    assert text.splitlines()[:2] == ["Two runs failed.", "• &lt;!channel&gt; one"]
    assert text.splitlines()[-1] == "• line 10"
