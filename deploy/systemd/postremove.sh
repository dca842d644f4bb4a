#!/bin/sh
# What `systemctl enable`, the administrator and the service have made: a link to the unit,
# which dangles without it, the copy of nftables.conf, and the state. dpkg keeps both until "purge"; rpm knows no purge, and
# keeps the state.
set -e
links() {
	rm -f /etc/systemd/system/multi-user.target.wants/lately.service /etc/systemd/system/lately.service.d/nftables.conf
	rmdir --ignore-fail-on-non-empty /etc/systemd/system/lately.service.d 2>/dev/null || true
}
case "$1" in
purge)
	links
	# With DynamicUser= the directory is private/lately, and lately a link to it.
	rm -rf /var/lib/lately /var/lib/private/lately /etc/lately
	;;
0) links ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
