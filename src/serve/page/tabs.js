// Other tabs of this page: what one does, all hear of.
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

// Runs `work` in one tab at a time. Browsers lock only for pages of this machine or over HTTPS; elsewhere
// each tab works.
export async function alone(name, work) {
  if (!navigator.locks) return work();
  let result;
  try {
    await navigator.locks.request(`braid ${name}`, async () => {
      result = work();
      await result.catch(() => {});
    });
  } catch (error) {
    console.debug(error);
    result ??= work();
  }
  return result;
}
