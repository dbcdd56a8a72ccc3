"""The error of a fetch, apart from the fetching: whoever handles it need not load what runs git."""

from lamplighter.kit.errors import Unavailable


class FetchFailed(Unavailable):
    """A repository could not be fetched; the message names it without any password."""
