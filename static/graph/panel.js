// What is selected, beside the picture: the server tells about one asset, the page about several.
import { Fragment } from "../fragment.js";
import { longestQuery } from "./address.js";

export class Panel {
  constructor(graph) {
    this.graph = graph;
    this.element = document.getElementById("graph-panel");
    this.several = document.getElementById("graph-several");
    this.shown = "";
    this.fragment = this.element && new Fragment(this.element);
  }

  show(nodes) {
    const key = nodes.map((node) => node.id).join(" ");
    if (key === this.shown) return;
    this.shown = key;
    if (!this.element) return;
    this.fragment.forget();
    this.element.hidden = nodes.length === 0;
    if (!nodes.length) this.element.replaceChildren();
    else if (nodes.length === 1 && !nodes[0].isFold) this.read(nodes[0]);
    else this.tellSeveral(nodes);
  }

  read(node) {
    const { name } = this.graph.model.assets[node.at];
    this.fragment.load(this.graph.root.dataset.panel.replace("__name__", encodeURIComponent(name)), name);
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
