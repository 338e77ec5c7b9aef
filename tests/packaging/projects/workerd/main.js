import { chat } from './chat.js';

export default {
  async fetch(request) {
    try {
      return Response.json(await chat(new URL(request.url).searchParams.get('model')));
    } catch (e) {
      return Response.json({ thrown: String(e?.stack ?? e) });
    }
  },
};
