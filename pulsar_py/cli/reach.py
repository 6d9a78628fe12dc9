"""Decides a broker's listening and advertised addresses, and describes who can reach them.

A broker that lets everybody in listens on loopback unless it is told an address: whoever tries it
out opens nothing to the network. One of a cluster has to be reached by other machines, so it
listens on all addresses, as one with authentication.

Source: `bindAddress` of ServiceConfiguration in Pulsar, where its default is all addresses.
"""

from __future__ import annotations

import logging
import socket
from typing import Final, Self

from msgspec import Struct

from pulsar_py.common.network.hosts import is_loopback

__all__ = ["Reach"]

logger = logging.getLogger(__name__)

_ALL: Final = "0.0.0.0"  # noqa: S104 - what `bindAddress` means in Pulsar
_LOOPBACK: Final = "127.0.0.1"
_WILDCARD_HOSTS: Final = frozenset({_ALL, "::"})


class Reach(Struct, frozen=True, kw_only=True):
    """Where one broker can be reached.

    `host` is what it binds, `advertised` the name for clients, empty for `host` itself.
    """

    host: str
    advertised: str
    is_authenticated: bool
    is_of_cluster: bool = False

    @classmethod
    def of(
        cls, wanted: str, advertised: str, *, is_authenticated: bool, is_of_cluster: bool
    ) -> Self:
        """Decide by the bind address and the advertised address that were given, if any."""
        host = wanted or (_ALL if is_authenticated or is_of_cluster else _LOOPBACK)
        if not advertised and is_of_cluster and host in _WILDCARD_HOSTS:
            advertised = socket.getfqdn()
        elif not advertised and not wanted:
            advertised = "localhost"
        return cls(
            host=host,
            advertised=advertised,
            is_authenticated=is_authenticated,
            is_of_cluster=is_of_cluster,
        )

    @property
    def is_local(self) -> bool:
        """Whether other machines can't connect."""
        return is_loopback(self.host)

    def log(self) -> None:
        """Log who can reach the broker.

        It is a warning without authentication, but for a broker on its own that only programs of
        this machine reach: they may try it out.
        """
        who = "programs of this machine" if self.is_local else "all who reach this machine"
        may = (
            "can connect, and have to authenticate"
            if self.is_authenticated
            else "can connect and do everything: authentication is off"
        )
        is_well = self.is_authenticated or (self.is_local and not self.is_of_cluster)
        logger.log(
            logging.INFO if is_well else logging.WARNING,
            "%s %s",
            who,
            may,
            extra={"address": self.host},
        )
        if self.is_local and self.is_of_cluster and not self.advertised:
            logger.warning(
                "the cluster and its clients are told a loopback address, which means another "
                "machine to each of them: set bindAddress (--host) or advertisedAddress",
                extra={"bind_address": self.host},
            )
        if self.is_local and self.advertised and not is_loopback(self.advertised):
            logger.warning(
                "clients are told an address at which nobody listens: change bindAddress "
                "(--host) or advertisedAddress",
                extra={"bind_address": self.host, "advertised_address": self.advertised},
            )
