import { byId } from "./element.js";

/** Asks for a title; null if the person changed their mind. */
export async function askTitle(title) {
  const field = byId("rename-title");
  field.value = title;
  const answer = await ask(byId("rename-dialog"), () => field.select());
  return answer === "ok" && field.value.trim() !== "" ? field.value.trim() : null;
}

/** Asks whether a conversation is to be deleted. */
export const askDelete = async () => (await ask(byId("delete-dialog"))) === "ok";

function ask(dialog, opened = () => {}) {
  return new Promise((resolve) => {
    dialog.returnValue = "";
    dialog.querySelector("[data-close]").onclick = () => dialog.close();
    dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true });
    dialog.showModal();
    opened();
  });
}
