// How a file says that its picture is turned or mirrored: in EXIF data, or else in XMP. The server follows both, in
// every format. Browsers follow EXIF data in JPEGs; in other files some do, and of XMP they read nothing.
const kOrientation = 0x112;     // the tag, of TIFF 6.0
const kUsual = 1, kTurned = 5;  // from here on rows and columns are exchanged
const kExif = "Exif\0\0", kXmp = "://ns.adobe.com/xap/1.0/\0", kXmpOfPng = "XML:com.adobe.xmp\0";

const latin = (bytes) => new TextDecoder("latin1").decode(bytes);
const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

// Its named parts: [name, bytes]. What is damaged ends the list.
function* partsOf(bytes, format) {
  const view = viewOf(bytes), isPng = format === "png";
  if (format !== "jpeg") {
    for (let at = isPng ? 8 : 12; at + 12 <= bytes.length;) {
      const size = isPng ? view.getUint32(at) : view.getUint32(at + 4, true), begin = at + 8;
      yield [latin(bytes.subarray(isPng ? at + 4 : at, begin - (isPng ? 0 : 4))), bytes.subarray(begin, begin + size)];
      at = begin + size + (isPng ? 4 : size % 2);
    }
    return;
  }
  for (let at = 2; at + 4 <= bytes.length && bytes[at] === 0xff && bytes[at + 1] !== 0xda;) {
    const size = view.getUint16(at + 2);
    yield [bytes[at + 1] === 0xe1 ? "APP1" : "", bytes.subarray(at + 4, at + 2 + size)];
    at += 2 + size;
  }
}

// 0 if it says none.
function orientationOfExif(exif) {
  while (latin(exif.subarray(0, kExif.length)) === kExif) exif = exif.subarray(kExif.length);
  const view = viewOf(exif), isLittle = exif[0] === 0x49;
  try {
    const directory = view.getUint32(4, isLittle), count = view.getUint16(directory, isLittle);
    for (let i = 0, at = directory + 2; i < count; ++i, at += 12)
      if (view.getUint16(at, isLittle) === kOrientation) return view.getUint16(at + 8, isLittle);
  } catch (error) {
    console.debug(error);  // cut
  }
  return 0;
}

const orientationOfXmp = (xmp) => Number(/tiff:Orientation(?:="|>)([0-9])/.exec(latin(xmp))?.[1] ?? 0);

function statedBy(bytes, format) {
  let exif = 0, xmp = 0;
  for (const [name, data] of partsOf(bytes, format)) {
    const first = latin(data.subarray(0, 40)), isOf = (kind) => name === "APP1" && first.includes(kind);
    if (["eXIf", "EXIF"].includes(name) || isOf(kExif)) exif ||= orientationOfExif(data);
    if (name === "XMP " || isOf(kXmp) || (name === "iTXt" && first.startsWith(kXmpOfPng))) xmp ||= orientationOfXmp(data);
  }
  return { exif, xmp };
}

// True if the server turns or mirrors a file that this browser shows in `width` and `height` as it is stored.
export function isShownOtherwise(bytes, format, { width, height }) {
  const { exif, xmp } = statedBy(bytes, format), stated = exif || xmp;
  if (stated <= kUsual || stated > 8 || (format === "jpeg" && exif)) return false;
  if (format !== "png" || !exif || stated < kTurned) return true;
  const stored = viewOf(bytes);
  return width !== stored.getUint32(20) || height !== stored.getUint32(16);
}
