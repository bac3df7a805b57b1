// A mask as a file, white where it is painted, and as paint: a canvas that is opaque there.

// Resolves to { blob, share } of a canvas, or to null if nothing is painted.
export async function fileOfPaint(painted) {
  const { width, height } = painted;
  const sheet = document.createElement("canvas");
  Object.assign(sheet, { width, height });
  const context = sheet.getContext("2d", { willReadFrequently: true });
  context.drawImage(painted, 0, 0);
  context.globalCompositeOperation = "source-in";
  context.fillStyle = "white";
  context.fillRect(0, 0, width, height);
  context.globalCompositeOperation = "destination-over";
  context.fillStyle = "black";
  context.fillRect(0, 0, width, height);
  const { data } = context.getImageData(0, 0, width, height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) count += data[i] >= 128;
  if (count === 0) return null;
  const blob = await new Promise((resolve) => sheet.toBlob(resolve, "image/png"));
  return { blob, share: count / (width * height) };
}

// Lightness is what Pillow's convert("L") makes of colours, as the server reads a mask. `color` is [red, green, blue].
export async function paintOfFile(blob, color) {
  const bitmap = await createImageBitmap(blob);
  const sheet = document.createElement("canvas");
  Object.assign(sheet, { width: bitmap.width, height: bitmap.height });
  const context = sheet.getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  const pixels = context.getImageData(0, 0, sheet.width, sheet.height), { data } = pixels;
  for (let i = 0; i < data.length; i += 4) {
    data[i + 3] = (19595 * data[i] + 38470 * data[i + 1] + 7471 * data[i + 2] + 32768) >> 16;
    [data[i], data[i + 1], data[i + 2]] = color;
  }
  context.putImageData(pixels, 0, 0);
  return sheet;
}
