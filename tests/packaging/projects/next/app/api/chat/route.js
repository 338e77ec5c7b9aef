import { validate } from 'rethread';
import { chat, keep, mapDriver } from '../../../chat.js';

export async function GET(request) {
  try {
    const messages = [{ role: 'tool', tool_call_id: 'x', content: '' }];
    const findings = validate({ messages }, 'openai-chat').map(({ code }) => code);
    const model = new URL(request.url).searchParams.get('model');
    return Response.json({ findings, ...(await chat(model)), kept: await keep(mapDriver()) });
  } catch (error) {
    return Response.json({ thrown: String(error?.stack ?? error), code: error?.code });
  }
}
