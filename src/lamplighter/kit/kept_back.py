"""The variables of our own processes that no child process gets, or that a command of an automation does not."""

KEPT_BACK = frozenset({"LAMP_SECRET_KEY", "LAMP_TOKEN", "LAMP_TOKEN_FILE"})
"""Whoever has them can open every secret, or act as who set them: kept back from every child."""
CONNECTION = "LAMP_CONNECTION_"
"""How the variables begin that hold the tokens of connections: for the programs of the run that was given them."""
IDENTITY = frozenset(
    {"GC_AGENT", "GC_DIR", "GC_RIG", "GC_DRAIN", "GC_DRAIN_ACK", "GC_RESTART_REQUESTED", "LAMP_AGENT", "LAMP_DIR",
     "LAMP_RIG", "LAMP_RUN_ID", "LAMP_ACTOR", "LAMP_SESSION", "LAMP_SESSION_ID", "LAMP_CITY_ID", "LAMP_CHILD_ID",
     "LAMP_CRASH_AT", "LAMP_TRIGGER_FILE", "LAMP_RUN_TOKEN_FILE", "LAMP_API_URL", "AUTOMATION_DIR",
     "LAMP_URL", "LAMP_CONTEXT", "TRACEPARENT", "TRACESTATE"}
)  # fmt: skip
"""These identify the agent, session or run that a process was started in, or a city elsewhere, or the trace of whoever
started it: the daemon may have them, and commands of automations do not inherit them.
"""
