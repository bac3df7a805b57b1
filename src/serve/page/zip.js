// Writes ZIP archives without compression: pictures are compressed already. Files are read one after the
// other; the archive refers to them and holds no copy.
const table = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; ++bit) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n >>> 0;
});

// The checksum of ISO 3309 that ZIP and PNG use.
export function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = table[(crc ^ byte) & 255] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

// fields(2, a, 4, b, ...): little-endian numbers of so many bytes.
function fields(...pairs) {
  const bytes = new Uint8Array(pairs.reduce((sum, one, i) => sum + (i % 2 ? 0 : one), 0));
  const view = new DataView(bytes.buffer);
  for (let at = 0, i = 0; i < pairs.length; at += pairs[i], i += 2) {
    if (pairs[i] === 2) view.setUint16(at, pairs[i + 1], true);
    else if (pairs[i] === 4) view.setUint32(at, pairs[i + 1], true);
    else view.setBigUint64(at, BigInt(pairs[i + 1]), true);
  }
  return bytes;
}

const dosTime = (date) => (date.getHours() << 11) | (date.getMinutes() << 5) | (date.getSeconds() >> 1);
const dosDate = (date) => ((date.getFullYear() - 1980) << 9) | ((date.getMonth() + 1) << 5) | date.getDate();

const kVersion = 20, kVersion64 = 45, kUtf8 = 1 << 11, kStored = 0;

// What the local header and the directory say of a file alike.
const described = (file, version) => [2, version, 2, kUtf8, 2, kStored, 2, dosTime(file.date), 2, dosDate(file.date),
  4, file.crc, 4, file.size, 4, file.size, 2, file.name.length];

function directoryEntry(file, most) {
  const is64 = file.offset >= most;
  const extra = is64 ? fields(2, 1, 2, 8, 8, file.offset) : new Uint8Array();
  return [fields(4, 0x02014b50, 2, kVersion64, ...described(file, is64 ? kVersion64 : kVersion), 2, extra.length,
    2, 0, 2, 0, 2, 0, 4, 0, 4, is64 ? 0xffffffff : file.offset), file.name, extra];
}

function ending(count, size, offset, most) {
  const end = fields(4, 0x06054b50, 2, 0, 2, 0, 2, Math.min(count, 0xffff), 2, Math.min(count, 0xffff),
    4, Math.min(size, 0xffffffff), 4, offset >= most ? 0xffffffff : offset, 2, 0);
  if (offset < most && size < most && count < 0xffff) return [end];
  return [fields(4, 0x06064b50, 8, 44, 2, kVersion64, 2, kVersion64, 4, 0, 4, 0, 8, count, 8, count, 8, size, 8, offset),
    fields(4, 0x07064b50, 4, 0, 8, offset + size, 4, 1), end];
}

// An archive of { name, date, blob() }, where blob() resolves to the contents, below 4 GiB each. Where
// offsets do not fit into 32 bits, they are written as ZIP64; `most` is for tests.
export async function zipOf(files, onFile = () => {}, most = 0xffffffff) {
  const parts = [], directory = [];
  let offset = 0;
  for (const { name, date, blob } of files) {
    const contents = await blob();
    const crc = crc32(new Uint8Array(await contents.arrayBuffer()));
    const file = { name: new TextEncoder().encode(name), date, crc, size: contents.size, offset };
    const head = fields(4, 0x04034b50, ...described(file, kVersion), 2, 0);
    parts.push(head, file.name, contents);
    offset += head.length + file.name.length + contents.size;
    directory.push(...directoryEntry(file, most));
    onFile();
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0);
  return new Blob([...parts, ...directory, ...ending(files.length, size, offset, most)], { type: "application/zip" });
}
