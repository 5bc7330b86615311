// Arrow keys: along edges sideways, and among the nodes of one column up and down. In a picture whose edges
// lead downwards the keys change places.
const besides = 40;

function nearest(places, from) {
  return places.sort((a, b) => Math.hypot(a.x - from.x, a.y - from.y) - Math.hypot(b.x - from.x, b.y - from.y))[0];
}

// The node that a key leads to; undefined where it leads nowhere.
export function stepFrom(picture, id, key) {
  const here = picture.places.get(id);
  const otherPlaces = [...picture.places.values()].filter((place) => place.id !== id);
  const [further, back, next, previous] = picture.isDown
    ? ["ArrowDown", "ArrowUp", "ArrowRight", "ArrowLeft"]
    : ["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"];
  const [along, across] = picture.isDown ? ["y", "x"] : ["x", "y"];
  const ends = { [further]: ["from", "to"], [back]: ["to", "from"] }[key];
  if (ends) {
    const [near, far] = ends;
    const linked = picture.lines.filter((line) => line[near] === id).map((line) => picture.places.get(line[far]));
    return nearest(linked, here)?.id;
  }
  if (key === "Home" || key === "End") {
    const ordered = [here, ...otherPlaces].sort((a, b) => a[along] - b[along] || a[across] - b[across]);
    return ordered.at(key === "Home" ? 0 : -1).id;
  }
  const way = { [next]: 1, [previous]: -1 }[key];
  const ahead = otherPlaces.filter((place) => (place[across] - here[across]) * way > 0);
  const column = ahead.filter((place) => Math.abs(place[along] - here[along]) < besides);
  return nearest(column.length ? column : ahead, here)?.id;
}
