"""`VouchedConnections`: ends connections whose client's authority is trusted no more (edge).

A chain of certificates that was verified ends in one of the trust store. When that leaves it, a new
handshake with the same certificate would fail, so what was opened by it ends, too, whatever the
protocol above: its socket is shut down, and the event loop finds it at its end. An authority that
was issued anew for the same name and key is the same one.

OpenSSL does not tell the chain of a resumed session: such a connection ends when any authority
leaves the store, and its client comes again with a whole handshake. Apache Pulsar leaves all open.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import re
import socket
import ssl
import sys
from functools import lru_cache
from typing import Final
from weakref import WeakKeyDictionary

__all__ = ["Authorities", "VouchedConnections", "authorities_in"]

logger = logging.getLogger(__name__)

Authorities = frozenset[bytes]
"""Name and key, one behind the other, of each certificate of a trust store."""

_PEM: Final = rb"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----"


def authorities_in(context: ssl.SSLContext, pem: bytes) -> Authorities:
    """Those of a context, and of the text that it was loaded from.

    The context tells no certificate that may not sign others; such a one vouches for itself.
    """
    found = set(context.get_ca_certs(binary_form=True))
    for body in re.findall(_PEM, pem):
        with contextlib.suppress(ValueError):  # OpenSSL has read what can be read
            found.add(base64.b64decode(body))
    return frozenset(map(_identity, found))


class VouchedConnections:
    """The connections of one port whose clients have shown a certificate; owned by its context."""

    def __init__(self, authorities: Authorities) -> None:
        """`authorities` are those that are trusted at first."""
        self._authorities = authorities
        # By whom the client is vouched for; empty if that is not known.
        self._open: WeakKeyDictionary[socket.socket, bytes] = WeakKeyDictionary()

    def add(self, accepted: socket.socket, tls: ssl.SSLObject, *, is_current: bool) -> None:
        """Take in a connection; `is_current` if its handshake went by the trust of now."""
        if tls.getpeercert(binary_form=True) is None:
            return
        authority = _authority_of(tls)
        self._open[accepted] = authority
        if not is_current and authority not in self._authorities:
            self._end(accepted)

    def trust(self, authorities: Authorities) -> None:
        """Trust others from now on, and end what nobody vouches for any more."""
        has_lost = bool(self._authorities - authorities)
        self._authorities = authorities
        if not has_lost:
            return
        ended = [each for each, by in list(self._open.items()) if by not in authorities]
        for each in ended:
            self._end(each)
        if ended:
            logger.info(
                "connections ended",
                extra={
                    "reason": "an authority of certificates left the trust store",
                    "count": len(ended),
                },
            )

    def _end(self, accepted: socket.socket) -> None:
        self._open.pop(accepted, None)
        with contextlib.suppress(OSError):  # it has ended already
            accepted.shutdown(socket.SHUT_RDWR)


def _authority_of(tls: ssl.SSLObject) -> bytes:
    """The certificate that a verified chain ends in; empty if OpenSSL does not tell."""
    if sys.version_info >= (3, 13):
        chain = tls.get_verified_chain()
        return _identity(chain[-1]) if chain else b""
    # The same function, before it was public.
    inner = getattr(getattr(tls, "_sslobj", None), "get_verified_chain", lambda: None)()
    return _identity(ssl.PEM_cert_to_DER_cert(inner[-1].public_bytes())) if inner else b""


@lru_cache(maxsize=1000)
def _identity(der: bytes) -> bytes:
    """Name and key of a certificate; all of it, if it can't be read."""
    from cryptography import x509  # noqa: PLC0415 - where certificates are asked for
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - likewise
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - likewise
        Encoding,
        PublicFormat,
    )

    try:
        certificate = x509.load_der_x509_certificate(der)
        key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return certificate.subject.public_bytes() + key
    except (ValueError, UnsupportedAlgorithm):
        return der
