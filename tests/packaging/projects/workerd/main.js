import { chat, keep, mapDriver } from './chat.js';

export default {
  async fetch(request) {
    try {
      const answer = await chat(new URL(request.url).searchParams.get('model'));
      return Response.json({ ...answer, kept: await keep(mapDriver()) });
    } catch (e) {
      return Response.json({ thrown: String(e?.stack ?? e) });
    }
  },
};
