# ruff: noqa: T201 - it answers the process that starts it
"""`python -m tests.strict_handshake CA CERTIFICATE KEY`: who trusts an authority that fails strict checks (entry point).

Runs on any Python, with nothing but what the package's TLS imports. Prints JSON: whether Python's own
context for clients checks strictly and refuses that authority, and whether ours, of a client and of a
server that wants a certificate, make a handshake with it.
"""

from __future__ import annotations

import json
import ssl
import sys

from pulsar_py.common.network.tls import TlsOptions, client_ssl_context
from pulsar_py.server.security.tls import TlsSettings, server_context


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> bool:
    """Whether both sides accept each other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = {
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    }
    for _ in range(10):
        for side in list(sides):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return False
            sides.remove(side)
    return not sides


def main(authority: str, certificate: str, key: str) -> None:
    """Print what happens."""
    settings = TlsSettings(certificate_path=certificate, key_path=key)
    asking = TlsSettings(
        certificate_path=certificate,
        key_path=key,
        trust_path=authority,
        requires_client_certificate=True,
    )
    options = TlsOptions(tls_trust_certs_file_path=authority, tls_validate_hostname=True)
    default = ssl.create_default_context(cafile=authority)
    strict = ssl.create_default_context(cafile=authority)
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    ours = client_ssl_context(options, (certificate, key))
    found = {
        "python": list(sys.version_info[:2]),
        "default_is_strict": bool(default.verify_flags & ssl.VERIFY_X509_STRICT),
        "default": shake_hands(default, server_context(settings)),
        "strict": shake_hands(strict, server_context(settings)),
        "client": shake_hands(client_ssl_context(options), server_context(settings)),
        "both": shake_hands(ours, server_context(asking)),
        "without_certificate": shake_hands(client_ssl_context(options), server_context(asking)),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
