"""Counts how many keys of a log a sliding limit refuses, by the definition in words.

Reads JSON from standard input: the folder of oracle.py (whose parsers it uses), an entry of
its manifest, whether keys are objects, and limits as [span in seconds, N]. Writes for each
limit the number of keys, and of those that are ever refused, as a list of pairs. It shares
no code with what it checks. Times are whole seconds.
"""
import collections
import ipaddress
import json
import os
import sys

task = json.load(sys.stdin)
sys.path.insert(0, task['oracle'])
sys.dont_write_bytecode = True
import oracle  # noqa: E402


def fold(client):
    """The key of a client: an IPv6 address counts by its /64."""
    try:
        a = ipaddress.ip_address(client)
    except ValueError:
        return client
    if a.version == 4:
        return client
    if a.ipv4_mapped:
        return str(a.ipv4_mapped)
    return str(ipaddress.ip_network((a, 64), strict=False))


def exact(times, n, span):
    """Whether more than n events are in any (t - span, t]."""
    window = collections.deque()
    for t in times:
        window.append(t)
        while window[0] <= t - span:
            window.popleft()
        if len(window) > n:
            return True
    return False


def slots(times, n, span):
    """The same, as a limit of more than 128 counts: up to 3 times exactly, then in 60 slots
    that count until their last second has left the window."""
    width = max(span // 60, 1)
    few, counts, total = [], collections.OrderedDict(), 0
    for t in times:
        few = [s for s in few if s > t - span]
        while counts and (next(iter(counts)) + 1) * width - 1 <= t - span:
            total -= counts.popitem(last=False)[1]
        if total + len(few) >= n:
            return True
        if total == 0 and len(few) < 3:
            few.append(t)
            continue
        for s in few + [t]:
            counts[s // width] = counts.get(s // width, 0) + 1
            total += 1
        few = []
    return False


rows, _, _ = oracle.load(os.path.join(task['oracle'], task['entry']['file']), task['entry'])
rows.sort(key=lambda r: r[0])
keys = collections.defaultdict(list)
for t, client, objects in rows:
    if task['object']:
        for o in objects:
            keys[o].append(t)
    elif client:
        keys[fold(client)].append(t)
answers = []
for span, n in task['limits']:
    refuses = exact if n <= 128 else slots
    answers.append([len(keys), sum(len(times) > n and refuses(times, n, span) for times in keys.values())])
json.dump(answers, sys.stdout)
