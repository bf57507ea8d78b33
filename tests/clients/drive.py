"""Drives tabmux with the Python SDK: drive.py MODE stdio TABMUX | drive.py MODE http URL TOKEN.

MODE is the SDK's own: auto, legacy, or a protocol version. Prints one JSON line; a failed step raises.
"""

import json
import os
import sys

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


async def steps(client: Client) -> dict:
    tools = [tool.name for tool in (await client.list_tools()).tools]
    assert "start_browser" in tools and "list_sessions" in tools, tools

    # Made by a tool, never by connecting.
    opened = await client.call_tool("start_browser", {"navigationUrl": "https://example.test/python"})
    assert not opened.is_error, opened
    session = opened.meta["tabmux/result"]["sessionId"]

    here = await client.call_tool("evaluate", {"sessionId": session, "script": "location.href"})
    assert "https://example.test/python" in here.content[0].text, here

    missing = await client.call_tool("evaluate", {"sessionId": "ghost", "script": "1"})
    assert missing.is_error and missing.content[0].text.startswith("[session_not_found] No session: ghost"), missing

    listed = (await client.call_tool("list_sessions", {})).structured_content
    closed = await client.call_tool("close_session", {"sessionId": session})
    assert not closed.is_error, closed
    return {"version": client.protocol_version, "session": session, "listed": len(listed["sessions"]), "tools": tools}


async def main(mode: str, door: str, where: str, token: str = "") -> None:
    if door == "stdio":
        server = StdioServerParameters(command=where, args=["mcp"], env=dict(os.environ))
        async with Client(server, mode=mode) as client:
            found = await steps(client)
    else:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as http:
            async with Client(streamable_http_client(where, http_client=http), mode=mode) as client:
                found = await steps(client)
    print(json.dumps(found))


anyio.run(main, *sys.argv[1:])
