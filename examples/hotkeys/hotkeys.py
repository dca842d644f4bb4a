"""Hot keys of a fleet for Python programs, over redis-py.

    products = HotKeys("product", ["127.0.0.1:6380"], load=from_database, ttl=10)
    page = products.get("/product/7")  # from memory while the key is hot
    products.changed("/product/7")     # every process loads it again

Uses are counted here and reported every 50 ms to the server that has the key. The
servers say which keys are hot; values of these are kept for ttl seconds.
"""

import json, random, threading, time
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

TIMEOUT = 1  # seconds that a server may take to answer; one that takes longer is down


class Value:
    def __init__(self):
        self.lock, self.value, self.until = threading.Lock(), None, 0


class HotKeys:
    def __init__(self, rule, nodes, load, ttl, password=None, most=100_000):
        self.rule, self.load, self.ttl, self.most = rule, load, ttl, most
        self.lost = 0  # uses of which no server was told
        self._lock, self._counts, self._values = threading.Lock(), {}, {}
        self._saved = [0, 0, 0]  # hits, misses and loads since the last report
        self._hot, self._up = {n: {} for n in nodes}, {}  # hot: key -> end of its hold
        for n in nodes:
            host, port = n.rsplit(":", 1)
            once = Retry(NoBackoff(), 0)  # a report that is sent twice may count twice
            server = redis.Redis(host, int(port), password=password, client_name="python", retry=once,
                                 socket_connect_timeout=TIMEOUT, socket_timeout=TIMEOUT)
            threading.Thread(target=self._watch, args=(n, server), daemon=True).start()
        self._closed = threading.Event()
        self._reports = threading.Thread(target=self._report, daemon=True)
        self._reports.start()

    def get(self, key):
        """Counts a use of key and returns its value. Threads share one load of a hot key."""
        now = time.monotonic()
        with self._lock:
            if key in self._counts or len(self._counts) < self.most:
                self._counts.setdefault(key, [0, now])[0] += 1
            else:
                self.lost += 1
            hot = self._is_hot(key, now)
            entry = self._values.setdefault(key, Value()) if hot else None
            hit = hot and entry.until > now
            self._saved[0 if hit else 1] += 1
        if not hot:
            return self._load(key)
        with entry.lock:
            if entry.until <= now:
                entry.value, entry.until = self._load(key), time.monotonic() + self.ttl
            return entry.value

    def _load(self, key):
        with self._lock:
            self._saved[2] += 1
        return self.load(key)

    def changed(self, key):
        """Tells all processes that the value of key has changed at its source."""
        with self._lock:
            self._values.pop(key, None)
        self._send(self._node(key), "HOT.CHANGED", self.rule, *key.split("\t"))

    def close(self):
        """Reports what was not reported yet. The object must not be used any more."""
        self._closed.set()
        self._reports.join()

    def _is_hot(self, key, now):
        return any(hot.get(key, 0) > now for hot in self._hot.values())

    def _watch(self, node, server):
        while True:
            try:
                with server.pubsub(ignore_subscribe_messages=True) as watch:
                    watch.subscribe("hot.watch:" + self.rule)
                    while True:
                        server.ping()  # a server that is stopped closes no connection
                        self._up[node] = server
                        again = time.monotonic() + TIMEOUT
                        while time.monotonic() < again:
                            message = watch.get_message(timeout=TIMEOUT)
                            if message:
                                self._apply(self._hot[node], json.loads(message["data"]))
            except redis.RedisError:
                self._up.pop(node, None)
                time.sleep(2 * random.random())

    def _apply(self, hot, update):
        keys = lambda entries: [("\t".join(e["key"]), e) for e in entries if "key" in e]
        now = time.monotonic()
        with self._lock:
            if update["reset"]:
                gone = list(hot)
                hot.clear()
            else:
                gone = [k for k, _ in keys(update["cold"] + update["changed"])]
            for k, _ in keys(update["cold"]):
                hot.pop(k, None)
            for k, e in keys(update["hot"]):
                hot[k] = now + e.get("ttl_ms", float("inf")) / 1000
            for k in gone:
                self._values.pop(k, None)

    def _report(self):
        last = False
        while not last:
            last = self._closed.wait(0.05)
            with self._lock:
                counts, self._counts, now = self._counts, {}, time.monotonic()
                saved, self._saved = self._saved, [0, 0, 0]
                self._values = {k: v for k, v in self._values.items() if self._is_hot(k, now)}
            by_node = {}
            for key, (n, since) in counts.items():
                by_node.setdefault(self._node(key), []).append((key.split("\t"), n, int(1000 * (now - since))))
            for node, records in by_node.items():
                for i in range(0, len(records), 100):
                    part = records[i : i + 100]
                    args = [a for values, n, age in part for a in (*values, n, age)]
                    if not self._send(node, "HOT.REPORT", self.rule, *args):
                        self.lost += sum(n for _, n, _ in part)
            if any(saved) and not self._send(self._node(""), "HOT.CACHE", self.rule, *saved, 0):
                with self._lock:
                    self._saved = [a + b for a, b in zip(self._saved, saved)]

    def _send(self, node, *args):
        try:
            self._up[node].execute_command(*args)
            return True
        except (redis.ConnectionError, redis.TimeoutError):
            self._up.pop(node, None)  # its keys go to the others, until it answers again
            return False
        except (redis.RedisError, KeyError):
            return False

    def _node(self, key):  # rendezvous hashing, the same in every client
        h = mix(fnv1a(self.rule.encode() + b"\0" + key.encode()))
        return max(list(self._up) or self._hot, key=lambda n: mix(mix(fnv1a(n.encode())) ^ h))


def fnv1a(data):
    h = 0xCBF29CE484222325
    for b in data:
        h = (h ^ b) * 0x100000001B3 % 2**64
    return h


def mix(h):  # the finalizer of MurmurHash3
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        h = (h ^ h >> 33) * factor % 2**64
    return h ^ h >> 33
