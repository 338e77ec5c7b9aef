// Listeners that are called at most once a frame.

/** Milliseconds after which a listener is called where frames are not drawn, as in a hidden tab or on a server. */
const LONGEST_FRAME = 100;

/** Returns a function that calls the listener once before the next frame, however often it is called until then; and
 *  one that stops it. */
export function onceAFrame(listener) {
  const { requestAnimationFrame, cancelAnimationFrame } = globalThis;
  const hasFrames = typeof requestAnimationFrame === 'function';
  let frame;
  let timer;
  const stop = () => {
    clearTimeout(timer);
    if (hasFrames && frame !== undefined) cancelAnimationFrame(frame);
    timer = undefined;
    frame = undefined;
  };
  const call = () => {
    stop();
    listener();
  };
  const notify = () => {
    if (timer !== undefined) return;
    timer = setTimeout(call, hasFrames ? LONGEST_FRAME : 16);
    if (hasFrames) frame = requestAnimationFrame(call);
  };
  return { notify, stop };
}
