// The error for wrong usage of the command line.

/** Ends the command with exit code 2; the message says what to do instead. */
export class Misuse extends Error {}
