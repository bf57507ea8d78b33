"""Lets several sessions work at once with the Python SDK: fan_out.py TABMUX. Prints one JSON line; a failed step raises."""

import json
import os
import sys

import anyio
from mcp import Client, StdioServerParameters


async def main(tabmux: str) -> None:
    server = StdioServerParameters(command=tabmux, args=["mcp"], env=dict(os.environ))
    async with Client(server) as client:

        async def call(tool: str, arguments: dict):
            return await client.call_tool(tool, arguments)

        for name in ["one", "two", "three"]:
            opened = await call("start_browser", {"sessionId": name, "navigationUrl": f"https://{name}.test/"})
            assert not opened.is_error, opened

        # The same in all, and each of its own.
        look = [{"action": "evaluate", "script": "location.href", "save": "here"}]
        same = await call("execute_sequence", {"fanOut": ["one", "two", "three"], "actions": look})
        assert not same.is_error, same
        own = [{"sessionId": name, "actions": [{"action": "navigate", "url": f"https://{name}.test/own"}, *look]} for name in ["one", "two"]]
        each = await call("execute_sequence", {"fanOut": own})
        assert not each.is_error, each

        # One that fails makes the whole fail, and says which.
        failing = [own[0], {"sessionId": "three", "actions": [{"action": "assert", "url": "nowhere"}]}]
        failed = await call("execute_sequence", {"fanOut": failing})
        assert failed.is_error and failed.content[0].text.startswith("[assert_failed]"), failed
        print(json.dumps({"same": same.meta["tabmux/result"], "each": each.content[0].text, "failed": failed.content[0].text}))


anyio.run(main, *sys.argv[1:])
