// The credentials of a drive: what is one, in which forms it is found, and what stays as it is.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Credentials, PLAIN_HEADERS, REDACTED, errorWords } from '../../js/credentials.js';
import { headerPairs } from '../../js/header-pairs.js';
import { ResponseFilter } from '../../js/response-filter.js';

const KEY = 'zq7/Lm+pX9"w&T<4=';
const of = (headers) => {
  const credentials = new Credentials();
  credentials.add(headers);
  return credentials;
};
const hex = (char, digits) => char.charCodeAt(0).toString(16).padStart(digits, '0');
const everyChar = (form) => [...KEY].map(form).join('');
const FORMS = {
  'as it is': KEY,
  'in a JSON string': JSON.stringify(KEY).slice(1, -1),
  'in JSON in JSON': JSON.stringify(JSON.stringify(KEY)).slice(3, -3),
  'with the slash escaped': JSON.stringify(KEY).slice(1, -1).replaceAll('/', '\\/'),
  'as \\u escapes': everyChar((char) => `\\u${hex(char, 4)}`),
  'in a URL': encodeURIComponent(KEY),
  'percent-encoded as a whole': everyChar((char) => `%${hex(char, 2)}`),
  'encoded twice': encodeURIComponent(encodeURIComponent(KEY)),
  'in HTML': KEY.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;'),
  'in HTML, by numbers': everyChar((char) => `&#${char.charCodeAt(0)};`),
  'in HTML, by hexadecimal numbers': everyChar((char) => `&#x${hex(char, 2)};`),
};

test('r68: the exact value is removed in every encoding and every field', () => {
  const credentials = of({ 'x-api-key': KEY });
  for (const [name, form] of Object.entries(FORMS)) {
    for (const [before, after] of [
      ['', ''],
      ['key ', ' is wrong'],
      ['\n', '\n'],
      ['\t', '\t'],
      ['api_key=', '&x=1'],
      ['a,', ',b'],
      ['{"k":"', '"}'],
      ['https://h/?k=', '#x'],
      ['word', 'word'],
      [`${form}x`, `x${form}`],
    ]) {
      const text = credentials.redact(`${before}${form}${after}`);
      assert.ok(!text.includes(form), `${name}: ${text}`);
      if (!before.includes(form)) assert.equal(text, `${before}${REDACTED}${after}`, name);
    }
  }
});

test('r68: the token of a scheme, the parts of a Basic pair and the values of cookies are credentials, too', () => {
  const basic = btoa('user-of-us:pa55word:x');
  for (const [headers, texts] of [
    [{ Authorization: 'Bearer abcdefgh12' }, ['Bearer abcdefgh12', 'abcdefgh12']],
    [{ authorization: `Basic ${basic}` }, [basic, 'user-of-us:pa55word:x', 'pa55word:x', 'user-of-us']],
    [
      {
        authorization:
          'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/us-east-1, SignedHeaders=host, Signature=fe5f80f77d5fa3be',
      },
      ['fe5f80f77d5fa3be', 'AKIDEXAMPLE/20260101/us-east-1'],
    ],
    [{ authorization: 'Digest username="eva-of-us", response="6629fae49393a053"' }, ['eva-of-us', '6629fae49393a053']],
    [{ cookie: 'a=first-value; session=second-value' }, ['first-value', 'second-value']],
    [new Headers({ 'x-goog-api-key': 'AIzaSomething' }), ['AIzaSomething']],
    [[['api-key', 'hunter2']], ['hunter2']],
    [{ 'X-Mine': 'schlüssel-für-alles' }, ['schlüssel-für-alles', encodeURIComponent('schlüssel-für-alles')]],
  ]) {
    const credentials = of(headers);
    for (const text of texts) assert.equal(credentials.redact(`<${text}>`), `<${REDACTED}>`, text);
  }
});

test('r68: common and short values, and headers without credentials, are not removed from text', () => {
  const credentials = of({
    'x-a': '1',
    'x-b': 'true',
    'x-c': 'application/json',
    'x-d': '2023-06-01',
    'x-e': 'abc',
    'x-f': 'none',
    'x-g': '',
    'x-h': undefined,
    'x-i': 'text/plain; charset=utf-8',
    'anthropic-version': 'bedrock-2023-05-31',
    'OpenAI-Organization': 'org-1234567890',
    'user-agent': 'my-application/1.0',
    'x-stainless-runtime': 'node-is-what-it-is',
  });
  const text =
    '1 true application/json 2023-06-01 abc none undefined text/plain; charset=utf-8 bedrock-2023-05-31 org-1234567890 my-application/1.0 node-is-what-it-is';
  assert.equal(credentials.redact(text), text);
  const short = of({ 'x-key': 'gpt4' });
  assert.equal(short.redact('gpt4o egpt4 gpt4-x'), `gpt4o egpt4 ${REDACTED}-x`);
  assert.equal(of({ 'x-key': KEY }).redact('nothing of it \ud800'), 'nothing of it \ud800');
  assert.ok(PLAIN_HEADERS.has('x-title') && !PLAIN_HEADERS.has('x-api-key'));
});

