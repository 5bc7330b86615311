// Moves and zooms the picture: pointer, touch with two fingers, wheel with Ctrl, and buttons.
const closest = 2;
const farthest = 0.05;
// Names of nodes are readable from this scale on.
const readable = 0.6;

export class Camera {
  constructor(canvas, layer) {
    this.canvas = canvas;
    this.layer = layer;
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    // Whether the last gesture has moved the picture: its end is no click.
    this.moved = false;
    this.pointers = new Map();
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
      canvas.addEventListener(end, (event) => this.pointers.delete(event.pointerId));
    }
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 300), this.spot(event));
    }, { passive: false });
  }

  spot({ clientX, clientY }) {
    const box = this.canvas.getBoundingClientRect();
    return { x: clientX - box.left, y: clientY - box.top };
  }

  apply() {
    this.layer.setAttribute("transform", `translate(${this.x} ${this.y}) scale(${this.scale})`);
  }

  press(event) {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    if (this.pointers.size === 0) this.moved = false;
    this.pointers.set(event.pointerId, this.spot(event));
  }

  drag(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = this.spot(event);
    const otherPointers = [...this.pointers].filter(([id]) => id !== event.pointerId);
    // A finger trembles: below this, nothing is dragged.
    if (!this.moved && Math.hypot(now.x - before.x, now.y - before.y) < 4) return;
    this.moved = true;
    this.pointers.set(event.pointerId, now);
    if (otherPointers.length) {
      const [, secondSpot] = otherPointers[0];
      const length = (spot) => Math.hypot(spot.x - secondSpot.x, spot.y - secondSpot.y) || 1;
      this.zoom(length(now) / length(before), secondSpot);
      return;
    }
    this.x += now.x - before.x;
    this.y += now.y - before.y;
    this.apply();
  }

  zoom(factor, spot) {
    const box = this.canvas.getBoundingClientRect();
    const { x, y } = spot ?? { x: box.width / 2, y: box.height / 2 };
    const scale = Math.min(closest, Math.max(farthest, this.scale * factor));
    this.x = x - (x - this.x) * (scale / this.scale);
    this.y = y - (y - this.y) * (scale / this.scale);
    this.scale = scale;
    this.apply();
  }

  // The whole picture, or its beginning where the whole would be too small to read: returns whether
  // the whole is seen.
  fit(size, isWhole = false) {
    const box = this.canvas.getBoundingClientRect();
    const whole = Math.min(box.width / size.width, box.height / size.height, 1);
    this.scale = Math.max(isWhole ? farthest : readable, Math.min(whole, 1));
    this.x = Math.max(0, (box.width - size.width * this.scale) / 2);
    this.y = Math.max(0, (box.height - size.height * this.scale) / 2);
    this.apply();
    return this.scale <= whole;
  }

  // Brings a spot of the picture into sight; moves as little as needed, or to the middle.
  show({ x, y }, { toMiddle = false } = {}) {
    const box = this.canvas.getBoundingClientRect();
    if (toMiddle && this.scale < readable) this.scale = readable;
    const at = { x: x * this.scale + this.x, y: y * this.scale + this.y };
    const [far, high] = [Math.min(150, box.width / 3), Math.min(60, box.height / 3)];
    const isSeen = at.x > far && at.x < box.width - far && at.y > high && at.y < box.height - high;
    if (toMiddle || !isSeen) {
      this.x = box.width / 2 - x * this.scale;
      this.y = box.height / 2 - y * this.scale;
    }
    this.apply();
  }
}
