// The AWS SDK with `repairingMiddleware()`, against the stand-in: the body is repaired before it is signed.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { BedrockRuntimeClient, ConverseCommand, ConverseStreamCommand } from '@aws-sdk/client-bedrock-runtime';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { repairing, repairingMiddleware } from '../../js/entry/fetch-node.js';
import { startStandIn } from '../stand-in/server.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

const MODEL = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0';
const tools = [{ toolSpec: { name: 'look', inputSchema: { json: { type: 'object' } } } }];
const question = { role: 'user', content: [{ text: 'Weather?' }] };
const call = { role: 'assistant', content: [{ toolUse: { toolUseId: 't1', name: 'look', input: {} } }] };
/** A call without its result. */
const broken = [question, call, { role: 'user', content: [{ text: 'Hello?' }] }];

function clientOf(lane, options, settings = {}) {
  const client = new BedrockRuntimeClient({
    region: 'us-east-1',
    endpoint: `${standIn.url}/lane/${lane}`,
    credentials: { accessKeyId: 'AKIAEXAMPLE', secretAccessKey: 'secret' },
    maxAttempts: 1,
    requestHandler: new NodeHttpHandler(),
    ...settings,
  });
  if (options) client.middlewareStack.add(repairingMiddleware(options), { step: 'build', name: 'rethread' });
  return client;
}

const requests = (lane) => standIn.state.lane(lane).requests;
const converse = (client, messages, more = {}) =>
  client.send(new ConverseCommand({ modelId: MODEL, messages, toolConfig: { tools }, ...more }));

test('r41_a_body_of_the_aws_sdk_is_repaired_before_it_is_signed', async () => {
  await assert.rejects(converse(clientOf('plain'), broken), /Expected toolResult blocks/);
  const infos = [];
  const client = clientOf('repaired', { onRepair: (info) => infos.push(info) });
  const answer = await converse(client, broken);
  assert.equal(answer.output.message.role, 'assistant');
  const [request] = requests('repaired');
  assert.equal(request.status, 200);
  assert.equal(request.body.messages[2].content[0].toolResult.toolUseId, 't1');
  assert.equal(request.headers.authorization, 'present');
  assert.equal(Number(request.headers['content-length']), Buffer.byteLength(request.bodyText));
  assert.deepEqual(
    infos.map(({ dialect, report }) => [dialect, report[0].code]),
    [['bedrock', 'dangling_call']],
  );
});

test('r41_a_streamed_request_of_the_aws_sdk_is_repaired', async () => {
  standIn.state.lane('streamed').script = [{ text: 'Sunny.', pieces: 2 }];
  const client = clientOf('streamed', {});
  const { stream } = await client.send(
    new ConverseStreamCommand({ modelId: MODEL, messages: broken, toolConfig: { tools } }),
  );
  const events = [];
  for await (const event of stream) events.push(Object.keys(event)[0]);
  assert.equal(events.at(-1), 'metadata');
  assert.equal(requests('streamed')[0].status, 200);
});

test('r41_a_valid_body_of_the_aws_sdk_is_sent_byte_for_byte', async () => {
  const valid = [question];
  await converse(clientOf('bytes-plain'), valid);
  await converse(clientOf('bytes-middleware', {}), valid);
  assert.equal(requests('bytes-middleware')[0].bodyText, requests('bytes-plain')[0].bodyText);
});

test('r74_a_known_refusal_is_healed_and_sent_once_more', async () => {
  const message =
    "This model doesn't support the toolConfig.toolChoice.any field. Remove toolConfig.toolChoice.any and try again.";
  const infos = [];
  const client = clientOf('healed', { onRepair: (info) => infos.push(info) });
  const agents = [];
  client.middlewareStack.add(
    (next) => (args) => {
      const { headers } = args.request;
      agents.push(`${headers['user-agent']} | ${headers['x-amz-user-agent']}`);
      return next(args);
    },
    { step: 'finalizeRequest' },
  );
  standIn.state.lane('healed').script = [{ status: 400, message }, { text: 'Sunny.' }];
  await converse(client, [question], { toolConfig: { tools, toolChoice: { any: {} } } });
  const sent = requests('healed').map(({ body }) => body.toolConfig.toolChoice);
  assert.deepEqual(sent, [{ any: {} }, undefined]);
  // The second request has the headers of the first: the SDK's later steps add to what they find.
  assert.equal(agents.length, 2);
  assert.equal(agents[1], agents[0]);
  assert.deepEqual(
    infos.map(({ report }) => report[0].code),
    ['healed'],
  );
  // Another error is the caller's.
  standIn.state.lane('other').script = [{ status: 400, message: 'No such thing.' }];
  await assert.rejects(converse(clientOf('other', {}), [question]), /No such thing/);
  assert.equal(requests('other').length, 1);
});

test('r41_modes_of_the_middleware', async () => {
  const rejecting = clientOf('rejected', { mode: 'reject' });
  await assert.rejects(converse(rejecting, broken), (error) => error.code === 'invalid_input');
  assert.equal(requests('rejected').length, 0);
  const reporting = clientOf('reported', { mode: 'report' });
  await assert.rejects(converse(reporting, broken), /Expected toolResult blocks/);
  assert.throws(
    () => repairingMiddleware({ mode: 'mend' }),
    (error) => error.code === 'config_invalid',
  );
});

test('r41_a_request_with_an_api_key_is_repaired_by_fetch', async () => {
  const fetch = repairing();
  const url = `${standIn.url}/lane/fetched/model/${encodeURIComponent(MODEL)}/converse`;
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer bedrock-api-key' },
    body: JSON.stringify({ messages: broken, toolConfig: { tools } }),
  });
  assert.equal(response.status, 200);
});
