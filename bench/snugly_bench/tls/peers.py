"""Servers that listen twice, with TLS and without: how they are started, and where each is reached.

Knows nothing of what is measured.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import trustme

from snugly_bench.servers.peers import VALKEY, Peer, Server, free_port, redis_peer, snugly_peer, start, valkey_peer

PLAIN, TLS = "plain", "TLS"
CARRIERS = (PLAIN, TLS)
MOST_CLIENTS = 12_000
"""More than connect at once."""


@dataclass(frozen=True)
class Certificates:
    """The files of an authority, and of a server that it has certified."""

    authority: str
    certificate: str
    key: str

    @classmethod
    def made_in(cls, folder: Path) -> Certificates:
        """New ones, for the loopback address, with keys on the curve P-256."""
        authority = trustme.CA()
        issued = authority.issue_cert("127.0.0.1")
        made = cls(*(str(folder / name) for name in ("authority.pem", "server.crt", "server.key")))
        authority.cert_pem.write_to_path(made.authority)
        issued.cert_chain_pems[0].write_to_path(made.certificate)
        issued.private_key_pem.write_to_path(made.key)
        return made

    def options(self) -> tuple[str, ...]:
        """As snugly, Valkey and Redis all take them; clients show no certificate."""
        files = ("--tls-cert-file", self.certificate, "--tls-key-file", self.key, "--tls-ca-cert-file", self.authority)
        return (*files, "--tls-auth-clients", "no")


@dataclass(frozen=True)
class Encrypted:
    """A server to measure, and its second port."""

    peer: Peer
    tls_port: int

    def reached(self, server: Server, carrier: str) -> Server:
        """The server, as clients reach it through TLS or without."""
        return replace(server, port=self.tls_port) if carrier == TLS else server


def encrypted(peer: Peer, certificates: Certificates, *options: str) -> Encrypted:
    port = free_port()
    command = (*peer.command, "--tls-port", str(port), *certificates.options(), *options)
    return Encrypted(replace(peer, command=command), port)


def snugly_with_tls(program: str, certificates: Certificates) -> Encrypted:
    """snugly that compresses nothing: what is left is the same work as the peer's."""
    return encrypted(snugly_peer(program, "none"), certificates, "--max-clients", str(MOST_CLIENTS))


def peer_with_tls(certificates: Certificates) -> Encrypted:
    """Valkey, if it was built with TLS, else Redis. Exits where neither has it."""
    for found in (valkey_peer, redis_peer):
        # One that is not installed is none, and one that was built without TLS ends at once.
        with suppress(SystemExit):
            if (peer := found()) is not None:
                listening = encrypted(peer, certificates, "--maxclients", str(MOST_CLIENTS))
                with start(listening.peer):
                    return listening
    raise SystemExit(f"there is neither a {VALKEY}-server with TLS nor a redis-server: install one")
