// `node --import` this: bare imports of the programs beside it are resolved in the folder of YARDSTICK_PACKAGES.

import { registerHooks } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const here = new URL('.', import.meta.url).href;
const parentURL = pathToFileURL(path.join(process.env.YARDSTICK_PACKAGES, 'program.mjs')).href;

registerHooks({
  resolve(specifier, context, next) {
    const isBare = !/^(?:\.|\/|node:|file:)/.test(specifier);
    return next(specifier, isBare && context.parentURL?.startsWith(here) ? { ...context, parentURL } : context);
  },
});
