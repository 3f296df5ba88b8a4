#!/bin/sh
# Installs the program and what belongs to it, or removes that again; `make install` and `make uninstall` call it.
#
#     PROGRAM=target/release/snugly PREFIX=/usr/local DESTDIR= sh packaging/install.sh install | uninstall
#
# It knows where files go, and nothing of users or services: who installs on this machine is told what is left to do.
set -eu
umask 022
here=$(cd "$(dirname "$0")" && pwd)
root=$DESTDIR$PREFIX
man=$root/share/man/man1
bash=$root/share/bash-completion/completions/snugly
zsh=$root/share/zsh/${ZSH_FOLDER:-site-functions}/_snugly
fish=$root/share/fish/vendor_completions.d/snugly.fish
unit=$root/lib/systemd/system/snugly.service
socket=$root/lib/systemd/system/snugly.socket
user=$root/lib/sysusers.d/snugly.conf
# Where the program looks for it, whatever the prefix.
settings=$DESTDIR/etc/snugly/snugly.toml

# Writes standard input to a file.
put() {
    mkdir -p "$(dirname "$1")"
    cat >"$1.new"
    chmod 644 "$1.new"
    mv -f "$1.new" "$1"
}

case $1 in
install)
    [ -x "$PROGRAM" ] || { echo "there is no program at $PROGRAM: build it first (make program)" >&2; exit 1; }
    mkdir -p "$root/bin" "$man"
    # A program that runs is not written over, but replaced.
    cp "$PROGRAM" "$root/bin/snugly.new"
    chmod 755 "$root/bin/snugly.new"
    mv -f "$root/bin/snugly.new" "$root/bin/snugly"
    "$PROGRAM" man "$man"
    "$PROGRAM" completions bash | put "$bash"
    "$PROGRAM" completions zsh | put "$zsh"
    "$PROGRAM" completions fish | put "$fish"
    sed "s|/usr/bin/snugly|$PREFIX/bin/snugly|" "$here/systemd/snugly.service" | put "$unit"
    put "$socket" <"$here/systemd/snugly.socket"
    put "$user" <"$here/systemd/sysusers.conf"
    # What an administrator has changed stays.
    [ -e "$settings" ] || put "$settings" <"$here/snugly.toml"
    [ -n "$DESTDIR" ] || echo "To run it as a service: systemd-sysusers && systemctl daemon-reload && systemctl enable --now snugly"
    ;;
uninstall)
    rm -f "$root/bin/snugly" "$man"/snugly.1 "$man"/snugly-*.1 "$bash" "$zsh" "$fish" "$unit" "$socket" "$user"
    [ ! -e "$settings" ] || echo "$settings stays, and so does the store"
    ;;
*)
    echo "usage: install.sh install | uninstall" >&2
    exit 2
    ;;
esac
