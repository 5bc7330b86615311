// Search by a part of the name: offers some names, and goes to the one that is chosen.
const mostOffered = 20;

function matches(model, assets, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const candidates = [];
  model.assets.forEach(({ name }, at) => {
    if (assets && !assets.has(at)) return;
    const place = name.toLowerCase().indexOf(wanted);
    if (place >= 0) candidates.push({ at, name, place });
  });
  // Names that begin with the text come first, and short ones before long ones.
  return candidates.sort((a, b) => a.place - b.place || a.name.length - b.name.length);
}

export function offerMatches(graph) {
  const field = document.getElementById("graph-search");
  const list = document.getElementById("graph-matches");
  if (!field) return;
  field.addEventListener("input", () => {
    const assets = matches(graph.model, graph.assets, field.value);
    list.replaceChildren(...assets.slice(0, mostOffered).map(({ name }) => new Option(name, name)));
    if (field.value.trim()) graph.say(`${assets.length} ${assets.length === 1 ? "asset matches" : "assets match"}`);
    else graph.sayNumber();
  });
  const go = () => {
    const [first] = matches(graph.model, graph.assets, field.value);
    if (first) graph.goTo(first.at);
    else graph.say("No asset matches.");
  };
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !field.value.trim()) return;
    // The form of the page would search the table below.
    event.preventDefault();
    go();
  });
  // An offered name was chosen with the pointer.
  field.addEventListener("change", () => {
    if (graph.model.places.has(field.value)) goOnce(graph, field);
  });
}

function goOnce(graph, field) {
  const at = graph.model.places.get(field.value);
  if (!graph.selectedAssets().includes(at)) graph.goTo(at);
}
