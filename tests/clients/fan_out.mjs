// Lets several sessions work at once with the TypeScript SDK: fan_out.mjs TABMUX. Prints one JSON line; a failed step throws.
// Run in the directory that holds node_modules.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(`${process.cwd()}/`);
const { Client } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

const [tabmux] = process.argv.slice(2);
const client = new Client({ name: 'tabmux-tests', version: '0' });
await client.connect(new StdioClientTransport({ command: tabmux, args: ['mcp'], env: process.env }));
const call = (name, args) => client.callTool({ name, arguments: args });

for (const name of ['one', 'two', 'three']) {
  const opened = await call('start_browser', { sessionId: name, navigationUrl: `https://${name}.test/` });
  assert(!opened.isError, JSON.stringify(opened));
}

// The same in all, and each of its own.
const look = [{ action: 'evaluate', script: 'location.href', save: 'here' }];
const same = await call('execute_sequence', { fanOut: ['one', 'two', 'three'], actions: look });
assert(!same.isError, JSON.stringify(same));
const own = ['one', 'two'].map((name) => ({ sessionId: name, actions: [{ action: 'navigate', url: `https://${name}.test/own` }, ...look] }));
const each = await call('execute_sequence', { fanOut: own });
assert(!each.isError, JSON.stringify(each));

// One that fails makes the whole fail, and says which.
const failed = await call('execute_sequence', { fanOut: [own[0], { sessionId: 'three', actions: [{ action: 'assert', url: 'nowhere' }] }] });
assert(failed.isError);
assert.match(failed.content[0].text, /^\[assert_failed\]/);
console.log(JSON.stringify({ same: same._meta['tabmux/result'], each: each.content[0].text, failed: failed.content[0].text }));
await client.close();
