#!/bin/sh
# Not before an upgrade, after which what runs is restarted: only the removal is
# called "remove" by dpkg, and 0, what is left, by rpm.
set -e
if [ -d /run/systemd/system ]; then
	case "$1" in remove | 0) systemctl stop lately.service || true ;; esac
fi