test('`headers` of every type are read, and other values are rejected', () => {
  assert.deepEqual(headerPairs({ 'X-A': 'b', c: null }), [['x-a', 'b']]);
  assert.deepEqual(headerPairs(new Map([['A', 1]])), [['a', '1']]);
  assert.throws(() => headerPairs('Bearer x'), TypeError);
});

const bytesOf = (text) => new TextEncoder().encode(text);
const textOf = (pieces) => new TextDecoder().decode(Uint8Array.from(pieces.flatMap((piece) => [...piece])));

/** What comes out of a body that is fed in pieces of so many bytes. */
function filtered(body, size, options) {
  const credentials = of({ 'x-api-key': KEY });
  const filter = new ResponseFilter({
    credentials,
    isSingleValue: false,
    isError: (bytes) => /error/.test(textOf([bytes])),
    ...options,
  });
  const bytes = typeof body === 'string' ? bytesOf(body) : body;
  const out = [];
  for (let at = 0; at < bytes.length; at += size) out.push(filter.push(bytes.subarray(at, at + size)));
  out.push(filter.end());
  return textOf(out);
}

test('r68: the key is removed from an error response however it is split, in every encoding', () => {
  for (const [name, form] of Object.entries(FORMS)) {
    const body = `é ${form} and ${form}\n\n{"x":1}`;
    for (const size of [1, 2, 3, 7, 1000]) {
      assert.equal(
        filtered(body, size, { isSingleValue: true, isError: () => true }),
        `é ${REDACTED} and ${REDACTED}\n\n{"x":1}`,
        `${name} by ${size}`,
      );
    }
  }
  const invalid = Uint8Array.from([0xff, 0xfe, ...bytesOf(KEY), 0x80]);
  assert.ok(!filtered(invalid, 1, { isSingleValue: true, isError: () => true }).includes(KEY));
  const utf16 = Uint8Array.from([...KEY].flatMap((char) => [char.charCodeAt(0), 0]));
  assert.ok(
    !filtered(utf16, 3, { isSingleValue: true, isError: () => true })
      .replaceAll('\0', '')
      .includes(KEY),
  );
});

test('r68: the key is removed from error events of a stream, and every other event is unchanged', () => {
  for (const end of ['\n', '\r\n', '\r']) {
    const event = (name) => `event: ${name}${end}data: {"${name}":${JSON.stringify(KEY)}}${end}${end}`;
    const stream =
      `\ufeff: hello${end}${end}` +
      ['text', 'error', 'text', 'text', 'error'].map(event).join('') +
      `data: ${KEY.slice(0, 5)}`;
    const want = stream.replaceAll(`{"error":${JSON.stringify(KEY)}}`, `{"error":"${REDACTED}"}`);
    for (const size of [1, 2, 5, 11, 40, 10_000])
      assert.equal(filtered(stream, size), want.replace('\ufeff', ''), `${JSON.stringify(end)} by ${size}`);
  }
});

test('r68: bytes without a key pass at once and unchanged', () => {
  const filter = new ResponseFilter({
    credentials: of({ 'x-api-key': KEY }),
    isSingleValue: false,
    isError: () => true,
  });
  for (const piece of ['data: {"a"', ':1}\n\nda', 'ta: 2']) {
    const bytes = bytesOf(piece);
    assert.equal(filter.push(bytes), bytes);
  }
  assert.equal(textOf([filter.push(bytesOf(` ${KEY.slice(0, 4)}`))]), ' ', 'the beginning of a key waits');
  assert.equal(textOf([filter.push(bytesOf('!\n\n'))]), `${KEY.slice(0, 4)}!\n\n`);
});

test('r68: a JSON body is filtered as a whole', () => {
  const body = `[{"text":${JSON.stringify(KEY)}},\n\n{"text":"more"}]`;
  for (const size of [1, 4, 1000]) {
    assert.equal(filtered(body, size), body);
    assert.equal(filtered(body.replace('more', 'error'), size), `[{"text":"${REDACTED}"},\n\n{"text":"error"}]`);
  }
});

test('an error contains the messages of its causes, whatever their type', () => {
  assert.deepEqual(
    errorWords(new TypeError('fetch failed', { cause: Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }) })),
    { code: 'ECONNREFUSED', message: 'fetch failed (refused)' },
  );
  assert.deepEqual(errorWords('text'), { message: 'text' });
  assert.equal(errorWords(undefined).message, 'it failed without a message');
  assert.equal(errorWords(Object.create(null)).message.length > 5, true);
  const hostile = new Proxy(
    {},
    {
      get() {
        throw new Error('no');
      },
    },
  );
  assert.equal(errorWords(hostile).message, 'an error whose text cannot be read');
  const circle = new Error('round');
  circle.cause = circle;
  assert.equal(errorWords(circle).message, 'round');
});
