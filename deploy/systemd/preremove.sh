#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
	systemctl stop lately.service || true
fi
