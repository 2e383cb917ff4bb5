"""The hash by which the content security policy of an HTML page allows a style sheet or a script in it."""

from __future__ import annotations

import base64
from hashlib import sha256


def csp_hash(text: str) -> str:
    """Return the source expression of a style sheet or script with this text.

    >>> csp_hash("")
    'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='
    """
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()
