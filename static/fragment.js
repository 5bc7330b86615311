// A place of a page that shows one fragment of the server at a time. An answer about an earlier
// address is dropped; without an answer the place says so, and offers another try.
export class Fragment {
  constructor(element, { titleId = "", retry = () => this.load(this.address, this.name) } = {}) {
    Object.assign(this, { element, titleId, retry, address: null, name: "" });
    element.addEventListener("htmx:beforeSwap", ({ detail, target }) => {
      if (target === element && !this.isAbout(detail)) detail.shouldSwap = false;
    });
    for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
      document.addEventListener(name, ({ detail }) => {
        if (detail.target === element && this.isAbout(detail)) this.tellFailed();
      });
    }
  }

  isAbout(detail) {
    return detail.pathInfo.requestPath === this.address;
  }

  // Resolves to whether the place is still to show this address.
  async load(address, name) {
    Object.assign(this, { address, name });
    // Without an answer nothing of another address stays.
    this.element.replaceChildren();
    try {
      await window.htmx.ajax("GET", address, { target: this.element, swap: "innerHTML" });
    } catch {
      // Told by the event of the error.
    }
    return this.address === address;
  }

  // Answers that are still to come are out of date.
  forget() {
    this.address = null;
  }

  tellFailed() {
    const title = document.createElement("h2");
    title.className = "h3 mb-1 text-break";
    if (this.titleId) title.id = this.titleId;
    title.tabIndex = -1;
    title.textContent = this.name;
    const text = document.createElement("p");
    text.setAttribute("role", "alert");
    text.textContent = "The server did not answer.";
    const again = document.createElement("button");
    again.className = "btn";
    again.type = "button";
    again.textContent = "Try again";
    again.addEventListener("click", this.retry);
    this.element.replaceChildren(title, text, again);
  }
}
