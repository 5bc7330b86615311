// The asset graph: reads it, draws it, and answers to keys, pointers and the search.
import { sessionEnded } from "../connection.js";
import { readAddress, writeAddress } from "./address.js";
import { Camera } from "./camera.js";
import { drawn, foldsOf, mostNodes, opened, opensAll, readModel, within } from "./model.js";
import { nodeSize, Picture } from "./picture.js";
import { Panel } from "./panel.js";
import { offerMatches } from "./search.js";
import { isRefused, States } from "./states.js";
import { stepFrom } from "./walking.js";

const mostOpenNamed = 24;
// Below this width three columns of nodes cannot be read.
const narrow = 600;

export class Graph {
  constructor(root) {
    this.root = root;
    this.canvas = root.querySelector("svg.graph-canvas");
    const layer = this.canvas.querySelector("[data-layer]");
    this.camera = new Camera(this.canvas, layer);
    this.picture = new Picture(layer, {
      icons: root.dataset.icons,
      assetAddress: (name) => root.dataset.asset.replace("__name__", encodeURIComponent(name)),
    });
    this.panel = new Panel(this);
    this.worker = new Worker(root.dataset.worker, { type: "module" });
    this.worker.addEventListener("message", ({ data }) => this.laidOut(data));
    this.worker.addEventListener("error", () => this.say("The graph cannot be drawn: use the table below."));
    this.number = 0;
    this.selected = new Set();
    this.states = new States(root.dataset.states, document.getElementById("graph-legend"), {
      changed: () => this.tell(),
      failed: (status) => this.sayFailure(status),
    });
  }

  async start() {
    const answer = await fetch(this.root.dataset.graph, { cache: "no-cache" });
    if (!answer.ok) return this.sayFailure(answer.status);
    this.model = readModel(await answer.json());
    // On the page of an asset, where a phone shows a part of the neighbourhood.
    this.middle = `a${this.model.places.get(this.root.dataset.middle)}`;
    this.begin();
    this.listen();
    this.layout({ fits: true });
    this.states.ask();
  }

  // The part of the graph, the open folds and the selection at first.
  begin() {
    const state = readAddress(this.model);
    this.assets = within(this.model, state.around, state.direction);
    this.open = state.open ?? this.openAtFirst();
    for (const at of state.selected) this.reveal(at);
    this.wanted = new Set(state.selected.map((at) => `a${at}`));
  }

  openAtFirst() {
    return new Set(opensAll(this.model, this.assets) ? this.model.folds.keys() : []);
  }

  // ------------------------------------------------------------ drawing
  layout({ fits = false, focus = null } = {}) {
    this.view = drawn(this.model, this.open, this.assets);
    this.after = { fits, focus };
    this.number += 1;
    this.canvas.setAttribute("aria-busy", "true");
    const nodes = [...this.view.nodes.keys()].map((id) => ({ id, ...nodeSize }));
    const edges = this.view.edges.map(({ from, to }) => [from, to]);
    this.worker.postMessage({ number: this.number, nodes, edges, room: this.room() });
  }

  // The room of a neighbourhood on a phone, where a column of nodes may be larger than a row.
  room() {
    const { width, height } = this.canvas.getBoundingClientRect();
    return this.root.dataset.middle && width < narrow ? { width, height } : null;
  }

  laidOut(answer) {
    // An answer to an earlier question is out of date.
    if (answer.number !== this.number) return;
    this.size = answer.size;
    this.picture.draw(this.model, this.view, answer);
    this.canvas.removeAttribute("aria-busy");
    this.root.dataset.drawn = this.view.nodes.size;
    this.selected = new Set([...(this.wanted ?? this.selected)].filter((id) => this.view.nodes.has(id)));
    this.wanted = null;
    this.tell();
    this.showSelection();
    const { fits, focus } = this.after;
    const showsPart = fits && !this.camera.fit(this.size);
    this.tellsOfRest = showsPart && this.room() !== null;
    const middle = showsPart && this.view.nodes.has(this.middle) ? this.middle : undefined;
    const first = focus ?? [...this.selected][0] ?? middle;
    if (first && this.picture.places.has(first)) this.camera.show(this.picture.places.get(first), { toMiddle: fits });
    this.makeTabStop(first ?? this.view.nodes.keys().next().value);
    if (focus) this.picture.elements.get(focus)?.focus({ preventScroll: true });
    this.showOpen();
    this.sayNumber();
  }

