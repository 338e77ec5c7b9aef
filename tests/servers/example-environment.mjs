// What the tests of an example run in: the example's project, the services that it calls, PostgreSQL, and the processes
// that they start.

import { spawn } from 'node:child_process';
import path from 'node:path';
import { after, before } from 'node:test';
import { endsWithThisProcess } from './child-processes.mjs';
import { exampleProject, startServices } from './example-project.mjs';
import { startPostgres } from './postgres-server.mjs';

/** Starts everything before the tests of a file, and removes it after them. The members are set when the first test
 *  begins. */
export function exampleEnvironment() {
  const children = new Set();
  let postgres;
  const environment = {
    project: undefined,
    services: undefined,
    /** The variables of each store. `name`: the name of its SQLite file. */
    stores: {
      SQLite: (name) => ({ SQLITE_FILE: environment.sqliteFile(name) }),
      PostgreSQL: () => ({
        DATABASE_URL: `postgres://postgres@/postgres?host=${encodeURIComponent(postgres.place.host)}`,
      }),
    },
    sqliteFile: (name) => path.join(environment.project.folder, `${name}.sqlite`),
    /** Starts a program of the project with these variables beside those of the services. */
    start(args, variables) {
      const { project, services } = environment;
      const env = { PATH: process.env.PATH, ...services.env, ...variables };
      const child = endsWithThisProcess(
        spawn(process.execPath, ['--no-warnings', ...args], {
          cwd: project.folder,
          env,
          stdio: ['ignore', 'pipe', 'pipe'],
        }),
      );
      children.add(child);
      return child;
    },
  };
  before(async () => {
    environment.project = exampleProject();
    environment.services = await startServices();
    postgres = await startPostgres();
  });
  after(async () => {
    for (const child of children) child.kill('SIGKILL'); // what a failed test left
    await postgres?.stop();
    await environment.services?.stop();
    environment.project?.remove();
  });
  return environment;
}
