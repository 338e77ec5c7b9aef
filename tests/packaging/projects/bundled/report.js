// Sends what the page wrote to its server, for browsers that no test drives.

const out = document.querySelector('#out');
const report = () => out.dataset.done && fetch('/report', { method: 'POST', body: out.textContent });
new MutationObserver(report).observe(out, { attributes: true });
report();
