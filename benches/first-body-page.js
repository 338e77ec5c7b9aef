// What the runner calls in a page that measures one way to a first body. The package is imported when it is asked for.

import { firstBody } from './first-body.js';

const prefix = new URLSearchParams(location.search).get('package') ?? '';
const load = () => import(`${prefix}/js/entry/browser.js`);

globalThis.bench = {
  firstBody: (way, session) => firstBody(load, way, session),
};
