// Paints a mask over a picture. Strokes are kept as drawn, so each can be undone.
import { closeOnBack, showDialog } from "./back.js";
import { $ } from "./dom.js";
import { touch } from "./gestures.js";
import { fileOfPaint, paintOfFile } from "./mask_file.js";

const keyStep = 8;  // picture pixels by which an arrow key moves the brush
const kColor = [0xe0, 0x40, 0x2a];

let strokes = [], undone = [];
let tool = "brush", zoom = 1;
let stroke = null;      // being drawn
let at = [0, 0];        // of the brush, in picture pixels
let isDown = false;     // the brush, by keyboard
let finish = null;      // resolves openMask()'s promise
let base = null;        // what is painted on: { picture, mask, strokes }, as the dialog began
let draft = null;       // what Escape or Back left behind: { base, strokes, undone }

// The strokes that are finished: to draw all of them at each move takes longer the more there are.
const finished = document.createElement("canvas");

const draw = (canvas) => canvas.getContext("2d");

// Something was painted on this picture that was neither used nor given up.
const hasDraft = (picture, mask) => draft !== null && draft.base.picture === picture && draft.base.mask === mask;
export const draftNote = (picture, mask) => hasDraft(picture, mask)
  ? "What was painted is not used yet: “Paint the mask” goes on with it." : "";

// Begins with what was left behind, with the mask that there is, or with none. Resolves to { blob, strokes, share }, to
// null if nothing was painted, or to undefined if the dialog was closed otherwise.
export async function openMask(picture, mask) {
  const image = $("under");
  image.src = URL.createObjectURL(picture);
  await image.decode();
  for (const canvas of [$("mask"), finished])
    Object.assign(canvas, { width: image.naturalWidth, height: image.naturalHeight });
  strokes = !mask ? [] : mask.strokes ? [...mask.strokes] : [{ kind: "file", canvas: await paintOfFile(mask.blob, kColor) }];
  undone = [];
  base = { picture, mask, strokes: [...strokes] };
  if (hasDraft(picture, mask)) ({ strokes, undone } = draft);
  at = [image.naturalWidth / 2, image.naturalHeight / 2];
  isDown = false;
  $("brush-size").max = Math.max(image.naturalWidth, image.naturalHeight) / 2;
  $("brush-size").value = Math.max(image.naturalWidth, image.naturalHeight) / 12;
  choose("brush");
  showDialog($("paint"));
  fit();
  paintAll();
  $("mask").focus();
  const result = await new Promise((resolve) => (finish = resolve));
  URL.revokeObjectURL(image.src);
  return result;
}

// ---- strokes

function paint(canvas, { kind, size, points, from, to, canvas: file }) {
  const context = draw(canvas), { width, height } = canvas;
  context.globalCompositeOperation = kind === "eraser" ? "destination-out" : kind === "invert" ? "xor" : "source-over";
  context.fillStyle = context.strokeStyle = `rgb(${kColor})`;
  context.lineWidth = size;
  context.lineCap = context.lineJoin = "round";
  if (kind === "file") return context.drawImage(file, 0, 0, width, height);
  if (kind === "clear") return context.clearRect(0, 0, width, height);
  if (kind === "invert") return context.fillRect(0, 0, width, height);
  if (kind === "rectangle") return context.fillRect(...from, to[0] - from[0], to[1] - from[1]);
  context.beginPath();
  context.moveTo(...points[0]);
  for (const point of points) context.lineTo(...point);
  context.stroke();
}

function paintAll() {
  draw(finished).clearRect(0, 0, finished.width, finished.height);
  for (const one of strokes) paint(finished, one);
  repaint();
}

function repaint() {
  draw($("mask")).globalCompositeOperation = "copy";
  draw($("mask")).drawImage(finished, 0, 0);
  if (stroke) paint($("mask"), stroke);
  disable("undo", strokes.length === 0);
  disable("redo", undone.length === 0);
}

// A disabled button loses the focus, and the dialog its keyboard control.
function disable(id, isDisabled) {
  if (isDisabled && document.activeElement === $(id)) $("mask").focus();
  $(id).disabled = isDisabled;
}

function append(one) {
  strokes.push(one);
  paint(finished, one);
  repaint();
}

function add(one) {
  undone = [];
  append(one);
}

function undo() {
  if (strokes.length) undone.push(strokes.pop());
  paintAll();
}

function redo() {
  if (undone.length) append(undone.pop());
}

const begun = () => tool === "rectangle" ? { kind: tool, from: at, to: at }
  : { kind: tool, size: Number($("brush-size").value), points: [at] };

function goOn() {
  if (stroke.kind === "rectangle") stroke.to = at;
  else stroke.points.push(at);
  repaint();
}

function end() {
  const one = stroke;
  stroke = null;
  if (one) add(one);
}

function choose(name) {
  tool = name;
  for (const id of ["brush", "eraser", "rectangle"]) $(id).setAttribute("aria-pressed", id === name);
}

// ---- the view

