"""Print what fail2ban finds in its own sample logs, as JSON: for each jail the lines, addresses and times.

Usage: fail2ban.py CHECKOUT
"""

import json
import os
import re
import sys

root = sys.argv[1]
sys.path.insert(0, root)
os.environ["TZ"] = "UTC"

from fail2ban.client.jailreader import JailReader  # noqa: E402
from fail2ban.server.filter import Filter  # noqa: E402

config = os.path.join(root, "config")
logs = os.path.join(root, "fail2ban", "tests", "files", "logs")


def commands(name):
    """Return the settings of the filter of a jail as fail2ban sends them to its server."""
    reader = JailReader(name, basedir=config, force_enable=True)
    reader.read()
    reader.getOptions()
    part = reader._JailReader__filter
    return os.path.basename(part._file), part.convert()


def make(stream):
    """Return a filter with these settings."""
    f = Filter(None)
    f.checkAllRegex, f.checkFindTime, f.returnRawHost = False, False, True
    for command in stream:
        key, value = command[2], command[3]
        values = value if command[0] == "multi-set" else [value]
        if key == "prefregex":
            f.prefRegex = value
        elif key == "maxlines":
            f.setMaxLines(int(value))
        elif key == "datepattern":
            f.setDatePattern(value)
        elif key == "usedns":
            f.setUseDns(value)
        elif key == "addfailregex":
            for v in values:
                f.addFailRegex(v)
        elif key == "addignoreregex":
            for v in values:
                f.addIgnoreRegex(v)
    return f


def main():
    with open(os.path.join(config, "jail.conf")) as jails:
        names = re.findall(r"^\[([^\]]+)\]", jails.read(), re.M)
    found = {}
    for name in names:
        if name in ("INCLUDES", "DEFAULT"):
            continue
        log, stream = commands(name)
        path = os.path.join(logs, log)
        if not os.path.exists(path):
            found[name] = {"log": log, "missing": True}
            continue
        f, all = make(stream), []
        with open(path, encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                line = line.rstrip("\r\n")
                if line.startswith("#") or not line.strip():
                    continue
                try:
                    for _, address, at, _ in f.processLine(line):
                        all.append([number, str(address), at])
                except Exception as e:
                    all.append([number, "error: %r" % e, 0])
        found[name] = {"log": log, "found": all}
    json.dump(found, sys.stdout)


main()
