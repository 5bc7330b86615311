// Draws nodes and edges as SVG. Nodes are links or buttons, of which one is in the tab order.
import { stateSeparator } from "./states.js";

const svgSpace = "http://www.w3.org/2000/svg";
export const nodeSize = { width: 230, height: 54 };
const textLeft = 38;
const mostLetters = 22;
const mostTold = 27;
// So many edges are faint, but for the edges of what is selected.
const manyLines = 150;

export function svgElement(name, attributes = {}, ...children) {
  const element = document.createElementNS(svgSpace, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function shortened(text, most = mostLetters) {
  // The end of a name tells assets of one prefix apart.
  if (text.length <= most) return text;
  const end = Math.floor(most / 2);
  return `${text.slice(0, most - end - 1)}…${text.slice(-end)}`;
}

// The most urgent states come first; states without room are left out.
function fitting(text) {
  const states = text.split(stateSeparator);
  while (states.length > 1 && states.join(stateSeparator).length + 2 > mostTold) states.pop();
  const shown = states.join(stateSeparator);
  return shown.length < text.length && text.length > mostTold ? `${shown} …` : text;
}

export class Picture {
  constructor(layer, { icons, assetAddress }) {
    this.layer = layer;
    this.icons = icons;
    this.assetAddress = assetAddress;
    this.edgeLayer = svgElement("g", { class: "edges" });
    this.nodeLayer = svgElement("g", { class: "nodes" });
    // Words on edges are above the nodes, which would cover them.
    this.wordLayer = svgElement("g", { class: "words", "aria-hidden": "true" });
    layer.append(this.edgeLayer, this.nodeLayer, this.wordLayer);
    this.elements = new Map();
    this.lines = [];
    this.places = new Map();
  }

  draw(model, view, { places, lines, isDown }) {
    this.model = model;
    this.isDown = isDown;
    this.places = new Map(places.map((place) => [place.id, place]));
    this.elements = new Map([...view.nodes.values()].map((node) => [node.id, this.node(node)]));
    this.lines = lines.map((line, at) => this.line(line, view.edges[at]));
    this.wordLayer.replaceChildren(...this.lines.map((line) => line.words));
    this.layer.classList.toggle("dense", this.lines.length > manyLines);
    this.nodeLayer.replaceChildren(...this.elements.values());
    this.edgeLayer.replaceChildren(...this.lines.map((line) => line.element));
  }

  labelOf(node) {
    return node.isFold ? this.model.folds[node.at].name : this.model.assets[node.at].name;
  }

  node(node) {
    const { x, y } = this.places.get(node.id);
    const { width, height } = nodeSize;
    const label = this.labelOf(node);
    const frame = { x: -width / 2, y: -height / 2, width, height, rx: 6 };
    const text = { x: -width / 2 + textLeft };
    const element = svgElement(node.isFold ? "g" : "a", {
      id: `node-${node.id}`, class: node.isFold ? "node fold" : "node", transform: `translate(${x} ${y})`,
      tabindex: -1, "data-node": node.id,
    });
    if (node.isFold) {
      element.setAttribute("role", "button");
      element.setAttribute("aria-expanded", "false");
      element.append(svgElement("rect", { ...frame, x: frame.x + 6, y: frame.y + 6, class: "behind" }));
    } else {
      element.setAttribute("href", this.assetAddress(label));
      if (this.model.assets[node.at].external) element.classList.add("external");
    }
    const isPaused = !node.isFold && this.model.assets[node.at].paused;
    const name = node.isFold ? `${shortened(label, 17)} (${node.members.length.toLocaleString()})` : shortened(label);
    element.append(
      svgElement("title", {}, label),
      svgElement("rect", { ...frame, class: "frame" }),
      svgElement("rect", { ...frame, width: 5, rx: 2, class: "tone" }),
      svgElement("svg", { x: -width / 2 + 12, y: -9, width: 18, height: 18, class: "icon" }, svgElement("use")),
      // The title says the same to people who do not see the picture, without cuts.
      svgElement("text", { ...text, y: -5, class: "name", "aria-hidden": "true" }, name),
      svgElement("text", { ...text, y: 15, class: "summary", "aria-hidden": "true" }),
    );
    if (isPaused) element.append(this.pauseMark());
    return element;
  }

  // At the upper right corner of a node: the title of the node says the same.
  pauseMark() {
    const { width, height } = nodeSize;
    const corner = { x: width / 2 - 21, y: -height / 2 + 6, width: 15, height: 15 };
    return svgElement(
      "svg", { ...corner, class: "icon pause-mark", "aria-hidden": "true" },
      svgElement("use", { href: `${this.icons}#player-pause` }),
    );
  }

  line(line, { relations, count }) {
    const kinds = [...relations].map((at) => this.model.relations[at]);
    const words = count > 1 ? `${count} edges: ${relationWords(kinds)}` : relationWords(kinds);
    const middle = middleOf(line.points);
    return {
      ...line,
      words: svgElement("text", { x: middle.x, y: middle.y - 6 }, shortened(words, 40)),
      element: svgElement(
        "g", { class: kinds.some((kind) => kind.inlet) ? "edge" : "edge trigger", "aria-hidden": "true" },
        svgElement("title", {}, words),
        svgElement("path", { d: curve(line.points, this.isDown), "marker-end": "url(#graph-arrow)" }),
      ),
    };
  }

  // States in words and icons; labels for people who do not see the picture.
  tell(view, states) {
    for (const node of view.nodes.values()) {
      const element = this.elements.get(node.id);
      const { look, text } = states.summary(node.members.map((at) => this.model.assets[at].name));
      element.querySelector(".summary").textContent = fitting(text);
      element.dataset.tone = look?.tone ?? "";
      const icon = element.querySelector("use");
      if (look) icon.setAttribute("href", `${this.icons}#${look.icon}`);
      element.querySelector("title").textContent = this.spoken(node, text);
    }
  }

  spoken(node, text) {
    const label = this.labelOf(node);
    const what = node.isFold ? `${label}, folded, ${node.members.length.toLocaleString()} assets` : label;
    const asset = node.isFold ? null : this.model.assets[node.at];
    const facts = [what, text];
    if (asset?.paused) facts.push("paused");
    if (asset?.external) facts.push("external");
    if (asset) facts.push(`${this.model.upstream[node.at].length} upstream, ${this.model.downstream[node.at].length} downstream`);
    return facts.filter(Boolean).join("; ");
  }

  // Marks the selected nodes and the nodes upstream and downstream of these.
  mark(selected) {
    const upstream = this.following(selected, "to", "from");
    const downstream = this.following(selected, "from", "to");
    for (const [id, element] of this.elements) {
      const isMarked = upstream.has(id) || downstream.has(id);
      element.classList.toggle("selected", selected.has(id));
      element.classList.toggle("dim", selected.size > 0 && !isMarked);
      if (!selected.has(id)) element.removeAttribute("aria-current");
      else element.setAttribute("aria-current", "true");
    }
    for (const { from, to, element, words } of this.lines) {
      const isOn = (upstream.has(from) && upstream.has(to)) || (downstream.has(from) && downstream.has(to));
      element.classList.toggle("dim", selected.size > 0 && !isOn);
      element.classList.toggle("near", selected.has(from) || selected.has(to));
      words.classList.toggle("near", selected.has(from) || selected.has(to));
    }
  }

  following(start, near, far) {
    const visited = new Set(start);
    const waiting = [...start];
    while (waiting.length) {
      const id = waiting.pop();
      for (const line of this.lines) {
        if (line[near] !== id || visited.has(line[far])) continue;
        visited.add(line[far]);
        waiting.push(line[far]);
      }
    }
    return visited;
  }
}

// From point to point, level at each point, or upright: between two columns a curve stays between the columns.
function curve([first, ...rest], isDown) {
  const [along, across] = isDown ? ["y", "x"] : ["x", "y"];
  let path = `M${first.x} ${first.y}`;
  let before = first;
  for (const point of rest) {
    const middle = (before[along] + point[along]) / 2;
    const bend = ({ x, y }) => (isDown ? `${x} ${middle}` : `${middle} ${y}`);
    const isStraight = before[across] === point[across];
    path += `${isStraight ? "L" : `C${bend(before)} ${bend(point)} `}${point.x} ${point.y}`;
    before = point;
  }
  return path;
}

// The place for the words of an edge: the middle of the points.
function middleOf(points) {
  const [first, last] = [points[Math.floor((points.length - 1) / 2)], points[Math.ceil((points.length - 1) / 2)]];
  return { x: (first.x + last.x) / 2, y: (first.y + last.y) / 2 };
}

function relationWords(kinds) {
  const words = kinds.map(({ inlet, scheduling, mapping }) => {
    if (!inlet) return "trigger only";
    return scheduling ? `${mapping}, trigger` : mapping;
  });
  return [...new Set(words)].join("; ");
}
