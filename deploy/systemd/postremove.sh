#!/bin/sh
# What `systemctl enable` and the service have made: links to the units, which dangle
# without them, and the state. dpkg keeps both until "purge"; rpm knows no purge, and
# keeps the state.
set -e
links() {
	for wants in multi-user.target.wants lately.service.wants; do
		rm -f "/etc/systemd/system/$wants/lately.service" "/etc/systemd/system/$wants/lately-nft.service"
	done
	rmdir --ignore-fail-on-non-empty /etc/systemd/system/lately.service.wants 2>/dev/null || true
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
