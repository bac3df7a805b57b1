// Boxes that say where things should be, for models that were trained to follow layouts. They are drawn
// over the picture that the page shows, in thousandths of its sides: [top, left, bottom, right].
import { $, button, make } from "./dom.js";
import { touch } from "./gestures.js";

const least = 10;  // thousandths; smaller ones were clicks
let boxes = [];    // { id, desc, bbox }
let changed = () => {};
let begun = null;  // { box, from }: being drawn

const whole = (x) => Math.min(1000, Math.max(0, Math.round(x)));

export const chosenBoxes = () => boxes.map(({ id, desc, bbox }) => ({ id, bbox, desc }));

export function chooseBoxes(chosen) {
  boxes = chosen.map(({ id, bbox, desc }) => ({ id, bbox: [...bbox], desc }));
  showBoxes();
}

// `offered`: the model follows boxes. Those that were drawn stay until another model is chosen.
export function offerBoxes(offered) {
  $("boxes-row").hidden = !offered;
  if (!offered) chooseBoxes([]);
}

export const whenBoxesChange = (act) => (changed = act);

// The board has the picture's shape, and shows the newest picture.
export function shapeBoard(width, height) {
  if (width > 0 && height > 0) $("board").style.aspectRatio = `${width} / ${height}`;
  const { src } = $("picture");
  $("board").style.backgroundImage = src ? `url("${src}")` : "";
}

function freeId() {
  const taken = new Set(boxes.map(({ id }) => id));
  let number = 1;
  while (taken.has(`thing${number}`)) ++number;
  return `thing${number}`;
}

function add(bbox) {
  const box = { id: freeId(), desc: "", bbox };
  boxes.push(box);
  return box;
}

function remove(box) {
  boxes = boxes.filter((one) => one !== box);
  showBoxes();
  changed();
  ($("boxes").querySelector("input") ?? $("add-box")).focus();
}

// ---- the board

const at = (event) => {
  const sheet = $("board").getBoundingClientRect();
  return [whole(1000 * (event.clientY - sheet.top) / sheet.height), whole(1000 * (event.clientX - sheet.left) / sheet.width)];
};

const place = (element, [top, left, bottom, right]) => Object.assign(element.style, {
  top: `${top / 10}%`, left: `${left / 10}%`, height: `${(bottom - top) / 10}%`, width: `${(right - left) / 10}%` });

// Arrows move a box, with Shift its lower right corner.
function moved([top, left, bottom, right], key, isCorner) {
  const [down, across] = { ArrowUp: [-least, 0], ArrowDown: [least, 0], ArrowLeft: [0, -least], ArrowRight: [0, least] }[key];
  if (isCorner)
    return [top, left, Math.max(top + least, whole(bottom + down)), Math.max(left + least, whole(right + across))];
  if (top + down < 0 || bottom + down > 1000 || left + across < 0 || right + across > 1000) return [top, left, bottom, right];
  return [top + down, left + across, bottom + down, right + across];
}

function outline(box) {
  const one = make("button", { type: "button", className: "box" }, make("span", { textContent: box.id }));
  one.setAttribute("aria-label", `Box ${box.id}: arrows move it, with Shift its corner, Delete removes it`);
  place(one, box.bbox);
  one.addEventListener("keydown", (event) => {
    if (event.key === "Delete") return remove(box);
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    box.bbox = moved(box.bbox, event.key, event.shiftKey);
    place(one, box.bbox);
    changed();
  });
  return one;
}

function showOutlines() {
  $("board").replaceChildren(...boxes.map(outline));
}

touch($("board"), {
  begin: (event) => {
    const from = at(event);
    begun = { from, box: add([...from, ...from]) };
    showOutlines();
  },
  move: (event) => {
    if (!begun) return;
    const { from, box } = begun, to = at(event);
    box.bbox = [Math.min(from[0], to[0]), Math.min(from[1], to[1]), Math.max(from[0], to[0]), Math.max(from[1], to[1])];
    showOutlines();
  },
  end: () => {
    if (!begun) return;
    const [top, left, bottom, right] = begun.box.bbox;
    if (bottom - top < least || right - left < least) boxes.pop();
    begun = null;
    showBoxes();
    changed();
    $("boxes").lastElementChild?.querySelector(".desc").focus();
  },
  abandon: () => {
    if (begun) boxes.pop();
    begun = null;
    showBoxes();
  },
});

// ---- the list

function row(box) {
  const id = make("input", { className: "id", value: box.id, required: true, pattern: "[A-Za-z][A-Za-z0-9_]*",
    title: "a letter, then letters, digits and underscores", "aria-label": "Name of the box" });
  const desc = make("input", { className: "desc", value: box.desc, required: true, placeholder: "what is there",
    "aria-label": `What is in ${box.id}` });
  id.addEventListener("input", () => {
    box.id = id.value;
    checkNames();
    showOutlines();
  });
  desc.addEventListener("input", () => (box.desc = desc.value));
  return make("li", {}, id, desc, button("Remove", `Remove the box ${box.id}`, () => remove(box)));
}

// The browser leads to the second of two boxes with one name.
function checkNames() {
  const names = [...$("boxes").querySelectorAll(".id")];
  names.forEach((one, i) => one.setCustomValidity(
    names.findIndex(({ value }) => value === one.value) < i ? `Two boxes have the name ${one.value}.` : ""));
}

function showBoxes() {
  $("boxes").replaceChildren(...boxes.map(row));
  checkNames();
  showOutlines();
}

$("add-box").addEventListener("click", () => {
  add([250, 250, 750, 750]);
  showBoxes();
  changed();
  $("boxes").lastElementChild.querySelector(".desc").focus();
});
