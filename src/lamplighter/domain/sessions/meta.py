"""Keys of a session's metadata and environment; Gas City's names where it has one."""

# In the environment of every process of a session, set by its provider.
ENV_SESSION_ID = "LAMP_SESSION_ID"
ENV_SESSION = "LAMP_SESSION"
ENV_CITY_ID = "LAMP_CITY_ID"

# Marks by which the patrol, people and the agent itself communicate.
DRAIN = "GC_DRAIN"  # when it was asked to finish, in unix seconds
DRAIN_REASON = "GC_DRAIN_REASON"
DRAIN_ACK = "GC_DRAIN_ACK"
RESTART_REQUESTED = "GC_RESTART_REQUESTED"

# Recorded when the session was started.
FINGERPRINT = "GC_CONFIG_HASH"
FINGERPRINT_FIELDS = "LAMP_CONFIG_FIELDS"
AGENT = "LAMP_AGENT"
POOL = "LAMP_POOL"
NUDGE_FAILED = "nudge failed"  # told by a start whose first nudge did not arrive; kept nowhere
NUDGE_WAITS = "nudge waits"  # beside it, where it is nudged as soon as it is ready
RUN = "LAMP_RUN_ID"  # set on a run's session, which the patrol of agents ignores
SPEAKS_TO = "speaks to"  # the session of the agent that a run was told to

ONE_SHOT = (DRAIN, DRAIN_REASON, DRAIN_ACK, RESTART_REQUESTED)
KNOWN = (*ONE_SHOT, FINGERPRINT, FINGERPRINT_FIELDS, AGENT, POOL, RUN)
