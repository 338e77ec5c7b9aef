import { createHash } from 'node:crypto';

const MARK = 'c3RhbmRpbg';
export const digest = (text, length = 24) =>
  createHash('sha256')
    .update(text)
    .digest('base64')
    .replace(/[^a-zA-Z0-9]/g, '')
    .slice(0, length);

/** Signatures that this server gave out can be judged again; those of others are taken on trust. */
export const sign = (text) => `${MARK}${digest(`thinking:${text}`, 32)}==`;
export const forged = (text, signature) =>
  signature === '' || (signature.startsWith(MARK) && signature.replace(/==\.[a-zA-Z0-9]{40}$/, '==') !== sign(text));
