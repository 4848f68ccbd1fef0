// Stands before the theme's bundle, which asks for the search index and its worker with every first page, though few
// readers search. Both wait here until a reader turns to the search field, or an address asks for a search (?q=) or
// for its marks (?h=). What the bundle calls is given back as soon as it has been called, so nothing else is touched.
(() => {
  const {XMLHttpRequest: {prototype}, Worker: Real} = window;
  const {open} = prototype;
  let index;
  let worker;
  // A reader may be in the field before this script is here.
  let wanted = /[?&][qh]=/.test(location.search) || Boolean(document.activeElement?.closest('.md-search'));

  prototype.open = function (method, address, ...rest) {
    open.call(this, method, address, ...rest);
    if (!/\/search_index\.json$/.test(address)) return;
    prototype.open = open;
    if (wanted) return;
    index = this;
    this.send = () => {};
  };

  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      window.Worker = Real;
      worker = this;
      this.start = () => {
        this.real ??= new Real(address);
        this.real.onmessage = ({data}) => this.dispatchEvent(new MessageEvent('message', {data}));
      };
    }

    postMessage(message) {
      this.start();
      this.real.postMessage(message);
    }
  };

  const ask = ({target}) => {
    if (!target.closest?.('.md-search, [for=__search]')) return;
    for (const kind of ['pointerover', 'focusin']) document.removeEventListener(kind, ask);
    wanted = true;
    worker?.start();
    if (index) {
      delete index.send;
      index.send();
    }
  };
  for (const kind of ['pointerover', 'focusin']) document.addEventListener(kind, ask);
})();
