// What is selected, beside the picture: the server tells about one asset, the page about several.
import { longestQuery } from "./address.js";

export class Panel {
  constructor(graph) {
    this.graph = graph;
    this.element = document.getElementById("graph-panel");
    this.several = document.getElementById("graph-several");
    this.failed = document.getElementById("graph-panel-failed");
    this.shown = "";
    this.address = null;
    // A late answer about an earlier selection is out of date.
    this.element?.addEventListener("htmx:beforeSwap", (event) => {
      const { detail, target } = event;
      if (target === this.element && detail.pathInfo.requestPath !== this.address) detail.shouldSwap = false;
    });
    for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
      document.addEventListener(name, ({ detail }) => {
        const isOwn = this.element && detail.target === this.element;
        if (isOwn && detail.pathInfo.requestPath === this.address) this.tellFailed();
      });
    }
  }

  show(nodes) {
    const key = nodes.map((node) => node.id).join(" ");
    if (key === this.shown) return;
    this.shown = key;
    this.address = null;
    if (!this.element) return;
    this.element.hidden = nodes.length === 0;
    if (!nodes.length) this.element.replaceChildren();
    else if (nodes.length === 1 && !nodes[0].isFold) this.read(nodes[0]);
    else this.tellSeveral(nodes);
  }

  read(node) {
    const name = encodeURIComponent(this.graph.model.assets[node.at].name);
    this.node = node;
    this.address = this.graph.root.dataset.panel.replace("__name__", name);
    // Without an answer nothing of an earlier selection stays.
    this.element.replaceChildren();
    // An error is told by its event.
    window.htmx.ajax("GET", this.address, { target: this.element, swap: "innerHTML" })?.catch?.(() => {});
  }

  tellFailed() {
    const fragment = this.failed.content.cloneNode(true);
    fragment.querySelector("[data-title]").textContent = this.graph.model.assets[this.node.at].name;
    fragment.querySelector("button").addEventListener("click", () => this.read(this.node));
    this.element.replaceChildren(fragment);
  }

  tellSeveral(nodes) {
    const { model, picture, root } = this.graph;
    const assets = [...new Set(nodes.flatMap((node) => node.members))];
    const fragment = this.several.content.cloneNode(true);
    const names = nodes.map((node) => picture.labelOf(node));
    fragment.querySelector("[data-title]").textContent = names.length === 1 ? names[0] : `${names.length} selected`;
    fragment.querySelector("[data-names]").replaceChildren(...names.map((name) => {
      const item = document.createElement("li");
      item.textContent = name;
      return item;
    }));
    const reach = (near, far) => {
      const ids = nodes.map((node) => node.id);
      return picture.following(new Set(ids), near, far).size - ids.length;
    };
    fragment.querySelector("[data-reach]").textContent =
      `${assets.length} assets; shown upstream: ${reach("to", "from")}, downstream: ${reach("from", "to")}`;
    const link = fragment.querySelector("[data-backfill]");
    if (link) {
      const query = new URLSearchParams({ downstream: "all" });
      for (const at of assets) query.append("assets", model.assets[at].name);
      if (query.toString().length > longestQuery) link.replaceWith("No link names so many assets: choose fewer of them.");
      else link.href = `${root.dataset.backfill}?${query}`;
    }
    this.element.replaceChildren(fragment);
  }
}
