"""Lets this Python import the package from here, with the native half that cargo has built with everything else.

`maturin develop` would compile the dependencies once more, with features of their own. The files are those that it
writes, so that pip and maturin can replace them.
"""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parent


def install(site: Path) -> None:
    """Writes what stands for an installed package into a folder that Python finds packages in."""
    found = re.search(r'^version = "(.+)"', (HERE / "../../Cargo.toml").read_text(), re.M)
    assert found, "the workspace has a version"
    version = found[1]
    info = f"snugly-{version}.dist-info"
    files = {
        "snugly.pth": f"{HERE / 'python'}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.4\nName: snugly\nVersion: {version}\n",
        f"{info}/INSTALLER": "make\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    (site / info).mkdir(exist_ok=True)
    for name, text in files.items():
        (site / name).write_text(text)


if __name__ == "__main__":
    install(Path(sysconfig.get_path("purelib")))
