#!/bin/sh
# Makes a package for Debian of the program that is built, for this machine's architecture; `make package-deb` calls it.
#
#     PROGRAM=target/release/snugly VERSION=0.1.0 sh packaging/debian/build.sh FOLDER
#
# It knows what dpkg wants, and leaves to `install.sh` what is installed where. The package goes to FOLDER.
set -eu
umask 022
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
architecture=$(dpkg --print-architecture)
name=snugly_${VERSION}_$architecture
root=$folder/$name
rm -rf "$root"
mkdir -p "$root/DEBIAN"

PREFIX=/usr DESTDIR=$root ZSH_FOLDER=vendor-completions sh "$here/../install.sh" install
gzip -9n "$root"/usr/share/man/man1/*.1
documents=$root/usr/share/doc/snugly
mkdir -p "$documents"
cp "$here/copyright" "$documents/copyright"
# The time of the commit, so that the same sources make the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$here" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
maintainer=$(sed -n 's/^Maintainer: //p' "$here/control")
gzip -9n >"$documents/changelog.gz" <<END
snugly ($VERSION) unstable; urgency=medium

  * What has changed is told by CHANGELOG.md of the sources.

 -- $maintainer  $(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")
END

# dpkg-shlibdeps reads the packages' names from debian/control.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/debian"
echo "Source: snugly" >"$work/debian/control"
libraries=$(cd "$work" && dpkg-shlibdeps -O "$root/usr/bin/snugly" 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
[ -n "$libraries" ] || { echo "dpkg-shlibdeps finds no libraries: is dpkg-dev installed?" >&2; exit 1; }
sed -e "s/@VERSION@/$VERSION/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@LIBRARIES@/$libraries/" \
    -e "s/@KILOBYTES@/$(du -k -s "$root/usr" | cut -f1)/" "$here/control" >"$root/DEBIAN/control"
echo /etc/snugly/snugly.toml >"$root/DEBIAN/conffiles"
(cd "$root" && find etc usr -type f -exec md5sum {} +) >"$root/DEBIAN/md5sums"
for script in postinst prerm postrm; do
    install -m 755 "$here/$script" "$root/DEBIAN/$script"
done
dpkg-deb --root-owner-group --build "$root" "$folder/$name.deb" >/dev/null
rm -rf "$root"
echo "$folder/$name.deb"
