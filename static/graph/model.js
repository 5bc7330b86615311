// The graph as the server tells it, and the part of it that is drawn: assets, and closed folds.
export const mostNodes = 500;
// Up to so many assets, all folds are open at first.
const fewAssets = 80;

export function readModel(graph) {
  const upstream = graph.assets.map(() => []);
  const downstream = graph.assets.map(() => []);
  for (const [from, to] of graph.edges) {
    upstream[to].push(from);
    downstream[from].push(to);
  }
  const places = new Map(graph.assets.map((asset, at) => [asset.name, at]));
  return { ...graph, upstream, downstream, places };
}

// All assets that edges lead to, with the start.
export function reached(start, nextOf) {
  const visited = new Set(start);
  const waiting = [...visited];
  while (waiting.length) {
    for (const next of nextOf[waiting.pop()]) {
      if (visited.has(next)) continue;
      visited.add(next);
      waiting.push(next);
    }
  }
  return visited;
}

// The assets around an asset, in one direction or both; null stands for all.
export function within(model, around, direction) {
  const start = model.places.get(around);
  if (start === undefined) return null;
  const upstream = direction === "downstream" ? [] : reached([start], model.upstream);
  const downstream = direction === "upstream" ? [] : reached([start], model.downstream);
  return new Set([...upstream, ...downstream, start]);
}

// The folds of an asset, the outermost first.
export function foldsOf(model, asset) {
  const path = [];
  for (let fold = model.assets[asset].fold; fold !== null; fold = model.folds[fold].outer) path.unshift(fold);
  return path;
}

export function opensAll(model, assets) {
  return (assets?.size ?? model.assets.length) <= fewAssets;
}

function shownAs(model, open, asset) {
  const closed = foldsOf(model, asset).find((fold) => !open.has(fold));
  return closed === undefined ? `a${asset}` : `f${closed}`;
}

// Nodes and edges to draw. Edges between the same two nodes become one, which counts them.
export function drawn(model, open, assets) {
  const nodes = new Map();
  const shown = model.assets.map((_, asset) => {
    if (assets && !assets.has(asset)) return null;
    const id = shownAs(model, open, asset);
    if (!nodes.has(id)) nodes.set(id, { id, isFold: id[0] === "f", at: Number(id.slice(1)), members: [] });
    nodes.get(id).members.push(asset);
    return id;
  });
  const edges = new Map();
  for (const [from, to, relation] of model.edges) {
    const [first, last] = [shown[from], shown[to]];
    if (!first || !last || first === last) continue;
    const key = `${first} ${last}`;
    if (!edges.has(key)) edges.set(key, { from: first, to: last, relations: new Set(), count: 0 });
    edges.get(key).relations.add(relation);
    edges.get(key).count += 1;
  }
  return { nodes, edges: [...edges.values()] };
}

// Opens a fold; where too many nodes would be shown, the folds that were opened first are closed.
export function opened(model, open, fold, assets) {
  const next = new Set([...open, fold]);
  const closed = [];
  for (const old of open) {
    if (drawn(model, next, assets).nodes.size <= mostNodes) break;
    if (isInside(model, fold, old)) continue;
    next.delete(old);
    closed.push(old);
  }
  return { open: next, closed };
}

function isInside(model, fold, outer) {
  for (let at = fold; at !== null; at = model.folds[at].outer) if (at === outer) return true;
  return false;
}
