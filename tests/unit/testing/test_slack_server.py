"""The Slack of the tests, asked by Slack's own library: what passes here has the shapes that library knows."""

from collections.abc import Iterator
from http.client import HTTPException
from typing import Any

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackObjectFormationError
from slack_sdk.models.blocks import Block, PlanBlock
from slack_sdk.models.messages.chunk import Chunk, MarkdownTextChunk, PlanUpdateChunk, TaskUpdateChunk
from slack_sdk.signature import SignatureVerifier
from slack_sdk.socket_mode import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from lamplighter.domain.slack import manifest, messages, stream
from lamplighter.testing.slack_server import Broken, Limited, Lost, Refused, SlackServer, slack_server
from lamplighter.testing.slack_shapes import (
    APP_TOKEN,
    BOT_TOKEN,
    BOT_USER,
    SCOPES,
    SIGNING_SECRET,
    TEAM,
    envelope,
    signed,
)


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with slack_server() as found:
        found.messages["C1"] = []
        yield found


@pytest.fixture
def client(slack: SlackServer) -> WebClient:
    return WebClient(token=BOT_TOKEN, base_url=slack.api, timeout=180, retry_handlers=[])


def test_the_library_posts_edits_reacts_and_reads(slack: SlackServer, client: WebClient) -> None:
    who = client.auth_test()
    assert (who["team_id"], who["user_id"]) == (TEAM, BOT_USER)
    metadata = {"event_type": "lamp_notice", "event_payload": {"effect": "one"}}
    first = client.chat_postMessage(channel="C1", text="begun", metadata=metadata)
    client.chat_update(channel="C1", ts=first["ts"], text="done")
    client.reactions_add(channel="C1", timestamp=first["ts"], name="eyes")
    client.chat_postMessage(channel="C1", text="in its thread", thread_ts=first["ts"])
    [seen] = client.conversations_history(channel="C1", include_all_metadata=True)["messages"]
    assert (seen["text"], seen["metadata"], seen["reactions"]) == ("done", metadata, ["eyes"])
    assert "metadata" not in client.conversations_history(channel="C1")["messages"][0]
    told = client.conversations_replies(channel="C1", ts=first["ts"])["messages"]
    assert [one["text"] for one in told] == ["done", "in its thread"]
    slack.users["U1"] = {"profile": {"email": "ann@example.org"}}
    assert client.users_info(user="U1")["user"]["profile"]["email"] == "ann@example.org"
    assert client.conversations_open(users="U1")["channel"]["id"] == "D1"


def test_the_library_reads_refusals_limits_and_lost_answers(slack: SlackServer, client: WebClient) -> None:
    with pytest.raises(SlackApiError) as refused:
        client.chat_postMessage(channel="C9", text="nobody hears it")
    assert refused.value.response["error"] == "channel_not_found"
    with pytest.raises(SlackApiError, match="invalid_auth"):
        WebClient("xoxb-wrong", base_url=slack.api, retry_handlers=[]).auth_test()
    trouble = [Limited(7), Broken(503), Refused("fatal_error"), Lost()]
    slack.trouble = lambda _method, _before: trouble.pop(0)
    with pytest.raises(SlackApiError) as limited:
        client.chat_postMessage(channel="C1", text="too much")
    assert (limited.value.response.status_code, limited.value.response.headers["retry-after"]) == (429, "7")
    for _ in range(2):
        with pytest.raises(SlackApiError):
            client.chat_postMessage(channel="C1", text="not now")
    assert slack.texts("C1") == []
    with pytest.raises((OSError, HTTPException)):
        client.chat_postMessage(channel="C1", text="taken")
    assert slack.texts("C1") == ["taken"]


def test_the_library_verifies_what_it_signs() -> None:
    body = b'{"type": "url_verification"}'
    assert SignatureVerifier(SIGNING_SECRET).is_valid_request(body, signed(body))
    assert not SignatureVerifier(SIGNING_SECRET).is_valid_request(body, signed(body, at=1.0))


def test_the_library_opens_a_socket_and_acknowledges(slack: SlackServer) -> None:
    heard: list[SocketModeRequest] = []

    def hear(client: SocketModeClient, request: SocketModeRequest) -> None:
        heard.append(request)
        client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))

    socket = SocketModeClient(
        app_token=APP_TOKEN, web_client=WebClient(base_url=slack.api), auto_reconnect_enabled=False
    )
    socket.socket_mode_request_listeners.append(hear)  # type: ignore[arg-type]  the library's own example does so
    try:
        socket.connect()
        slack.wait_until(lambda: slack.opened == 1)
        slack.push("events_api", envelope({"type": "app_mention", "text": "hello"}, "Ev1"), "env-1")
        slack.wait_until(lambda: slack.acknowledged == ["env-1"])
    finally:
        socket.close()
    assert heard[0].payload["event"]["text"] == "hello"


