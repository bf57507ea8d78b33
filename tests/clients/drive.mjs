// Drives tabmux with the TypeScript SDK: drive.mjs MODE stdio TABMUX | drive.mjs MODE http URL TOKEN.
// MODE is legacy, auto, or a protocol version to pin. Prints one JSON line; a failed step throws.
// Run in the directory that holds node_modules.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(`${process.cwd()}/`);
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

const [mode, door, where, token] = process.argv.slice(2);
const negotiation = mode === 'legacy' || mode === 'auto' ? mode : { pin: mode };
const client = new Client({ name: 'tabmux-tests', version: '0' }, { versionNegotiation: { mode: negotiation } });
const transport =
  door === 'stdio'
    ? new StdioClientTransport({ command: where, args: ['mcp'], env: process.env })
    : new StreamableHTTPClientTransport(new URL(where), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });
await client.connect(transport);

const call = (name, args) => client.callTool({ name, arguments: args });
const { tools } = await client.listTools();
assert(tools.some((tool) => tool.name === 'start_browser'));

// Made by a tool, never by connecting.
const opened = await call('start_browser', { navigationUrl: 'https://example.test/ts' });
assert(!opened.isError, JSON.stringify(opened));
const session = opened._meta['tabmux/result'].sessionId;

const here = await call('evaluate', { sessionId: session, script: 'location.href' });
assert.match(here.content[0].text, /https:\/\/example\.test\/ts/);

const missing = await call('evaluate', { sessionId: 'ghost', script: '1' });
assert(missing.isError);
assert.match(missing.content[0].text, /^\[session_not_found\] No session: ghost/);

const listed = (await call('list_sessions', {})).structuredContent;
const closed = await call('close_session', { sessionId: session });
assert(!closed.isError, JSON.stringify(closed));
console.log(JSON.stringify({ version: client.getNegotiatedProtocolVersion?.(), session, listed: listed.sessions.length }));
await client.close();
