// Texts of the selection grammar for cells of the grid. The server reads the text back: what a text
// selects is decided there alone.
import { cellLinks } from "./selectors.js";

const dateLengths = { day: 10, month: 7, year: 4 };

// More than a table has.
const columnsOfBlock = 10_000;

function keyOf(cell) {
  const path = new URL(cell.href).pathname;
  return decodeURIComponent(path.split("/partitions/")[1].replace(/\/$/, ""));
}

// A zoomed-out cell leads to a closer zoom: its address tells its day, month or year.
function stretchOf(cell) {
  const query = new URL(cell.href).searchParams;
  return query.get("at").slice(0, dateLengths[query.get("zoom")]);
}

function segmentOf(cell) {
  return cell.closest("[data-segment]")?.dataset.segment;
}

export class Cells {
  constructor(grid) {
    this.grid = grid;
    this.all = [...grid.querySelectorAll(cellLinks)];
    this.names = JSON.parse(grid.dataset.dimensions || "[]");
    this.isList = grid.dataset.list !== undefined;
    this.rows = new Map();
    this.places = new Map();
    const blocks = [...grid.querySelectorAll(".block")];
    this.all.forEach((cell, number) => {
      const segment = segmentOf(cell);
      if (!this.rows.has(segment)) this.rows.set(segment, []);
      const row = this.rows.get(segment);
      // A segment of a backfill may have no cell in a column.
      const block = blocks.indexOf(cell.closest(".block"));
      const column = segment === undefined ? row.length : block * columnsOfBlock + cell.parentElement.cellIndex;
      this.places.set(cell, { number, segment, at: row.length, column });
      row.push(cell);
    });
    this.segments = [...this.rows.keys()];
  }

  // All cells of the segments and of the time between two cells.
  between(first, last) {
    const [a, b] = [this.places.get(first), this.places.get(last)];
    const lines = [this.segments.indexOf(a.segment), this.segments.indexOf(b.segment)].sort((x, y) => x - y);
    const [from, to] = [Math.min(a.column, b.column), Math.max(a.column, b.column)];
    const isBetween = (cell) => this.places.get(cell).column >= from && this.places.get(cell).column <= to;
    return this.segments.slice(lines[0], lines[1] + 1).flatMap((segment) => this.rows.get(segment).filter(isBetween));
  }

  text(cells) {
    if (!cells.length) return "";
    if (this.isList) return this.sorted(cells).map(keyOf).join(",");
    const bySegment = new Map();
    for (const cell of this.sorted(cells)) {
      const { segment } = this.places.get(cell);
      if (!bySegment.has(segment)) bySegment.set(segment, []);
      bySegment.get(segment).push(cell);
    }
    if (this.names.length < 2) return this.times(cells);
    const byTimes = new Map();
    for (const [segment, row] of bySegment) {
      const times = this.times(row);
      byTimes.set(times, [...(byTimes.get(times) ?? []), segment]);
    }
    return [...byTimes].flatMap(([times, segments]) => this.terms(times, segments)).join("; ");
  }

  sorted(cells) {
    return [...cells].sort((a, b) => this.places.get(a).number - this.places.get(b).number);
  }

  timeOf(cell) {
    if (!new URL(cell.href).pathname.includes("/partitions/")) return stretchOf(cell);
    const key = keyOf(cell);
    return this.names.length < 2 ? key : key.split("|")[this.names.indexOf(this.grid.dataset.time)];
  }

  // Adjacent cells of one segment are one range.
  times(cells) {
    const runs = [];
    const inTime = [...cells].sort((a, b) => this.places.get(a).at - this.places.get(b).at);
    for (const cell of inTime) {
      const { at } = this.places.get(cell);
      const run = runs.at(-1);
      if (run && run.at + 1 === at) Object.assign(run, { at, last: cell });
      else runs.push({ at, first: cell, last: cell });
    }
    return runs.map(({ first, last }) => {
      const [from, to] = [this.timeOf(first), this.timeOf(last)];
      return from === to ? from : `${from}..${to}`;
    }).join(",");
  }

  terms(times, segments) {
    const segmentNames = this.names.filter((name) => name !== this.grid.dataset.time);
    const time = `${this.grid.dataset.time}=${times}`;
    if (segmentNames.length === 1) return [`${time} ${segmentNames[0]}=${segments.join(",")}`];
    return segments.map((segment) => {
      const segmentTerms = segment.split("|").map((text, at) => `${segmentNames[at]}=${text}`);
      return [time, ...segmentTerms].join(" ");
    });
  }
}