def validate(blocks: list[Any]) -> None:
    for block in Block.parse_all(blocks):
        block.validate_json()
        for element in getattr(block, "elements", ()):
            element.validate_json()


QUESTION = {"item": "itm_1", "state": "open", "kind": "needs_human", "sentence": "Which?",
            "question": {"choices": ["red", "b" * 200], "answerable": True, "plan": False}}  # fmt: skip
FAILURE = {"item": "itm_1", "state": "open", "kind": "failed", "sentence": "It failed." * 400, "fix": "lamp run retry",
           "run": "run_1", "lines": ["one"] * 20}  # fmt: skip


@pytest.mark.parametrize(
    "blocks",
    [
        messages.notice(QUESTION, notice_id="n", city="town", link="https://lamp.example.org", buttons=True)["blocks"],
        messages.notice(FAILURE, notice_id="n", city="town", link="https://lamp.example.org", buttons=True)["blocks"],
        messages.at_work("x" * 3500, "changes files, runs commands", "slt_1", buttons=True),
        messages.at_work("", "works", "slt_1", buttons=True),
        messages.picker("Where?", "slt_1", {f"place-{number}": "d" * 200 for number in range(150)}),
        messages.decided(messages.actions(QUESTION), "Answered by ann", keeps_buttons=True),
    ],
)
def test_the_library_finds_our_blocks_valid(slack: SlackServer, client: WebClient, blocks: list[Any]) -> None:
    validate(blocks)
    posted = client.chat_postMessage(channel="C1", text="as blocks", blocks=blocks)
    assert posted["message"]["blocks"] == blocks
    client.chat_delete(channel="C1", ts=posted["ts"])
    assert slack.messages["C1"] == []


def test_the_library_finds_blocks_invalid_that_this_slack_refuses(client: WebClient) -> None:
    too_many = messages.picker("Where?", "slt_1", {str(number): "" for number in range(100)})
    too_many[1]["elements"][0]["options"].append(too_many[1]["elements"][0]["options"][0])
    with pytest.raises(SlackObjectFormationError):
        validate(too_many)
    with pytest.raises(SlackApiError, match="invalid_blocks"):
        client.chat_postMessage(channel="C1", text="as blocks", blocks=too_many)


def begin(client: WebClient, thread: str, **keys: Any) -> Any:
    given = {"recipient_user_id": "U1", "recipient_team_id": TEAM, "task_display_mode": "plan"} | keys
    return client.chat_startStream(channel="C1", thread_ts=thread, **given)


def test_the_library_streams_a_turn_with_a_plan(slack: SlackServer, client: WebClient) -> None:
    slack.streams = True
    thread = slack.say("C1", "U1", "light the lamps")["ts"]
    ts = begin(client, thread, chunks=stream.opening("lamp-1"))["ts"]
    at_work = stream.Stream(stream.Mode.OPEN, "lamp-1", entries=(stream.Entry("runs commands", going=("t1",)),))
    client.chat_appendStream(
        channel="C1", ts=ts, chunks=stream.added(stream.Stream(mark="lamp-1"), at_work.entries, "Lit.")
    )
    ended = client.chat_stopStream(channel="C1", ts=ts, chunks=stream.closing(at_work, "Done", ok=True))["message"]
    assert (ended["text"], ended["streaming_state"], ended["thread_ts"]) == ("Lit.", "completed", thread)
    [plan] = Block.parse_all(ended["blocks"])
    assert isinstance(plan, PlanBlock)
    plan.validate_json()
    assert [(one["title"], one["status"]) for one in ended["blocks"][0]["tasks"]] == [
        ("Works", "complete"),
        ("Runs commands", "complete"),
    ]
    assert stream.holds(client.conversations_replies(channel="C1", ts=thread)["messages"][1], "lamp-1")
    client.chat_update(channel="C1", ts=ts, text="Lit, and edited.", blocks=[])
    assert slack.texts("C1")[1] == "Lit, and edited."


def test_the_library_s_own_way_of_streaming_is_taken_too(slack: SlackServer, client: WebClient) -> None:
    slack.streams = True
    thread = slack.say("C1", "U1", "light the lamps")["ts"]
    streamer = client.chat_stream(channel="C1", thread_ts=thread, recipient_user_id="U1", recipient_team_id=TEAM,
                                  task_display_mode="plan", buffer_size=1)  # fmt: skip
    streamer.append(markdown_text="One, ")
    streamer.append(markdown_text="two")
    streamer.stop(markdown_text=", three.")
    assert slack.texts("C1")[1] == "One, two, three."


