// The end of every random script, whatever stopped it.

/** Performs a script. Returns {problems, counts}; an error that it throws is one of the problems. */
export async function playScript(script) {
  try {
    return await script.perform();
  } catch (error) {
    return { problems: [...script.problems, `${error?.code ?? ''} ${error?.stack ?? error}`], counts: script.counts };
  }
}
