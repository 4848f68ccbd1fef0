// Only in `mkdocs serve`: reloads the page when the site has been built anew. MkDocs writes a script for this into each
// page as it serves it, which our policy does not run; that script is read for the build it was written for.
(() => {
  const written = document.scripts[document.scripts.length - 1].textContent;
  const [, epoch, request] = /livereload\((\d+), (\d+)\)/.exec(written) ?? [];
  if (!epoch) return;
  let waiting;

  const ask = async (signal) => {
    while (!signal.aborted) {
      try {
        const answer = await fetch(`/livereload/${epoch}/${request}`, {signal});
        if (Number(await answer.text()) > Number(epoch)) {
          location.reload();
          return;
        }
      } catch {
        await new Promise((resolve) => { setTimeout(resolve, 1000); });
      }
    }
  };

  // A browser keeps few connections to one host, so a page that nobody sees gives its own back.
  const watch = () => {
    waiting?.abort();
    if (document.visibilityState === 'hidden') return;
    waiting = new AbortController();
    ask(waiting.signal);
  };

  document.addEventListener('visibilitychange', watch);
  addEventListener('pagehide', () => waiting?.abort());
  watch();
})();