def test_our_chunks_are_those_that_the_library_knows() -> None:
    entries = (stream.Entry("plans"), stream.Entry("verifies", 3, ok=False))
    whole = stream.Stream(stream.Mode.OPEN, "lamp-1", entries=entries)
    ours = [
        *stream.opening("m"),
        *stream.added(stream.Stream(mark="m"), entries, "x"),
        *stream.closing(whole, "Done", ok=True),
    ]
    for one in ours:
        found = Chunk.parse(one)
        assert isinstance(found, MarkdownTextChunk | PlanUpdateChunk | TaskUpdateChunk)
        assert found.to_dict() == one


REFUSED = [
    ("missing_recipient_user_id", {"recipient_user_id": ""}),
    ("missing_recipient_team_id", {"recipient_team_id": ""}),
    ("invalid_thread_ts", {"thread_ts": "1.0"}),
    ("channel_not_found", {"channel": "C9"}),
    ("invalid_arguments", {"task_display_mode": "dance"}),
    ("invalid_chunks", {"chunks": [{"type": "task_update", "id": "1", "title": "x" * 257, "status": "complete"}]}),
    ("invalid_chunks", {"chunks": [{"type": "task_update", "id": "1", "title": "x", "status": "done"}]}),
    ("invalid_chunks", {"chunks": [{"type": "dance"}]}),
    ("msg_too_long", {"markdown_text": "x" * 12_001}),
]


@pytest.mark.parametrize(("error", "keys"), REFUSED)
def test_a_stream_that_is_begun_wrongly_is_refused(
    slack: SlackServer, client: WebClient, error: str, keys: dict[str, Any]
) -> None:
    slack.streams = True
    thread = slack.say("C1", "U1", "light the lamps")["ts"]
    given = {"channel": "C1", "thread_ts": thread, "recipient_user_id": "U1", "recipient_team_id": TEAM} | keys
    with pytest.raises(SlackApiError) as refused:
        client.chat_startStream(**given)
    assert refused.value.response["error"] == error
    assert len(slack.messages["C1"]) == 1


def test_what_a_stream_does_not_take_is_refused(slack: SlackServer, client: WebClient) -> None:
    thread = slack.say("C1", "U1", "light the lamps")["ts"]
    theirs = slack.say("C1", "U1", "more", thread=thread)["ts"]
    with pytest.raises(SlackApiError, match="unknown_method"):
        begin(client, thread, markdown_text="x")
    slack.streams = True
    ts = begin(client, thread, chunks=stream.opening("m"))["ts"]
    for error, call in (
        ("streaming_mode_mismatch", lambda: client.chat_appendStream(channel="C1", ts=ts, markdown_text="x")),
        ("no_text", lambda: client.chat_appendStream(channel="C1", ts=ts, chunks=[])),
        ("streaming_state_conflict", lambda: client.chat_update(channel="C1", ts=ts, text="x")),
        ("cant_delete_message", lambda: client.chat_delete(channel="C1", ts=ts)),
        ("message_not_owned_by_app", lambda: client.chat_appendStream(channel="C1", ts=theirs, markdown_text="x")),
        ("message_not_found", lambda: client.chat_stopStream(channel="C1", ts="1.0")),
    ):
        with pytest.raises(SlackApiError, match=error):
            call()
    stopped = slack.end_streams("C1", by_user="U1")
    assert (stopped["streaming_message_ts"], stopped["thread_ts"]) == ([ts], thread)
    with pytest.raises(SlackApiError, match="stopped_by_user"):
        client.chat_appendStream(channel="C1", ts=ts, chunks=stream.opening("m"))
    ts = begin(client, thread, chunks=stream.opening("m"))["ts"]
    slack.end_streams("C1")
    with pytest.raises(SlackApiError, match="message_not_in_streaming_state"):
        client.chat_stopStream(channel="C1", ts=ts)


def test_the_library_sets_the_status_of_a_thread_where_the_app_is_an_agent(
    slack: SlackServer, client: WebClient
) -> None:
    thread = slack.say("C1", "U1", "light the lamps")["ts"]
    client.agents_sessions_setStatus(channel_id="C1", thread_ts=thread, status="processing", title="lamps")
    assert slack.sessions == {("C1", thread): "processing"}
    with pytest.raises(SlackApiError, match="invalid_arguments"):
        client.agents_sessions_setStatus(channel_id="C1", thread_ts=thread, status="dancing")
    assert client.auth_test().headers["x-oauth-scopes"] == ",".join(SCOPES)
    slack.scopes = ("chat:write",)
    with pytest.raises(SlackApiError, match="missing_scope"):
        client.agents_sessions_setStatus(channel_id="C1", thread_ts=thread, status="active")


def test_the_scopes_of_this_slack_are_those_of_our_manifest() -> None:
    assert manifest.SCOPES == SCOPES
