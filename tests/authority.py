"""An authority of TLS for tests, and the files of a server and of a client that it certifies.

It knows files and certificates; it knows nothing of what is tested.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass
class Authority:
    """An authority, and the files of a server that it has certified."""

    folder: Path
    authority: trustme.CA

    @classmethod
    def founded(cls, folder: Path) -> Authority:
        """A new authority, with a certificate for a server, all of whose files are in the folder."""
        made = cls(folder, trustme.CA())
        made.authority.cert_pem.write_to_path(made.file)
        made.certify()
        return made

    @property
    def file(self) -> str:
        return str(self.folder / "authority.pem")

    def certify(self, *, name: str = "server") -> None:
        """New files of the server: certificate and key."""
        issued = self.authority.issue_cert("127.0.0.1", "localhost")
        (self.folder / f"{name}.key").write_bytes(issued.private_key_pem.bytes())
        (self.folder / f"{name}.crt").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))

    def options(self, *others: str) -> list[str]:
        files = {"--tls-cert-file": "server.crt", "--tls-key-file": "server.key", "--tls-ca-cert-file": "authority.pem"}
        return [part for flag, name in files.items() for part in (flag, str(self.folder / name))] + [*others]

    def client_certificate(self) -> dict[str, str]:
        self.certify(name="client")
        return {"ssl_certfile": str(self.folder / "client.crt"), "ssl_keyfile": str(self.folder / "client.key")}
