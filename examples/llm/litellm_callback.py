"""A budget of tokens for each user of the LiteLLM proxy.

In LiteLLM's config.yaml, beside which this file is:

    litellm_settings:
      callbacks: litellm_callback.budget

The environment has LATELY_URL (http://127.0.0.1:7380 by default) and LATELY_TOKEN. An
estimate is reserved before each call, and its true cost is settled afterwards.
"""

import asyncio
import json
import os
import urllib.error
import urllib.request

from fastapi import HTTPException
from litellm.integrations.custom_logger import CustomLogger

MAX_TOKENS = 1000  # of a call that has no limit


def lately(path, body):
    headers = {"Content-Type": "application/json"}
    if os.environ.get("LATELY_TOKEN"):
        headers["Authorization"] = "Bearer " + os.environ["LATELY_TOKEN"]
    url = os.environ.get("LATELY_URL", "http://127.0.0.1:7380") + path
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=1) as answer:
        return json.load(answer)


class Budget(CustomLogger):
    async def async_pre_call_hook(self, user_api_key_dict, cache, data, call_type):
        user = user_api_key_dict.user_id or user_api_key_dict.api_key
        prompt = len(json.dumps(data.get("messages") or data.get("input") or "", default=str)) // 3
        estimate = max(1, prompt + int(data.get("max_completion_tokens") or data.get("max_tokens") or MAX_TOKENS))
        event = {"user": user, "model": str(data.get("model", ""))}
        try:
            d = await asyncio.to_thread(lately, "/v1/reserve", {"event": event, "cost": estimate, "for_ms": 600_000})
        except (OSError, ValueError) as e:
            raise HTTPException(503, "the limits are not available") from e
        if not d["allowed"]:
            wait = -(-d["retry_after_ms"] // 1000)
            message = f"the budget {d['rule']} has {d['remaining']} of {d['limit']} tokens left, and this request may need {estimate}"
            raise HTTPException(429, message, headers={"Retry-After": str(wait)} if d["retry_after_ms"] >= 0 else {})  # -1: no waiting helps
        data.setdefault("metadata", {})["lately_id"] = d["id"]
        return data

    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        usage = getattr(response_obj, "usage", None)
        await self.settle((kwargs.get("litellm_params") or {}).get("metadata"), getattr(usage, "total_tokens", None))

    # Not async_log_failure_event, which LiteLLM calls for each attempt: a retry or a fallback may still succeed.
    async def async_post_call_failure_hook(self, request_data, original_exception, user_api_key_dict, traceback_str=None):
        await self.settle(request_data.get("metadata"), 0)

    async def settle(self, metadata, cost):
        metadata = metadata or {}
        if metadata.get("lately_id") and cost is not None:  # else it stays charged as reserved
            try:
                await asyncio.to_thread(lately, "/v1/settle", {"id": metadata["lately_id"], "cost": cost})
            except (OSError, ValueError):
                pass  # the same


budget = Budget()
