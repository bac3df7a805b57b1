// Paints a mask over a picture. Strokes are kept as drawn, so each can be undone.
import { closeOnBack, showDialog } from "./back.js";
import { $ } from "./dom.js";
import { touch } from "./gestures.js";

const keyStep = 8;  // picture pixels by which an arrow key moves the brush

let strokes = [], undone = [];
let tool = "brush", zoom = 1;
let stroke = null;      // being drawn
let at = [0, 0];        // of the brush, in picture pixels
let isDown = false;     // the brush, by keyboard
let finish = null;      // resolves openMask()'s promise

const draw = () => $("mask").getContext("2d");

// Resolves to { blob, strokes, share }, to null if nothing was painted, or to undefined if the dialog was
// cancelled.
export async function openMask(picture, earlier) {
  const image = $("under");
  image.src = URL.createObjectURL(picture);
  await image.decode();
  $("mask").width = image.naturalWidth;
  $("mask").height = image.naturalHeight;
  strokes = [...(earlier ?? [])];
  undone = [];
  at = [image.naturalWidth / 2, image.naturalHeight / 2];
  isDown = false;
  $("brush-size").max = Math.max(image.naturalWidth, image.naturalHeight) / 2;
  $("brush-size").value = Math.max(image.naturalWidth, image.naturalHeight) / 12;
  choose("brush");
  showDialog($("paint"));
  fit();
  repaint();
  $("mask").focus();
  const result = await new Promise((resolve) => (finish = resolve));
  URL.revokeObjectURL(image.src);
  return result;
}

async function maskFile() {
  const { width, height } = $("mask");
  const sheet = document.createElement("canvas");
  Object.assign(sheet, { width, height });
  const context = sheet.getContext("2d", { willReadFrequently: true });
  context.drawImage($("mask"), 0, 0);
  context.globalCompositeOperation = "source-in";
  context.fillStyle = "white";
  context.fillRect(0, 0, width, height);
  context.globalCompositeOperation = "destination-over";
  context.fillStyle = "black";
  context.fillRect(0, 0, width, height);
  const { data } = context.getImageData(0, 0, width, height);
  let painted = 0;
  for (let i = 0; i < data.length; i += 4) painted += data[i] >= 128;
  if (painted === 0) return null;
  const blob = await new Promise((resolve) => sheet.toBlob(resolve, "image/png"));
  return { blob, strokes, share: painted / (width * height) };
}

// ---- strokes

function paint({ kind, size, points, from, to }) {
  const context = draw(), { width, height } = $("mask");
  context.globalCompositeOperation = kind === "eraser" ? "destination-out" : kind === "invert" ? "xor" : "source-over";
  context.fillStyle = context.strokeStyle = "#e0402a";
  context.lineWidth = size;
  context.lineCap = context.lineJoin = "round";
  if (kind === "clear") return context.clearRect(0, 0, width, height);
  if (kind === "invert") return context.fillRect(0, 0, width, height);
  if (kind === "rectangle") return context.fillRect(...from, to[0] - from[0], to[1] - from[1]);
  context.beginPath();
  context.moveTo(...points[0]);
  for (const point of points) context.lineTo(...point);
  context.stroke();
}

function repaint() {
  draw().clearRect(0, 0, $("mask").width, $("mask").height);
  for (const one of stroke ? [...strokes, stroke] : strokes) paint(one);
  disable("undo", strokes.length === 0);
  disable("redo", undone.length === 0);
}

// A disabled button loses the focus, and the dialog its keyboard control.
function disable(id, isDisabled) {
  if (isDisabled && document.activeElement === $(id)) $("mask").focus();
  $(id).disabled = isDisabled;
}

function add(one) {
  strokes.push(one);
  undone = [];
  repaint();
}

function undo() {
  if (strokes.length) undone.push(strokes.pop());
  repaint();
}

function redo() {
  if (undone.length) strokes.push(undone.pop());
  repaint();
}

const begun = () => tool === "rectangle" ? { kind: tool, from: at, to: at }
  : { kind: tool, size: Number($("brush-size").value), points: [at] };

function goOn() {
  if (stroke.kind === "rectangle") stroke.to = at;
  else stroke.points.push(at);
  repaint();
}

function end() {
  if (stroke) strokes.push(stroke), (undone = []);
  stroke = null;
  repaint();
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
  const file = await maskFile();
  $("paint").close("used");
  finish(file);
});
$("cancel-mask").addEventListener("click", () => $("paint").close("cancelled"));
closeOnBack($("paint"));
$("paint").addEventListener("close", () => {
  stroke = null;
  if ($("paint").returnValue !== "used") finish(undefined);
  $("paint").returnValue = "";
});
