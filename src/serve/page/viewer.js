// A picture in full: zoom by wheel, keys, double click and pinch; arrows lead to its neighbours.
import { offerActions } from "./actions.js";
import { closeOnBack, showDialog } from "./back.js";
import { $, make, shortened, showBlob } from "./dom.js";
import { touch } from "./gestures.js";

const kLargest = 16;     // times the picture's own pixels
const kLargestFit = 4;   // for small pictures
const kPixelsFrom = 8;   // shows pixels as squares

let cards = [], at = 0, uses = null;  // what is leafed through, and the gallery's functions
let shown = null;                     // resolves to { id, blob, settings, model }
let opener = null;                    // what had the focus before
let scale = 1, x = 0, y = 0;          // CSS pixels per pixel, and where the middle is, from the stage's
let isFitted = true;

const image = $("shown-picture"), stage = $("stage");
const fitted = () => Math.min(stage.clientWidth / image.naturalWidth, stage.clientHeight / image.naturalHeight, kLargestFit) || 1;

// ---- the view

function place() {
  if (isFitted) scale = fitted(), x = y = 0;
  const room = (side, whole) => Math.max(0, (side * scale - whole) / 2);
  const [roomX, roomY] = [room(image.naturalWidth, stage.clientWidth), room(image.naturalHeight, stage.clientHeight)];
  x = Math.min(roomX, Math.max(-roomX, x));
  y = Math.min(roomY, Math.max(-roomY, y));
  Object.assign(image.style, { width: `${image.naturalWidth * scale}px`, height: `${image.naturalHeight * scale}px`,
                               translate: `${x}px ${y}px` });
  image.classList.toggle("pixels", scale >= kPixelsFrom);
  stage.classList.toggle("zoomed", roomX > 0 || roomY > 0);
  $("shown-zoom").textContent = `${Math.round(scale * 100)} %`;
  $("shown-fit").setAttribute("aria-pressed", isFitted);
}

// Zooms so that what is at a point of the screen stays there.
function zoom(factor, clientX, clientY) {
  const box = stage.getBoundingClientRect();
  const [fromX, fromY] = clientX === undefined ? [0, 0]
    : [clientX - box.left - box.width / 2, clientY - box.top - box.height / 2];
  const next = Math.min(kLargest, Math.max(Math.min(fitted(), 1), scale * factor));
  x = fromX - (fromX - x) * next / scale;
  y = fromY - (fromY - y) * next / scale;
  scale = next;
  isFitted = Math.abs(scale - fitted()) < 1e-6;
  place();
}

function fit() {
  isFitted = true;
  place();
}

// Between the whole picture and its own pixels, or twice them for small ones.
function toggle(clientX, clientY) {
  if (!isFitted) return fit();
  zoom((fitted() < 1 ? 1 : 2 * fitted()) / scale, clientX, clientY);
}

let pressed = null, tapped = { time: 0, x: 0, y: 0 };
touch(stage, {
  begin: (event) => (pressed = { x: event.clientX, y: event.clientY, startX: event.clientX }),
  move: (event) => {
    x += event.clientX - pressed.x;
    y += event.clientY - pressed.y;
    Object.assign(pressed, { x: event.clientX, y: event.clientY });
    if (!isFitted) place();
  },
  end: (event) => {
    const across = event.clientX - pressed.startX;
    if (isFitted && event.pointerType === "touch" && Math.abs(across) > 60) return leaf(across > 0 ? -1 : 1);
    const isDouble = event.timeStamp - tapped.time < 350 && Math.hypot(event.clientX - tapped.x, event.clientY - tapped.y) < 24;
    tapped = isDouble || Math.abs(across) > 8 ? { time: 0, x: 0, y: 0 }
      : { time: event.timeStamp, x: event.clientX, y: event.clientY };
    if (isDouble) toggle(event.clientX, event.clientY);
  },
  pinch: ({ scale: factor, x: middleX, y: middleY, dx, dy }) => {
    x += dx;
    y += dy;
    zoom(factor, middleX, middleY);
  },
});
stage.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(Math.exp(-Math.sign(event.deltaY) * Math.min(0.25, Math.abs(event.deltaY) / 300)), event.clientX, event.clientY);
}, { passive: false });
new ResizeObserver(() => $("shown").open && image.naturalWidth && place()).observe(stage);

