// Fingers, pen and mouse on one element: one draws or drags, two pinch.
//
// touch(element, { begin, move, end, abandon, pinch }): the first four get the event; `abandon` comes
// instead of `end` when a second finger arrives. pinch({ scale, x, y, dx, dy }) is relative to the last
// call; x and y are the middle in client coordinates.
export function touch(element, acts) {
  const down = new Map();  // where each pointer is
  let isPinching = false;

  const spread = () => {
    const [a, b] = [...down.values()];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, distance: Math.max(1, Math.hypot(a.x - b.x, a.y - b.y)) };
  };
  const isOwn = (event) => event.pointerType !== "mouse" || event.button === 0;

  element.addEventListener("pointerdown", (event) => {
    if (!isOwn(event) || down.size === 2) return;
    event.preventDefault();  // also keeps a picture from being dragged away
    element.setPointerCapture(event.pointerId);
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (down.size === 2) {
      if (!isPinching) acts.abandon?.(event);
      isPinching = true;
    } else {
      acts.begin?.(event);
    }
  });
  element.addEventListener("pointermove", (event) => {
    if (!down.has(event.pointerId)) return acts.hover?.(event);
    const before = down.size === 2 ? spread() : null;
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (!before) return isPinching || acts.move?.(event);
    const after = spread();
    acts.pinch?.({ scale: after.distance / before.distance, x: after.x, y: after.y,
                   dx: after.x - before.x, dy: after.y - before.y });
  });
  const up = (event) => {
    if (!down.delete(event.pointerId)) return;
    if (isPinching) isPinching = down.size > 0;  // the finger that stays does not draw
    else if (event.type === "pointercancel") acts.abandon?.(event);
    else acts.end?.(event);
  };
  element.addEventListener("pointerup", up);
  element.addEventListener("pointercancel", up);
}
