// Browsers start no worker from a file on a disk. There the search runs in a hidden frame of the page instead.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => setTimeout((copy) => this.onmessage?.({ data: copy }), 0, structuredClone(data));
      this.loaded = new Promise((ready, failed) => {
        const script = inside.document.createElement("script");
        Object.assign(script, { src: url, onload: ready, onerror: failed });
        inside.document.body.append(script);
      });
      this.loaded.catch((error) => this.onerror?.(error));
    }
    postMessage(data) {
      const copy = structuredClone(data);
      this.loaded.then(() => this.frame.contentWindow?.onmessage({ data: copy }), () => {});
    }
    terminate() {
      this.frame.remove();
    }
  };
}
