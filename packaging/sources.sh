#!/bin/sh
# Packs the sources of the last commit with those of all dependencies, which build without a network; `make
# package-sources` calls it.
#
#     VERSION=0.1.0 sh packaging/sources.sh FOLDER
#
# It knows git and cargo, and nothing of what is built. The archive goes to FOLDER.
set -eu
umask 022
here=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
name=snugly-$VERSION
root=$folder/$name
rm -rf "$root"
git -C "$here" archive --prefix="$name/" HEAD | tar -x -C "$folder"
mkdir -p "$root/.cargo"
(cd "$root" && cargo vendor --quiet --locked --versioned-dirs vendor)
cat >"$root/.cargo/config.toml" <<'END'
[source.crates-io]
replace-with = "vendor"

[source.vendor]
directory = "vendor"
END
# The time of the commit and no names, so that the same commit makes the same archive.
tar -c -C "$folder" --sort=name --owner=0 --group=0 --numeric-owner \
    --mtime="@$(git -C "$here" log -1 --format=%ct)" "$name" | gzip -9n >"$folder/$name.tar.gz"
rm -rf "$root"
echo "$folder/$name.tar.gz"
