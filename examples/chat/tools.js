// The tools that the model may call: ordinary functions. Their return value or error is sent to the model.

const oneText = (name) => ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] });

async function request(address, options) {
  if (!URL.canParse(address)) throw new Error('the URL of the service is invalid'); // not quoted: the URL of a webhook is a secret
  const response = await fetch(address, options);
  if (!response.ok) throw new Error(`the service answered ${response.status}`);
  return response.text();
}

export const toolsFor = ({ WEATHER_URL = 'https://wttr.in', WEBHOOK_URL }) => ({
  get_weather: {
    description: 'The weather in a city right now.',
    parameters: oneText('city'),
    onInterrupted: 'rerun', // after a crash: a second read is harmless
    execute: ({ city }, { signal }) => request(`${WEATHER_URL}/${encodeURIComponent(city)}?format=3`, { signal }),
  },
  ...(WEBHOOK_URL && { post_note: {
    description: 'Posts a note to the channel of the team.',
    parameters: oneText('note'),
    // No `onInterrupted`: after a crash it may have run, so it is not run again and the model gets an error result.
    execute: ({ note }, { signal }) => request(WEBHOOK_URL, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ text: note }), signal }),
  } }),
});
