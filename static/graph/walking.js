// Arrow keys: along edges sideways, and among the nodes of one column up and down.
const besides = 40;

function nearest(places, from) {
  return places.sort((a, b) => Math.hypot(a.x - from.x, a.y - from.y) - Math.hypot(b.x - from.x, b.y - from.y))[0];
}

// The node that a key leads to; undefined where it leads nowhere.
export function stepFrom(picture, id, key) {
  const here = picture.places.get(id);
  const otherPlaces = [...picture.places.values()].filter((place) => place.id !== id);
  const ends = { ArrowRight: ["from", "to"], ArrowLeft: ["to", "from"] }[key];
  if (ends) {
    const [near, far] = ends;
    const linked = picture.lines.filter((line) => line[near] === id).map((line) => picture.places.get(line[far]));
    return nearest(linked, here)?.id;
  }
  if (key === "Home" || key === "End") {
    const ordered = [here, ...otherPlaces].sort((a, b) => a.x - b.x || a.y - b.y);
    return ordered.at(key === "Home" ? 0 : -1).id;
  }
  const way = { ArrowDown: 1, ArrowUp: -1 }[key];
  const ahead = otherPlaces.filter((place) => (place.y - here.y) * way > 0);
  const column = ahead.filter((place) => Math.abs(place.x - here.x) < besides);
  return nearest(column.length ? column : ahead, here)?.id;
}
