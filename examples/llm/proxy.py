"""A proxy for an API like OpenAI's, with a budget of tokens for each user.

    UPSTREAM_KEY=... python3 proxy.py --keys keys.json --upstream https://api.example.com

keys.json names the user of each key that clients may send: {"sk-ada": "ada"}. Before a
request is passed on, an estimate of its tokens is reserved at Lately; when the answer has
ended, what it really cost is settled. It needs the standard library of Python 3.9 only.
"""

import argparse
import http.client
import json
import os
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def connect(url, timeout):
    u = urllib.parse.urlsplit(url)
    kind = http.client.HTTPSConnection if u.scheme == "https" else http.client.HTTPConnection
    return kind(u.netloc, timeout=timeout)


def lately(path, body):
    """Sends a request to Lately, and returns its answer. It raises OSError."""
    headers = {"Content-Type": "application/json"}
    if os.environ.get("LATELY_TOKEN"):
        headers["Authorization"] = "Bearer " + os.environ["LATELY_TOKEN"]
    link = connect(options.lately, 1)
    try:
        link.request("POST", path, json.dumps(body), headers)
        answer = link.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise OSError(f"Lately answers {answer.status}: {text.decode()}")
        return json.loads(text)
    except (http.client.HTTPException, ValueError) as e:
        raise OSError(f"Lately: {e}") from e
    finally:
        link.close()


class Proxy(BaseHTTPRequestHandler):
    def do_POST(self):
        user = keys.get((self.headers.get("Authorization") or "").removeprefix("Bearer "))
        if user is None:
            return self.refuse(401, "unknown key")
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            prompt = len(json.dumps(body.get("messages", body.get("input", "")))) // 3  # rather too many
            most = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
            body.setdefault(most, options.max_tokens)
            estimate = max(1, prompt + int(body[most]) * int(body.get("n", 1)))
        except (ValueError, TypeError, AttributeError) as e:
            return self.refuse(400, f"not a request in JSON: {e}")
        if body.get("stream"):
            body["stream_options"] = {"include_usage": True}
        try:
            event = {"user": user, "model": str(body.get("model", ""))}
            d = lately("/v1/reserve", {"event": event, "cost": estimate, "for_ms": 600_000})
        except OSError as e:
            self.log_error("%s", e)
            return self.refuse(503, "the limits are not available")
        if not d["allowed"]:
            wait = -(-d["retry_after_ms"] // 1000) if d["retry_after_ms"] >= 0 else None  # more than the budget ever has
            return self.refuse(429, f"the budget {d['rule']} has {d['remaining']} of {d['limit']} tokens left, and this request may need {estimate}", wait)
        self.cost = estimate
        try:
            self.forward(json.dumps(body), prompt)
        except (OSError, ValueError, http.client.HTTPException) as e:  # of the client or of the upstream
            self.log_error("%s: %s", user, e)
        finally:
            try:
                lately("/v1/settle", {"id": d["id"], "cost": self.cost})
            except OSError as e:
                self.log_error("%s: charged as reserved: %s", user, e)

    def forward(self, body, prompt):
        """Passes a request on, and makes self.cost what it has cost."""
        link = connect(options.upstream, 300)
        try:
            try:
                link.request("POST", self.path, body, {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ.get("UPSTREAM_KEY", "")})
                answer = link.getresponse()
            except (OSError, http.client.HTTPException):
                self.cost = 0
                return self.refuse(502, "the model is not available")
            if answer.status != 200:
                self.cost = 0
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers.get("Content-Type", "application/json"))
            self.send_header("Connection", "close")
            self.end_headers()
            if answer.headers.get("Content-Type", "").startswith("text/event-stream"):
                return self.stream(answer, prompt)
            text = answer.read()
            if answer.status == 200:
                self.cost = json.loads(text).get("usage", {}).get("total_tokens", self.cost)
            self.wfile.write(text)
        finally:
            link.close()  # ends an answer that nobody reads any more

    def stream(self, answer, prompt):
        """Passes an event stream on. A client that leaves has cost what it was sent."""
        self.cost, sent = prompt, 0
        for line in answer:
            if line.startswith(b"data: {"):
                chunk = json.loads(line[len(b"data: "):])
                for choice in chunk.get("choices", []):
                    sent += len((choice.get("delta") or {}).get("content") or "")
                usage = chunk.get("usage")
                self.cost = usage["total_tokens"] if usage else prompt + sent // 3
            self.wfile.write(line)
            self.wfile.flush()

    def refuse(self, status, message, wait=None):
        text = json.dumps({"error": {"message": message, "type": "rate_limit_error" if status == 429 else "error", "code": status}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        if wait is not None:
            self.send_header("Retry-After", str(wait))
        self.end_headers()
        self.wfile.write(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys", required=True, help="JSON file with the user of each key")
    parser.add_argument("--upstream", required=True, help="URL of the API, without a path")
    parser.add_argument("--lately", default="http://127.0.0.1:7380", help="URL of the server of Lately")
    parser.add_argument("--listen", default="127.0.0.1:8080", help="address")
    parser.add_argument("--max-tokens", type=int, default=1000, help="for requests that have no limit")
    options = parser.parse_args()
    with open(options.keys, encoding="utf-8") as file:
        keys = json.load(file)
    host, _, port = options.listen.rpartition(":")
    server = ThreadingHTTPServer((host, int(port)), Proxy)
    print(f"listening on {host}:{server.server_port}", flush=True)
    server.serve_forever()
