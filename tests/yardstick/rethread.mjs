// What this library sends for a vector, by `repair`, and by `heal` after an error.

import { heal, repair } from '../../js/entry/formats-node.js';

/** `{ bodies, threw? }` for `judge`. Bodies of Bedrock and Gemini name no model on the wire. */
export function sentByRethread({ dialect, given, provider }) {
  const isNamedInAddress = dialect === 'gemini' || dialect === 'bedrock';
  const named = dialect === 'bedrock' ? { modelId: given.model } : isNamedInAddress ? { model: given.model } : {};
  const sent = ({ body }) => {
    const { model, modelId, ...rest } = JSON.parse(body);
    return isNamedInAddress ? rest : JSON.parse(body);
  };
  try {
    const first = repair(JSON.stringify({ ...named, ...given.body }), dialect);
    const bodies = [sent(first)];
    if (provider.answer) {
      const healed = heal(first.body, dialect, JSON.stringify(provider.answer));
      if (healed) bodies.push(sent(healed));
    }
    return { bodies };
  } catch (error) {
    return { bodies: [], threw: `${error.code}: ${error.message}` };
  }
}
