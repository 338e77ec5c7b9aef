import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { BedrockRuntimeClient, ConverseCommand, ConverseStreamCommand } from '@aws-sdk/client-bedrock-runtime';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { testCases, testRecorded } from './rules-cases.mjs';
import { check } from './rules-bedrock.mjs';
import { startStandIn } from './server.mjs';

const tools = [{ toolSpec: { name: 'look', inputSchema: { json: { type: 'object' } } } }];
const converse = (...messages) => ({ messages, toolConfig: { tools } });
const user = (...content) => ({ role: 'user', content });
const said = (...content) => ({ role: 'assistant', content });
const text = (value = 'hello') => ({ text: value });
const call = (toolUseId, more = {}) => ({ toolUse: { toolUseId, name: 'look', input: {}, ...more } });
const documentOf = (name) => ({ document: { name, format: 'txt', source: { bytes: 'SGk=' } } });
const result = (toolUseId, more = {}) => ({ toolResult: { toolUseId, content: [text('sunny')], ...more } });

const MISSING = /^Expected toolResult blocks at messages\.2\.content for the following Ids: a/;
const EXCESS = /^The number of toolResult blocks at messages\.\d\.content exceeds the number of toolUse blocks/;
const REFUSED = {
  'an open call': [converse(user(text()), said(call('a'))), MISSING],
  'an open call before a user message': [converse(user(text()), said(call('a')), user(text())), MISSING],
  'a result without a call': [converse(user(text()), said(text()), user(result('a'))), EXCESS],
  'unsigned thinking for Claude': [
    converse(user(text()), said({ reasoningContent: { reasoningText: { text: 'Hm.' } } }, text()), user(text())),
    /^The model returned the following errors: messages\.1\.content\.0\.thinking\.signature: Field required$/,
    { model: 'us.anthropic.claude-sonnet-4-5-20250929-v1:0' },
  ],
  'a duplicate result': [
    converse(user(text()), said(call('a')), user(result('a'), result('a'))),
    /^The toolResult blocks at messages\.2\.content contain duplicate Ids/,
  ],
  'two user messages': [converse(user(text()), user(text())), /^A conversation must alternate/],
  'an answer first': [converse(said(text()), user(text())), /^A conversation must start with a user message/],
  'a blank text': [converse(user(text(' '))), /is blank/],
  'an empty message': [converse(user()), /^The content field in the Message object at messages\.0 is empty/],
  'an error without content': [
    converse(user(text()), said(call('a')), user(result('a', { content: [], status: 'error' }))),
    /cannot be empty when status value is error/,
  ],
  'arguments that are a text': [
    converse(user(text()), said(call('a', { input: '{}' })), user(result('a'))),
    /^The format of the value at messages\.1\.content\.0\.toolUse\.input is invalid/,
  ],
  'a document alone': [
    converse(user({ document: { name: 'd', format: 'txt', source: { bytes: 'SGk=' } } })),
    /^A text block must be included/,
  ],
  'a document with an underscore in its name': [
    converse(user(documentOf('a_b'), text())),
    /^The document file name can only contain/,
  ],
  'two documents of one name, one in a result': [
    converse(user(documentOf('d'), text()), said(call('a')), user(result('a', { content: [documentOf('d')] }))),
    /^Messages can't contain duplicate document names/,
  ],
  'calls without tools': [
    { messages: [user(text()), said(call('a')), user(result('a'))] },
    /^The toolConfig field must be defined/,
  ],
  'no tools': [{ messages: [user(text())], toolConfig: { tools: [] } }, /toolConfig\.tools/],
  'a block with a type': [converse(user({ type: 'text', text: 'hi' })), /exactly one member/],
};
const ACCEPTED = {
  'a tool loop': converse(user(text()), said(call('a'), call('b')), user(result('b'), result('a'), text())),
  'an id with dots and colons': converse(user(text()), said(call('f.look:0')), user(result('f.look:0'))),
  'a call of the service': converse(
    user(text()),
    said(call('s', { type: 'server_tool_use' }), result('s', { type: 's_result' }), text()),
    user(text()),
  ),
  'two documents': converse(user(documentOf('d'), documentOf('d (2)'), text())),
  'a cache point': converse(user(text(), { cachePoint: { type: 'default' } })),
};
const LLAMA = { model: 'us.meta.llama3-3-70b-instruct-v1:0' };
REFUSED['text beside a result of a model that takes none'] = [
  converse(user(text()), said(call('a')), user(result('a'), text())),
  /^Conversation blocks and tool result blocks cannot be provided in the same turn/,
  LLAMA,
];
testCases('bedrock', check, {
  refused: REFUSED,
  taken: ACCEPTED,
  messageOf: (error) => error.message,
  assertShape: ({ status, error }) => assert.deepEqual([status, Object.keys(error)], [400, ['message']]),
});
testRecorded('bedrock', check);

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

const clientOf = (lane) =>
  new BedrockRuntimeClient({
    region: 'us-east-1',
    endpoint: `${standIn.url}/lane/${lane}`,
    credentials: { accessKeyId: 'AKIAEXAMPLE', secretAccessKey: 'secret' },
    maxAttempts: 1,
    requestHandler: new NodeHttpHandler(),
  });
const request = { modelId: 'amazon.nova-lite-v1:0', messages: [user(text())], toolConfig: { tools } };

test('the AWS SDK reads a stream, with its checksums', async () => {
  standIn.state.lane('stream').script = [
    { text: 'Let me look.', thinking: { text: 'Hm.' }, calls: [{ id: 'a', name: 'look', arguments: { n: 1 } }] },
  ];
  const { stream } = await clientOf('stream').send(new ConverseStreamCommand(request));
  let input = '';
  let said = '';
  let stop;
  let usage;
  for await (const event of stream) {
    input += event.contentBlockDelta?.delta.toolUse?.input ?? '';
    said += event.contentBlockDelta?.delta.text ?? '';
    stop ??= event.messageStop?.stopReason;
    usage ??= event.metadata?.usage;
  }
  assert.deepEqual([said, JSON.parse(input), stop], ['Let me look.', { n: 1 }, 'tool_use']);
  assert.ok(usage.inputTokens > 0);
});

test('the AWS SDK reads a whole answer, an error, and an exception of a stream', async () => {
  standIn.state.lane('whole').script = [{ text: 'Sunny.' }];
  const answer = await clientOf('whole').send(new ConverseCommand(request));
  assert.equal(answer.output.message.content[0].text, 'Sunny.');
  const broken = { ...request, messages: [user(text()), user(text())] };
  await assert.rejects(clientOf('error').send(new ConverseCommand(broken)), /must alternate/);
  standIn.state.lane('exception').script = [{ text: 'So', inBandError: true }];
  const { stream } = await clientOf('exception').send(new ConverseStreamCommand(request));
  await assert.rejects(async () => {
    for await (const event of stream) assert.ok(event);
  }, /model stream ended/);
});
