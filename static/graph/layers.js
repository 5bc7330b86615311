// A plain layout in layers, for graphs with so many long edges that the library takes many seconds:
// nodes of a cycle share a layer, and a high layer is cut into columns.
const columnGap = 110;
const foldGap = 40;
const nodeGap = 18;
const margin = 20;
const mostInColumn = 14;
const sweeps = 4;

function nextOf(nodes, edges) {
  const next = new Map(nodes.map(({ id }) => [id, []]));
  for (const [from, to] of edges) next.get(from).push(to);
  return next;
}

// The cycle of each node, as a number: Tarjan's algorithm, without recursion since a path may be
// long. Of two connected cycles, the one downstream has the lower number.
function cycles(nodes, next) {
  const cycleOf = new Map();
  const low = new Map();
  const number = new Map();
  const open = [];
  let count = 0;
  for (const { id: start } of nodes) {
    if (number.has(start)) continue;
    const path = [[start, 0]];
    while (path.length) {
      const [id, at] = path.at(-1);
      if (at === 0) {
        number.set(id, number.size);
        low.set(id, number.get(id));
        open.push(id);
      }
      const child = next.get(id)[at];
      if (child !== undefined) {
        path.at(-1)[1] += 1;
        if (!number.has(child)) path.push([child, 0]);
        else if (!cycleOf.has(child)) low.set(id, Math.min(low.get(id), number.get(child)));
        continue;
      }
      path.pop();
      if (path.length) low.set(path.at(-1)[0], Math.min(low.get(path.at(-1)[0]), low.get(id)));
      if (low.get(id) !== number.get(id)) continue;
      let member;
      do cycleOf.set(member = open.pop(), count); while (member !== id);
      count += 1;
    }
  }
  return cycleOf;
}

// The layer of each node: one more than the highest layer upstream, cycles aside.
export function layersOf(nodes, edges) {
  const cycle = cycles(nodes, nextOf(nodes, edges));
  const layerOf = new Map();
  const upstream = [...edges].sort((a, b) => cycle.get(b[0]) - cycle.get(a[0]));
  for (const [from, to] of upstream) {
    const [first, last] = [cycle.get(from), cycle.get(to)];
    if (first !== last) layerOf.set(last, Math.max(layerOf.get(last) ?? 0, (layerOf.get(first) ?? 0) + 1));
  }
  return new Map(nodes.map(({ id }) => [id, layerOf.get(cycle.get(id)) ?? 0]));
}

// Each layer in the order of the middles of the neighbours, to and fro.
function ordered(nodes, edges, layers) {
  const rows = [];
  for (const node of nodes) (rows[layers.get(node.id)] ??= []).push(node);
  const beside = new Map(nodes.map(({ id }) => [id, []]));
  for (const [from, to] of edges) {
    beside.get(from).push(to);
    beside.get(to).push(from);
  }
  const place = new Map();
  const settle = (row) => row.forEach(({ id }, at) => place.set(id, at / row.length));
  rows.forEach(settle);
  for (let sweep = 0; sweep < sweeps; sweep += 1) {
    for (const row of sweep % 2 ? [...rows].reverse() : rows) {
      const middle = ({ id }) => {
        const near = beside.get(id);
        if (!near.length) return place.get(id);
        return near.reduce((sum, neighbour) => sum + place.get(neighbour), 0) / near.length;
      };
      const middles = new Map(row.map((node) => [node.id, middle(node)]));
      row.sort((a, b) => middles.get(a.id) - middles.get(b.id));
      settle(row);
    }
  }
  return rows;
}

export function inLayers(nodes, edges, layers) {
  const places = new Map();
  let left = margin;
  let bottom = 0;
  for (const row of ordered(nodes, edges, layers)) {
    const { width, height } = row[0];
    const columns = Math.ceil(row.length / mostInColumn);
    row.forEach((node, at) => {
      const x = left + (at % columns) * (width + foldGap) + width / 2;
      const y = margin + Math.floor(at / columns) * (height + nodeGap) + height / 2;
      places.set(node.id, { id: node.id, x, y });
      bottom = Math.max(bottom, y + height / 2);
    });
    left += columns * (width + foldGap) - foldGap + columnGap;
  }
  const halfWidth = nodes[0].width / 2;
  const lines = edges.map(([from, to]) => ({ from, to, points: line(places.get(from), places.get(to), halfWidth) }));
  return { places: [...places.values()], lines, size: { width: left - columnGap + margin, height: bottom + margin } };
}

// From the right side of a node to the left side of the next one; back edges are bent.
function line(from, to, halfWidth) {
  const [first, last] = [{ x: from.x + halfWidth, y: from.y }, { x: to.x - halfWidth, y: to.y }];
  return [first, { x: (first.x + last.x) / 2, y: (first.y + last.y) / 2 - (first.x > last.x ? 40 : 0) }, last];
}
