// Ids of new messages.

/** `crypto.randomUUID` is missing on pages that were not loaded by HTTPS. */
export const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(36)).join('');

export const newAnswer = (id) => ({ id, role: 'assistant', parts: /** @type {any[]} */ ([]) });
