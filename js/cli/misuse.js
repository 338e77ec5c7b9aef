// The one way in which the command line says that it was used wrongly.

/** Ends the command with exit code 2; the message says what to do instead. */
export class Misuse extends Error {}
