// A file of the package that Vite's dev server does not find by `import.meta.url`.
//
// The server bundles a dependency into a cache. Until Vite 8 only its modules are moved: an address relative to one of
// them then names nothing, and is answered with the page's HTML (vitejs/vite#8427). The server itself resolves names of
// packages for a page at `/@id/`.

/** Returns the address of `name`, such as "rethread/rethread.wasm", if `moduleUrl` is a module in the cache of such a
 *  server, else null. */
export async function findMovedFile(name, moduleUrl) {
  const { pathname, searchParams } = new URL(moduleUrl);
  const [, cache] = /^(.*\/)deps\/[^/]+$/.exec(pathname) ?? [];
  if (cache === undefined || !searchParams.has('v')) return null;
  // The server's base is one of the folders above its cache.
  for (let folder = cache.split('/node_modules/')[0].replace(/\/?$/, '/'); ; folder = folder.replace(/[^/]*\/$/, '')) {
    const found = await resolveInServer(new URL(`${folder}@id/${name}?import&url`, moduleUrl).href);
    if (found) return new URL(found, moduleUrl);
    if (folder === '/') return null;
  }
}

async function resolveInServer(address) {
  try {
    const { default: found } = await import(/* webpackIgnore: true */ /* @vite-ignore */ address);
    return typeof found === 'string' ? found : null;
  } catch {
    return null; // the server knows no such address
  }
}
