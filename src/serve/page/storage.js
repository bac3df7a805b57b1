// Texts that the browser keeps between visits (local) and until the tab is closed (session).
//
// They are read with getItem, under a prefix: a property such as `sessionStorage.key` is a method of
// Storage in every browser, and other pages may share the origin. tools/lint checks that nothing else
// touches these areas.
const prefix = "braid.";

class Items {
  #area = null;
  #unkept = new Map();  // where the browser stores nothing, or no more

  constructor(area) {
    try {
      this.#area = window[area];  // throws where storage is blocked
    } catch (error) {
      console.debug(error);
    }
  }

  read(name) {
    return this.#unkept.get(name) ?? this.#area?.getItem(prefix + name) ?? null;
  }

  write(name, value) {
    this.#unkept.set(name, value);
    try {
      if (!this.#area) return;
      this.#area.setItem(prefix + name, value);
      this.#unkept.delete(name);
    } catch (error) {
      console.debug(error);
    }
  }
}

export const local = new Items("localStorage");
export const session = new Items("sessionStorage");
