const SILENCE = 45_000;
const GRACE = 1_000;

/** The connection carried nothing for so long, not even a keep-alive comment, that it must be gone. */
export class Silent extends Error {}

/**
 * Reads AG-UI events from a response whose lines end with LF.
 *
 * @param {Response} response
 * @yields {{id: string|null, event: object}}  an event with the position behind it
 */
export async function* readEvents(response) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let tail = "";
  try {
    for (;;) {
      const { value, done } = await withinSilence(reader.read());
      tail += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const blocks = tail.split("\n\n");
      tail = blocks.pop();
      for (const block of blocks) {
        const read = readBlock(block);
        if (read !== null) yield read;
      }
      // A block that no blank line ended was cut in the middle: its event comes again after the rejoin.
      if (done) return;
    }
  } finally {
    // Behind the last event the server ends the connection itself; only one that does not end is cut.
    setTimeout(() => reader.cancel().catch(() => {}), GRACE);
  }
}

function readBlock(block) {
  let id = null;
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
    else if (line.startsWith("id:")) id = line.slice(3).trim();
  }
  return data.length === 0 ? null : { id, event: JSON.parse(data.join("\n")) };
}

function withinSilence(read) {
  let timer;
  const silent = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Silent("The connection went silent.")), SILENCE);
  });
  return Promise.race([read, silent]).finally(() => clearTimeout(timer));
}
