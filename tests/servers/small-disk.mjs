// A file system of a few megabytes, which can be filled and emptied.

import { execFileSync } from 'node:child_process';
import { chownSync, closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Mounts a tmpfs of so many megabytes. `account` owns it. Throws where mounting is not permitted. */
export function mountSmallDisk(megabytes, { uid, gid } = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'rethread-small-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder], { stdio: 'pipe' });
  } catch (error) {
    rmSync(folder, { recursive: true });
    throw new Error(`a tmpfs cannot be mounted, which this test needs: run it as root on Linux (${error.message})`);
  }
  const data = path.join(folder, 'data');
  mkdirSync(data);
  if (uid !== undefined) chownSync(data, uid, gid);
  const filler = path.join(folder, 'filler');
  return {
    folder: data,
    /** Takes so many megabytes. */
    fill: (size) => writeFileSync(filler, Buffer.alloc(size * 1024 * 1024)),
    /** Takes whatever is left. */
    fillUp() {
      const file = openSync(filler, 'w');
      try {
        for (;;) writeSync(file, Buffer.alloc(4096));
      } catch (error) {
        if (error.code !== 'ENOSPC') throw error;
      } finally {
        closeSync(file);
      }
    },
    free: () => rmSync(filler),
    unmount() {
      execFileSync('umount', ['-l', folder]);
      rmSync(folder, { recursive: true });
    },
  };
}
