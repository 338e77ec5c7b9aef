// The SDK of MCP for the tests of docs/sent-twice.md, from the folder MCP_SDK.

import { createRequire } from 'node:module';
import path from 'node:path';

const load = (name) =>
  createRequire(path.join(process.env.MCP_SDK, 'index.js'))(`@modelcontextprotocol/sdk/${name}.js`);

/** The names of the server's imports. */
export const mcpServer = () => ({ ...load('server/mcp'), ...load('server/stdio') });

/** Starts a server with these arguments of Node, and connects to it. */
export async function mcpClient(args, env) {
  const { Client } = load('client/index');
  const { StdioClientTransport } = load('client/stdio');
  const client = new Client({ name: 'test', version: '1.0.0' });
  const transport = new StdioClientTransport({ command: process.execPath, args, env });
  await client.connect(transport);
  return { client, pid: transport.pid };
}