// Zooms so that what is at a point of the screen stays there.
function show(factor, clientX, clientY) {
  const box = $("sheet").getBoundingClientRect(), easel = $("easel").getBoundingClientRect();
  const [x, y] = [clientX ?? easel.left + easel.width / 2, clientY ?? easel.top + easel.height / 2];
  const before = zoom;
  zoom = Math.min(16, Math.max(1 / 16, factor));
  $("sheet").style.width = `${$("mask").width * zoom}px`;
  $("zoom").textContent = `${Math.round(zoom * 100)} %`;
  const now = $("sheet").getBoundingClientRect();
  $("easel").scrollLeft += now.left + (x - box.left) * zoom / before - x;
  $("easel").scrollTop += now.top + (y - box.top) * zoom / before - y;
  showBrush();
}

function fit() {
  $("sheet").style.width = "0";  // scrollbars take space
  const { clientWidth, clientHeight } = $("easel");
  show(Math.min(clientWidth / $("mask").width, clientHeight / $("mask").height));
}

function showBrush() {
  const size = tool === "rectangle" ? 8 : Number($("brush-size").value) * zoom;
  const [left, top, width, height] = [at[0] * zoom, at[1] * zoom, size, size].map((length) => `${length}px`);
  Object.assign($("ring").style, { left, top, width, height });
}

function place(event) {
  const box = $("mask").getBoundingClientRect();
  at = [(event.clientX - box.left) * $("mask").width / box.width, (event.clientY - box.top) * $("mask").height / box.height];
  showBrush();
}

// ---- input

touch($("mask"), {
  begin: (event) => {
    $("mask").focus({ preventScroll: true });
    place(event);
    stroke = begun();
    repaint();
  },
  hover: place,
  move: (event) => {
    place(event);
    if (stroke && !isDown) goOn();
  },
  end: () => !isDown && end(),
  abandon: () => {  // two fingers look closer: the first one did not mean to paint
    stroke = null;
    repaint();
  },
  pinch: ({ scale, x, y, dx, dy }) => {
    $("easel").scrollLeft -= dx;
    $("easel").scrollTop -= dy;
    show(zoom * scale, x, y);
  },
});
$("mask").addEventListener("wheel", (event) => {
  if (!event.ctrlKey) return;
  event.preventDefault();
  show(zoom * (event.deltaY < 0 ? 1.25 : 0.8), event.clientX, event.clientY);
}, { passive: false });

const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
$("mask").addEventListener("keydown", (event) => {
  const arrow = arrows[event.key];
  if (arrow) {
    const { width, height } = $("mask"), step = event.shiftKey ? 4 * keyStep : keyStep;
    at = [Math.min(width, Math.max(0, at[0] + arrow[0] * step)), Math.min(height, Math.max(0, at[1] + arrow[1] * step))];
    showBrush();
    if (isDown) goOn();
  } else if (event.key === " ") {
    isDown = !isDown;
    if (isDown) stroke = begun(), repaint();
    else end();
    $("paint-said").textContent = isDown ? `${tool} down` : `${tool} up`;
  } else {
    return;
  }
  event.preventDefault();
});
$("paint").addEventListener("keydown", (event) => {
  const isControl = event.ctrlKey || event.metaKey, key = event.key.toLowerCase();  // Caps Lock changes letters
  const act = isControl && key === "z" ? (event.shiftKey ? redo : undo)
    : isControl && key === "y" ? redo
    : isControl ? null
    : { b: () => choose("brush"), e: () => choose("eraser"), r: () => choose("rectangle"),
        "+": () => show(zoom * 1.25), "-": () => show(zoom * 0.8), 0: fit }[key];
  if (!act) return;
  event.preventDefault();
  act();
});

for (const name of ["brush", "eraser", "rectangle"]) $(name).addEventListener("click", () => choose(name));
$("brush-size").addEventListener("input", showBrush);
$("undo").addEventListener("click", undo);
$("redo").addEventListener("click", redo);
$("zoom-in").addEventListener("click", () => show(zoom * 1.25));
$("zoom-out").addEventListener("click", () => show(zoom * 0.8));
$("zoom-fit").addEventListener("click", fit);
$("invert").addEventListener("click", () => add({ kind: "invert" }));
$("clear").addEventListener("click", () => add({ kind: "clear" }));
$("use-mask").addEventListener("click", async () => {
  end();
  const file = await fileOfPaint($("mask"));
  $("paint").close("used");
  finish(file && { ...file, strokes });
});
$("cancel-mask").addEventListener("click", () => $("paint").close("cancelled"));
closeOnBack($("paint"));

const isPainted = () => strokes.length !== base.strokes.length || strokes.some((one, i) => one !== base.strokes[i]);

// Escape and Back may be pressed by mistake: what was painted is there again when the mask is painted next.
$("paint").addEventListener("close", () => {
  if ($("paint").returnValue === "") end();
  const isLeft = $("paint").returnValue === "" && isPainted();
  draft = isLeft ? { base, strokes, undone } : null;
  stroke = null;
  finished.width = finished.height = 0;  // frees its memory
  if ($("paint").returnValue !== "used") finish(undefined);
  $("paint").returnValue = "";
});
