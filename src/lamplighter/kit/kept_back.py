"""The variables that no child process gets: whoever has them can open every secret, or act as who set them."""

KEPT_BACK = frozenset({"LAMP_SECRET_KEY", "LAMP_TOKEN", "LAMP_TOKEN_FILE"})
