// The parts of the demo that need no page: addresses of model services, and the arguments of tools.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toolsFor } from '../../www/tools.js';
import { WIRE_FORMATS } from '../../www/wire-formats.js';

test('the address of Gemini names the model once, before the query', () => {
  const { url } = WIRE_FORMATS.gemini;
  const base = 'https://generativelanguage.googleapis.com/v1beta/models';
  for (const model of ['gemini-3-pro', 'models/gemini-3-pro']) {
    for (const endpoint of [base, `${base}/`]) {
      assert.equal(url(endpoint, { model, stream: false }), `${base}/gemini-3-pro:generateContent`);
      assert.equal(url(endpoint, { model, stream: true }), `${base}/gemini-3-pro:streamGenerateContent?alt=sse`);
    }
  }
  assert.equal(url(`${base}?key=x`, { model: 'm', stream: true }), `${base}/m:streamGenerateContent?key=x&alt=sse`);
  assert.equal(url(`${base}?key=x`, { model: 'a/b', stream: false }), `${base}/a%2Fb:generateContent?key=x`);
  assert.equal(url('models', { model: 'm', stream: false }), 'models');
});

test('the tools of the demo reject arguments that do not fit their schema', async () => {
  const tools = toolsFor({ hostile: true, counter: null });
  const invocation = { callId: 'c', invocationId: 'i', signal: new AbortController().signal };
  const cases = [
    ['get_weather', { city: ['Oslo'] }, '`city` must be a string'],
    ['get_weather', { city: {} }, '`city` must be a string'],
    ['get_forecast', { city: null }, '`city` must be a string'],
    ['get_time', { city: '' }, '`city` is missing'],
    ['read_page', undefined, '`city` is missing'],
    ['send_money', { to: 'Anna' }, '`amount` is missing'],
    ['send_money', { to: 'Anna', amount: '5' }, '`amount` must be a number'],
    ['send_money', { to: 'Anna', amount: 0 }, '`amount` must be a positive number'],
  ];
  for (const [name, args, message] of cases) await assert.rejects(tools[name].execute(args, invocation), { message }, JSON.stringify(args));
  assert.match(await tools.get_weather.execute({ city: 'Oslo' }, invocation), /^Oslo: -?\d+ °C/);
});
