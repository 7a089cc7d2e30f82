import { element } from "./element.js";

const IMAGE_TYPE = /^image\/[a-z0-9.+-]+$/i;
const BASE64 = /^[a-z0-9+/=\s_-]*$/i;
const WORDS = { image: "Image", audio: "Audio", video: "Video", document: "Document" };

/** The text of a message: a string as it is, or its text parts joined. Nothing else of it is text. */
export function textOf(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .filter((part) => part?.type === "text" && typeof part.text === "string")
    .map((part) => part.text)
    .join("");
}

/** What a message holds beside its text, ready to be shown. */
export function mediaOf(content) {
  if (!Array.isArray(content)) return [];
  return content.filter((part) => part !== null && typeof part === "object" && part.type in WORDS).map(media);
}

function media(part) {
  const source = part.source ?? {};
  const name = typeof part.metadata?.filename === "string" ? part.metadata.filename : null;
  if (
    part.type === "image" &&
    source.type === "data" &&
    IMAGE_TYPE.test(source.mimeType) &&
    BASE64.test(source.value)
  ) {
    return element("img", {
      class: "picture",
      src: `data:${source.mimeType};base64,${source.value}`,
      alt: name ?? "Image without a description",
    });
  }
  return attachment(WORDS[part.type], name, source);
}

/** A picture elsewhere is a link: nothing is loaded from outside unless it is asked for. */
function attachment(kind, name, source) {
  const label = [kind, name ?? source.mimeType].filter((word) => typeof word === "string").join(": ");
  if (source.type === "url" && isWebAddress(source.value)) {
    const link = { class: "attachment", href: source.value, target: "_blank", rel: "noopener noreferrer" };
    return element("a", link, `${kind}: ${name ?? source.value}`);
  }
  return element("span", { class: "attachment" }, label);
}

function isWebAddress(value) {
  try {
    return ["http:", "https:"].includes(new URL(value).protocol);
  } catch {
    return false;
  }
}
