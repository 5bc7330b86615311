// Places nodes, away from the page's own thread: some hundred nodes take most of a second.
import dagre from "../vendor/dagre/dagre.esm.js";
import { inLayers, layersOf } from "./layers.js";

const nodeGap = 18;
const margin = 20;
// Above so many nodes, the exact ranks take longer than they are worth.
const exactUpTo = 120;
// The library puts a point of its own where an edge crosses a layer. Above so many edges and points
// the library takes more than a second, and the picture could not be read anyway.
const mostCrossings = 1000;

// Edges lead from left to right, or downwards: "along" is the axis of edges, with the size of nodes along it.
const toTheRight = { rankdir: "LR", ranksep: 110, along: "x", across: "y", length: "width" };
const downwards = { rankdir: "TB", ranksep: 30, along: "y", across: "x", length: "height" };

// The two sides of each column of nodes, by the middle of the column; of each row if edges lead downwards.
function columnsOf(nodes, graph, { along, length }) {
  return new Map(nodes.map((node) => {
    const middle = graph.node(node.id)[along];
    return [Math.round(middle), [middle - node[length] / 2, middle + node[length] / 2]];
  }));
}

// The library ends an edge where the line to the middle of a node meets the frame: a steep edge would
// leave a node at the top and run behind the nodes above. Here an edge leaves and enters nodes at
// their sides, and passes a column of nodes level, in the room that the library keeps for the edge.
function anchors(graph, from, to, columns, { along, across }) {
  const [first, last] = [graph.node(from), graph.node(to)];
  const isForward = first[along] < last[along];
  const sides = (point) => {
    const both = columns.get(Math.round(point[along])) ?? [];
    return (isForward ? both : [...both].reverse()).map((side) => ({ [along]: side, [across]: point[across] }));
  };
  const between = graph.edge(from, to).points.slice(1, -1);
  return [sides(first)[1], ...between.flatMap(sides), sides(last)[0]];
}

function byLibrary(nodes, edges, way) {
  const { rankdir, ranksep } = way;
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({
    rankdir, ranksep, nodesep: nodeGap, edgesep: 8, marginx: margin, marginy: margin,
    ranker: nodes.length > exactUpTo ? "tight-tree" : "network-simplex",
  });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(node.id, { width: node.width, height: node.height });
  for (const [from, to] of edges) graph.setEdge(from, to);
  dagre.layout(graph);
  const columns = columnsOf(nodes, graph, way);
  return {
    places: nodes.map(({ id }) => ({ id, x: graph.node(id).x, y: graph.node(id).y })),
    lines: edges.map(([from, to]) => ({ from, to, points: anchors(graph, from, to, columns, way) })),
    isDown: way === downwards,
    size: { width: graph.graph().width, height: graph.graph().height },
  };
}

// The scale at which a picture fits into a room.
function scaleIn(room, { size }) {
  return Math.min(room.width / size.width, room.height / size.height, 1);
}

// With a room, such as a phone's, edges lead downwards where the picture is larger so.
function connectedLayout(nodes, edges, room) {
  const layers = layersOf(nodes, edges);
  const lengths = edges.map(([from, to]) => Math.max(1, layers.get(to) - layers.get(from)));
  // Within a cycle all nodes share a layer here, and the library would make a long chain of them.
  const inCycle = edges.filter(([from, to]) => layers.get(from) === layers.get(to)).length;
  const crossings = lengths.reduce((sum, length) => sum + length, inCycle * 10);
  if (crossings > mostCrossings) return inLayers(nodes, edges, layers);
  const level = byLibrary(nodes, edges, toTheRight);
  if (!room || scaleIn(room, level) === 1) return level;
  const upright = byLibrary(nodes, edges, downwards);
  return scaleIn(room, upright) > scaleIn(room, level) ? upright : level;
}

// Nodes without an edge would make one long column: they fill rows below the others.
function inRows(nodes, top, width) {
  const columns = Math.max(1, Math.floor(Math.max(width, 1100) / (nodes[0].width + nodeGap)));
  return nodes.map((node, at) => ({
    id: node.id,
    x: margin + (at % columns) * (node.width + nodeGap) + node.width / 2,
    y: top + Math.floor(at / columns) * (node.height + nodeGap) + node.height / 2,
  }));
}

function layout({ nodes, edges, room }) {
  const joined = new Set(edges.flat());
  const connected = nodes.filter((node) => joined.has(node.id));
  const single = nodes.filter((node) => !joined.has(node.id));
  const nothing = { places: [], lines: [], size: { width: 0, height: margin } };
  const { places, lines, size, isDown = false } = connected.length ? connectedLayout(connected, edges, room) : nothing;
  if (single.length) {
    const rows = inRows(single, size.height + (connected.length ? nodeGap : 0), size.width);
    places.push(...rows);
    size.width = Math.max(size.width, ...rows.map((row) => row.x + single[0].width / 2 + margin));
    size.height = Math.max(...rows.map((row) => row.y)) + single[0].height / 2 + margin;
  }
  return { places, lines, size, isDown };
}

self.addEventListener("message", ({ data }) => {
  self.postMessage({ number: data.number, ...layout(data) });
});
