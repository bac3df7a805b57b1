// Sizes that a model draws well: shapes at its own area, in its multiples, within the server's limits.

export const shapes = { square: 1, landscape: 3 / 2, wide: 16 / 9, portrait: 2 / 3 };

// The size of a ratio (width / height): of those around the exact one, the nearest in shape and area.
export function sizeOfRatio(ratio, { defaults, limits }) {
  const multiple = limits.size_multiple, area = Math.min(defaults.width * defaults.height, limits.pixels);
  const exact = [Math.sqrt(area * ratio), Math.sqrt(area / ratio)];
  const near = (side) => [Math.floor, Math.ceil].map((round) =>
    Math.min(Math.floor(limits.largest_side / multiple), Math.max(1, round(side / multiple))) * multiple);
  let best = null;
  for (const width of near(exact[0]))
    for (const height of near(exact[1])) {
      if (width * height > limits.pixels) continue;
      const miss = 2 * Math.abs(Math.log(width / height / ratio)) + Math.abs(Math.log(width * height / area));
      if (!best || miss < best.miss) best = { width, height, miss };
    }
  return best && { width: best.width, height: best.height };
}

// The size for a picture to start from: its own if the model could have drawn it, else its shape at the
// model's area.
export function sizeLike(width, height, capabilities) {
  const { defaults, limits } = capabilities;
  const part = width * height / (defaults.width * defaults.height);
  const fits = width % limits.size_multiple === 0 && height % limits.size_multiple === 0 &&
    width * height <= limits.pixels && Math.max(width, height) <= limits.largest_side;
  return fits && part >= 0.5 && part <= 1.5 ? { width, height } : sizeOfRatio(width / height, capabilities);
}
