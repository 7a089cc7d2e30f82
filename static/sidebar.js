import { byId } from "./element.js";

/** On a narrow screen the list of conversations lies over the page, opened by the menu button. */
export class Sidebar {
  constructor() {
    this.page = byId("page");
    this.side = byId("sidebar");
    this.menu = byId("menu");
    this.narrow = matchMedia("(max-width: 760px)");
    this.menu.addEventListener("click", () => this.#set(this.menu.getAttribute("aria-expanded") !== "true"));
    byId("scrim").addEventListener("click", () => this.close());
    this.narrow.addEventListener("change", () => this.#set(false));
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || this.menu.getAttribute("aria-expanded") !== "true") return;
      this.close();
      this.menu.focus();
    });
    this.#set(false);
  }

  close() {
    this.#set(false);
  }

  /** What is out of view must not be reached by the keyboard either. */
  #set(open) {
    this.page.classList.toggle("sidebar-open", open);
    this.menu.setAttribute("aria-expanded", String(open));
    this.side.inert = this.narrow.matches && !open;
    if (open) this.side.querySelector("a, button, input")?.focus();
  }
}
