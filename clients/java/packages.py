"""Checks what is published: that every jar has the licence, and that every POM has what a repository of artifacts asks.

    python3 clients/java/packages.py MODULE...

It knows where Maven puts the jars of a module, and nothing of how they are built. It needs Python alone.
"""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

FOLDER = Path(__file__).resolve().parent
POM = "{http://maven.apache.org/POM/4.0.0}"
# The jars of a module, by what stands behind its version.
KINDS = ("", "-sources", "-javadoc")
# What a POM has, itself or from its parent, and what that looks like.
ADDRESS = r"https://\S+"
FIELDS = {
    "name": r"\S+",
    "description": r".+",
    "url": ADDRESS,
    "licenses/license/name": r"\S+",
    "licenses/license/url": ADDRESS,
    "developers/developer/name": r".+",
    "scm/url": r"\S+",
    "scm/connection": r"scm:git:\S+",
}


def faults_of_jars(module: str) -> Iterator[str]:
    for kind in KINDS:
        jars = [
            jar
            for jar in (FOLDER / module / "target").glob(f"{module}-*.jar")
            if re.fullmatch(rf"{module}-[0-9.]+{kind}\.jar", jar.name)
        ]
        if not jars:
            yield f"{module} has no jar{kind and f' of {kind[1:]}'}"
        for jar in jars:
            with zipfile.ZipFile(jar) as packed:
                if "META-INF/LICENSE" not in packed.namelist():
                    yield f"{jar.name} has no licence"


def faults_of_pom(module: str) -> Iterator[str]:
    own, parent = (ElementTree.parse(FOLDER / path).getroot() for path in (f"{module}/pom.xml", "pom.xml"))
    for field, form in FIELDS.items():
        path = "/".join(POM + name for name in field.split("/"))
        text = own.findtext(path) or parent.findtext(path) or ""
        if not re.fullmatch(form, with_properties(text, parent)):
            yield f"the POM of {module} has no {field}, or another than {form}: {text!r}"


def with_properties(text: str, parent: ElementTree.Element) -> str:
    """The text with the parent's own properties in it; those of Maven stay."""
    return re.sub(
        r"\$\{([\w.]+)\}",
        lambda found: parent.findtext(f"{POM}properties/{POM}{found[1]}", found[0]),
        text,
    )


def main(modules: list[str]) -> int:
    faults = [fault for module in modules for check in (faults_of_jars, faults_of_pom) for fault in check(module)]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
