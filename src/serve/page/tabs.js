// Other tabs of this page: what one does, all hear of, and what one can do for all, one does.
import { local } from "./storage.js";

let channel = null;
try {
  channel = new BroadcastChannel("braid");
} catch (error) {
  console.debug(error);  // storage is blocked: each tab is on its own
}
const listeners = new Map();
channel?.addEventListener("message", ({ data }) => listeners.get(data.kind)?.(data));

export const hear = (kind, act) => listeners.set(kind, act);
export function share(kind, data = {}) {
  channel?.postMessage({ kind, ...data });
}

// ---- work that one tab does for all

// The tab that works says so in the storage of all, again and again: one that was closed, crashed or was put to sleep
// falls silent. Browsers have locks for this, but only over HTTPS and for pages of this machine, and a tab keeps
// them in its sleep. In milliseconds.
const kSilence = 60e3;   // work may be silent for 45 s; what two tabs do is only done twice
const kSayAgain = 5e3;
const kSettled = 50;     // until tabs that begin at the same time have read what the others wrote
const kLookAgain = 10e3;
const kYoung = 60e3;     // a tab that was opened long ago, and is not seen, has timers that come once a minute

const me = crypto.getRandomValues(new Uint32Array(2)).join("-");
const mine = new Set();  // names of the works that this tab has, or was about to have
const isAlive = ({ at }) => Math.abs(Date.now() - at) < kSilence;  // a clock may be set back

// By name: { tab, at }.
function workers() {
  try {
    return Object.entries(JSON.parse(local.read("working")) ?? {}).filter(([, one]) => isAlive(one));
  } catch (error) {
    console.debug(error);  // damaged
    return [];
  }
}
const workerOf = (name) => workers().find(([other]) => other === name)?.[1].tab ?? null;

function write(name, ...own) {
  local.write("working", JSON.stringify(Object.fromEntries([...workers().filter(([other]) => other !== name), ...own])));
}
function sayWorking(name) {
  mine.add(name);
  write(name, [name, { tab: me, at: Date.now() }]);
}

function leave(name) {
  mine.delete(name);
  if (workerOf(name) === me) write(name);
}
addEventListener("pagehide", () => mine.forEach(leave));

// Until another tab writes something, or so long. Tabs that are not seen give way to the one that is.
const news = () => new Promise((resolve) => {
  const wait = new AbortController();
  const end = () => (clearTimeout(timer), wait.abort(), resolve());
  const timer = setTimeout(end, kLookAgain);
  const look = () => document.hidden || end();
  addEventListener("storage", look, { signal: wait.signal });
  document.addEventListener("visibilitychange", look, { signal: wait.signal });
});
const settle = () => new Promise((resolve) => setTimeout(resolve, kSettled));

// The tab that draws on while nobody looks waits for no timer: the server keeps finished jobs for minutes.
async function take(name) {
  for (;;) {
    while (![null, me].includes(workerOf(name))) await news();
    sayWorking(name);
    if (!document.hidden || performance.now() < kYoung) await settle();
    if (workerOf(name) === me) return;
  }
}

// Runs `work` in one tab at a time. It is given a function to call as long as it is under way. Where the browser stores
// nothing, each tab works.
export async function alone(name, work) {
  await take(name);
  let said = Date.now();
  const isUnderWay = () => {
    if (Date.now() - said < kSayAgain || ![null, me].includes(workerOf(name))) return;
    said = Date.now();
    sayWorking(name);
  };
  try {
    return await stayAwake(() => work(isUnderWay));
  } finally {
    leave(name);
  }
}

// Browsers put no tab to sleep that holds a lock.
async function stayAwake(work) {
  if (!navigator.locks) return work();
  let result = null;
  const lock = () => {
    result = work();
    return result.catch(() => {});
  };
  await navigator.locks.request(`braid ${me}`, { mode: "shared" }, lock).catch(console.debug);
  return result ?? work();
}
