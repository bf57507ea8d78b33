// The conformance suite cannot send a token: this loopback proxy adds it. proxy.mjs PORT TOKEN; prints its own
// port, ends when its input does. A Host or Origin that means the proxy is made to mean the daemon; any other
// passes unchanged, because the suite tests that a foreign one is refused.
import http from 'node:http';

const [port, token] = process.argv.slice(2);
const server = http.createServer((incoming, answer) => {
  const own = String(server.address().port);
  const headers = { ...incoming.headers, authorization: `Bearer ${token}` };
  for (const name of ['host', 'origin']) {
    if (headers[name]?.endsWith(`:${own}`)) headers[name] = headers[name].slice(0, -own.length) + port;
  }
  const onward = http.request({ host: '127.0.0.1', port, method: incoming.method, path: incoming.url, headers }, (reply) => {
    answer.writeHead(reply.statusCode, reply.headers);
    reply.pipe(answer);
  });
  onward.on('error', () => (answer.headersSent ? answer.destroy() : answer.writeHead(502).end()));
  // A client that goes away cancels; the daemon must notice through us.
  answer.on('close', () => onward.destroy());
  incoming.pipe(onward);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.resume().on('end', () => process.exit(0));
