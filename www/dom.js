// Creates elements from text only: output of models and tools is never parsed as HTML.

/** Creates an element: `el('p.text', { title }, 'text', child)`. Names with a dash, `role` and `for` become attributes,
 *  others are properties. */
export function el(name, props = {}, ...children) {
  const [tag, ...classes] = name.split('.');
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(' ');
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (key.includes('-') || key === 'role' || key === 'for') node.setAttribute(key, value);
    else node[key] = value;
  }
  node.append(...children);
  return node;
}

export function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS('http://www.w3.org/2000/svg', 'use');
  use.setAttribute('href', `#i-${name}`);
  svg.append(use);
  return svg;
}

/** Sets the text of a node. An unchanged text is left alone; appended text is appended in place. */
export function setText(node, text) {
  const first = node.firstChild;
  if (first?.nodeType !== Node.TEXT_NODE || node.childNodes.length > 1) node.textContent = text;
  else if (text.startsWith(first.data)) {
    if (text.length > first.data.length) first.appendData(text.slice(first.data.length));
  } else first.data = text;
}

/** Returns a function that runs `work` once before the next frame, however often it is called. A hidden tab has no
 *  frames. */
export function perFrame(work) {
  let isScheduled = false;
  return () => {
    if (isScheduled) return;
    isScheduled = true;
    const runOnce = () => {
      isScheduled = false;
      work();
    };
    if (document.hidden) setTimeout(runOnce, 100);
    else requestAnimationFrame(runOnce);
  };
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });

/** The date of a time in a file, which may be none. */
export function dateOf(ms) {
  const date = new Date(ms);
  return Number.isNaN(date.valueOf()) ? null : date;
}

export function shortTime(ms) {
  const date = ms ? dateOf(ms) : null;
  if (!date) return '';
  return (date.toDateString() === new Date().toDateString() ? clock : day).format(date);
}

export function duration(ms) {
  if (ms === null || ms === undefined || ms < 0) return '';
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

export function bytes(count) {
  if (count < 1e3) return `${count} B`;
  for (const [size, unit] of [
    [1e9, 'GB'],
    [1e6, 'MB'],
  ])
    if (count >= size) return `${(count / size).toFixed(1)} ${unit}`;
  return `${Math.round(count / 1e3)} KB`;
}

export const clip = (text, maxLength) =>
  text.length > maxLength ? `${text.slice(0, maxLength - 1).trimEnd()}…` : text;

/** "1 call", "2 calls". */
export const counted = (count, noun) => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** A failure in words. */
export const failure = (error) => el('p.failed', { role: 'alert' }, error?.message ?? String(error));

/** Returns a function that runs the asynchronous `work` at once, and not again before it is over and `ms` have passed.
 *  Of calls meanwhile the last one follows. A failure is shown by `failed`. */
export function throttled(work, ms, failed) {
  let isBusy = false;
  let next = null;
  const run = async (args) => {
    isBusy = true;
    try {
      await work(...args);
    } catch (error) {
      failed(error);
    }
    setTimeout(() => {
      isBusy = false;
      const waiting = next;
      next = null;
      if (waiting) run(waiting);
    }, ms);
  };
  return (...args) => {
    if (isBusy) next = args;
    else run(args);
  };
}

/** Characters that are not shown, or change the order of those that are: text of the model must not look like other
 *  text. */
const INVISIBLE = /[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;
export const visible = (text) =>
  text.replace(INVISIBLE, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