  tell() {
    if (!this.view || !this.picture.elements.size) return;
    this.picture.tell(this.view, this.states);
    this.showLegend();
  }

  // The legend has the marks and the states that the picture has.
  showLegend() {
    const nodes = [...this.view.nodes.values()];
    const assets = nodes.filter((node) => !node.isFold).map((node) => this.model.assets[node.at]);
    const isTrigger = ({ relations }) => ![...relations].some((at) => this.model.relations[at].inlet);
    const has = {
      paused: assets.some((asset) => asset.paused),
      external: assets.some((asset) => asset.external),
      trigger: this.view.edges.some(isTrigger),
    };
    const states = new Set(nodes.flatMap((node) => this.states.named(node.members.map((at) => this.model.assets[at].name))));
    for (const entry of this.states.legend.querySelectorAll("[data-shows]")) entry.hidden = !has[entry.dataset.shows];
    for (const entry of this.states.legend.querySelectorAll("[data-state]")) {
      entry.hidden = states.size > 0 && !states.has(entry.dataset.state);
    }
  }

  say(text) {
    this.root.querySelector("[role=status]").textContent = text;
  }

  sayNumber() {
    const counted = (number, one, more) => `${number.toLocaleString()} ${number === 1 ? one : more}`;
    const folds = [...this.view.nodes.values()].filter((node) => node.isFold);
    const assets = this.view.nodes.size - folds.length;
    const folded = folds.reduce((sum, fold) => sum + fold.members.length, 0);
    const phrases = assets || !folded ? [counted(assets, "asset", "assets")] : [];
    if (folded) phrases.push(`${counted(folded, "asset", "assets")} folded in ${counted(folds.length, "group", "groups")}`);
    if (this.tellsOfRest) phrases.push("drag to see the rest");
    if (this.notice) phrases.push(this.notice);
    this.notice = "";
    if (this.states.notCounted.length) phrases.push(`not counted: ${this.states.notCounted.join(", ")}`);
    this.say(phrases.join(", "));
  }

  sayFailure(status) {
    if (status === null) {
      if (this.isFailing) this.sayNumber();
      this.isFailing = false;
      return;
    }
    this.isFailing = true;
    this.say(isRefused(status) ? "Signed out; states are not updated." : "The server does not answer; states may be old.");
    if (isRefused(status)) sessionEnded();
  }

  // ------------------------------------------------------------ folds
  unfold(fold) {
    const { open, closed } = opened(this.model, this.open, fold, this.assets);
    this.open = open;
    const inside = [...drawn(this.model, open, this.assets).nodes.values()]
      .find((node) => foldsOf(this.model, node.members[0]).includes(fold));
    if (closed.length) this.notice = `at most ${mostNodes} nodes are shown, ${closed.length} folded again`;
    this.changed({ focus: inside?.id });
  }

  close(fold) {
    this.open = new Set([...this.open].filter((at) => at !== fold));
    this.changed({ focus: `f${fold}` });
  }

  closeAll() {
    this.open = new Set();
    this.changed({ fits: true });
  }

  openAll() {
    for (const fold of this.model.folds.keys()) {
      const next = new Set([...this.open, fold]);
      if (drawn(this.model, next, this.assets).nodes.size > mostNodes) break;
      this.open = next;
    }
    this.changed({ fits: true });
  }