// ---- leafing

async function show() {
  const card = cards[at];
  shown = uses.blobOf(card).then((whole) => ({ id: card.id, blob: whole, settings: card.settings, model: card.model }));
  const blob = await shown.then((one) => one.blob, () => null);
  if (card !== cards[at] || !$("shown").open) return;  // leafed on or closed meanwhile
  showBlob(image, blob ?? new Blob([card.thumbnail], { type: "image/jpeg" }));
  image.alt = shortened(card.settings.prompt) || "a picture without a prompt";
  $("shown-title").textContent = cards.length > 1 ? `Picture ${at + 1} of ${cards.length}` : "Picture";
  disable("earlier", at === 0);
  disable("later", at === cards.length - 1);
  showText(card);
  isFitted = true;
  await image.decode().catch(() => {});
  place();
}

// A disabled button loses the focus, and the dialog its keys.
function disable(id, isDisabled) {
  if (isDisabled && document.activeElement === $(id)) stage.focus();
  $(id).disabled = isDisabled;
}

function showText({ settings }) {
  $("shown-prompt").textContent = settings.prompt || "(no prompt)";
  $("shown-prompt").classList.add("clamped");
  $("shown-more").hidden = $("shown-prompt").scrollHeight <= $("shown-prompt").clientHeight + 1;
  $("shown-more").textContent = "Whole prompt";
  $("shown-settings").replaceChildren(...Object.entries(settings).filter(([name]) => name !== "prompt")
    .flatMap(([name, value]) => [make("dt", { textContent: name.replaceAll("_", " ") }),
                                 make("dd", { textContent: value, className: "clamped", dir: "auto" })]));
}

function leaf(step) {
  if (!cards[at + step]) return;
  at += step;
  show();
}

// `functions` are { blobOf(card), remove(card), returnTo(card) }.
export function openViewer(all, card, functions) {
  cards = [...all];
  at = cards.indexOf(card);
  uses = functions;
  opener = document.activeElement;
  showDialog($("shown"));
  stage.focus();
  show();
}

$("shown").addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const step = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  const isSideways = step && step[0] !== 0;
  const act = step && !isFitted ? () => (x += 60 * step[0], y += 60 * step[1], place())
    : isSideways ? () => leaf(-step[0])
    : { "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: fit, 1: () => zoom(1 / scale) }[event.key];
  if (!act || event.target.matches("input, textarea, summary")) return;
  event.preventDefault();
  act();
});
$("shown-more").addEventListener("click", () => {
  const isClamped = $("shown-prompt").classList.toggle("clamped");
  $("shown-more").textContent = isClamped ? "Whole prompt" : "Less";
});
$("earlier").addEventListener("click", () => leaf(-1));
$("later").addEventListener("click", () => leaf(1));
$("shown-in").addEventListener("click", () => zoom(1.25));
$("shown-out").addEventListener("click", () => zoom(0.8));
$("shown-fit").addEventListener("click", () => toggle());
$("close").addEventListener("click", () => $("shown").close());
$("forget").addEventListener("click", () => {
  const card = cards[at];
  $("shown").close();
  uses.remove(card);
});
closeOnBack($("shown"));
$("shown").addEventListener("close", () => {
  showBlob(image, null);
  shown = null;
  if ([opener, document.body].includes(document.activeElement)) uses.returnTo(cards[at]);
});
// The picture itself stays in sight where only a file is saved.
offerActions($("shown-actions"), () => shown, (act) => act !== "download" && $("shown").close());
