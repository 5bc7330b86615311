// The state of the graph in the page's address, so that a link shows the same picture.
// Folds are named by the labels of their path: their numbers change with the assets.
const separator = " / ";
// Servers and proxies refuse addresses of more than some thousand characters.
export const longestQuery = 4000;

function pathOf(model, fold) {
  const labels = [];
  for (let at = fold; at !== null; at = model.folds[at].outer) labels.unshift(model.folds[at].name);
  return labels.join(separator);
}

export function readAddress(model) {
  const query = new URLSearchParams(location.search);
  const folds = new Map(model.folds.map((_, fold) => [pathOf(model, fold), fold]));
  const numbers = query.getAll("open").map((path) => folds.get(path));
  return {
    open: query.has("open") ? new Set(numbers.filter((fold) => fold !== undefined)) : null,
    selected: query.getAll("selected").map((name) => model.places.get(name)).filter((at) => at !== undefined),
    around: query.get("around") ?? "",
    direction: query.get("direction") ?? "",
  };
}

export function writeAddress(model, { open, selected }) {
  const query = new URLSearchParams(location.search);
  query.delete("open");
  query.delete("selected");
  // Without a fold that is open, an empty value says that this is not the first look.
  if (model.folds.length) for (const fold of open.size ? open : [null]) query.append("open", fold === null ? "" : pathOf(model, fold));
  for (const at of selected) query.append("selected", model.assets[at].name);
  // A page that cannot be loaded again is worse than one that is folded as at first.
  if (query.toString().length > longestQuery) query.delete("open");
  if (query.toString().length > longestQuery) query.delete("selected");
  const text = query.toString();
  history.replaceState(history.state, "", text ? `?${text}` : location.pathname);
}