  // A button for each open fold that is shown, which folds it again.
  showOpen() {
    const bar = this.root.querySelector("[data-open]");
    const shown = new Set([...this.view.nodes.values()].flatMap((node) => foldsOf(this.model, node.members[0])));
    const folds = [...this.open].filter((fold) => shown.has(fold));
    bar.hidden = folds.length === 0;
    bar.querySelector("[data-folds]").replaceChildren(...folds.slice(0, mostOpenNamed).map((fold) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "btn btn-sm";
      button.textContent = this.model.folds[fold].name;
      button.setAttribute("aria-label", `Fold ${this.model.folds[fold].name}`);
      button.addEventListener("click", () => this.close(fold));
      return button;
    }));
  }

  // Opens the folds of an asset, so that its node is shown.
  reveal(at) {
    for (const fold of foldsOf(this.model, at)) {
      if (!this.open.has(fold)) this.open = opened(this.model, this.open, fold, this.assets).open;
    }
  }

  goTo(at) {
    if (this.assets && !this.assets.has(at)) return this.say("This asset is not in this part of the graph.");
    this.reveal(at);
    this.wanted = new Set([`a${at}`]);
    this.changed({ focus: `a${at}` });
  }

  changed(after) {
    this.layout(after);
    this.write();
  }

  write() {
    writeAddress(this.model, { open: this.open, selected: this.selectedAssets() });
  }

  // ------------------------------------------------------------ selection
  selectedAssets() {
    const ids = [...(this.wanted ?? this.selected)];
    return ids.filter((id) => id[0] === "a").map((id) => Number(id.slice(1)));
  }

  select(id, { adds = false } = {}) {
    const next = new Set(adds ? this.selected : []);
    if (adds && next.has(id)) next.delete(id);
    else next.add(id);
    this.selected = next;
    this.showSelection();
    this.write();
    const names = [...next].map((selected) => this.picture.labelOf(this.view.nodes.get(selected)));
    this.say(names.length === 1 ? `${names[0]} selected` : `${names.length} selected`);
    // The panel takes a part of the canvas.
    if (next.has(id)) requestAnimationFrame(() => this.camera.show(this.picture.places.get(id)));
  }

  unselect() {
    this.selected = new Set();
    this.showSelection();
    this.write();
    this.sayNumber();
  }

  showSelection() {
    this.picture.mark(this.selected);
    this.panel.show([...this.selected].map((id) => this.view.nodes.get(id)));
  }

  visit(id) {
    location.assign(this.picture.elements.get(id).getAttribute("href"));
  }

  // The Enter key on an asset.
  enter(id) {
    this.visit(id);
  }

  makeTabStop(id) {
    for (const element of this.picture.nodeLayer.querySelectorAll('[tabindex="0"]')) element.setAttribute("tabindex", -1);
    this.picture.elements.get(id)?.setAttribute("tabindex", 0);
  }

  // ------------------------------------------------------------ people
  listen() {
    const idOf = (event) => event.target.closest?.("[data-node]")?.dataset.node;
    this.canvas.addEventListener("dragstart", (event) => event.preventDefault());
    this.canvas.addEventListener("click", (event) => {
      const id = idOf(event);
      // A link opens in another tab as everywhere.
      if (id && (event.ctrlKey || event.metaKey) && !this.view.nodes.get(id).isFold) return;
      event.preventDefault();
      if (this.camera.moved) return;
      if (!id) this.unselect();
      else if (this.view.nodes.get(id).isFold && !event.shiftKey) this.unfold(Number(id.slice(1)));
      else this.select(id, { adds: event.shiftKey });
    });
    this.canvas.addEventListener("dblclick", (event) => {
      const id = idOf(event);
      if (id && id[0] === "a") this.visit(id);
    });
    this.canvas.addEventListener("focusin", (event) => {
      const id = idOf(event);
      if (!id) return;
      this.makeTabStop(id);
      if (event.target.matches(":focus-visible")) this.camera.show(this.picture.places.get(id));
    });
    this.canvas.addEventListener("keydown", (event) => this.press(event, idOf(event)));
    for (const button of this.root.querySelectorAll("[data-do]")) {
      button.addEventListener("click", () => this.act(button.dataset.do));
    }
    offerMatches(this);
  }

  press(event, id) {
    if (event.altKey || event.ctrlKey || event.metaKey || !id) return;
    const node = this.view.nodes.get(id);
    const operations = {
      Enter: () => (node.isFold ? this.unfold(node.at) : this.enter(id)),
      " ": () => this.select(id, { adds: event.shiftKey }),
      Escape: () => this.escape(node),
      "+": () => this.camera.zoom(1.25),
      "-": () => this.camera.zoom(0.8),
      0: () => this.camera.fit(this.size, true),
    };
    const operation = operations[event.key];
    const next = operation ? null : stepFrom(this.picture, id, event.key);
    if (!operation && !next && !event.key.startsWith("Arrow")) return;
    event.preventDefault();
    if (operation) operation();
    else if (next) this.picture.elements.get(next).focus({ preventScroll: true });
  }

  // First out of the selection, then out of the innermost fold.
  escape(node) {
    if (this.selected.size) return this.unselect();
    const fold = node.isFold ? this.model.folds[node.at].outer : this.model.assets[node.at].fold;
    if (fold !== null && this.open.has(fold)) this.close(fold);
  }

  act(operation) {
    const operations = {
      closer: () => this.camera.zoom(1.25),
      farther: () => this.camera.zoom(0.8),
      fit: () => this.camera.fit(this.size, true),
      fold: () => this.closeAll(),
      unfold: () => this.openAll(),
    };
    operations[operation]();
  }
}
