// Lists of messages, held against each other.
import { isDeepStrictEqual } from "node:util";

export const plain = (value) => JSON.parse(JSON.stringify(value));

export function differences(live, kept) {
  const ids = (messages) => messages.map(({ id, role }) => `${role} ${id}`).join(", ");
  if (ids(live) !== ids(kept)) return [`the client holds ${ids(live)}; stored are ${ids(kept)}`];
  return live.flatMap((message, place) => {
    const names = new Set([...Object.keys(message), ...Object.keys(kept[place])]);
    return [...names]
      .filter((name) => !isDeepStrictEqual(message[name], kept[place][name]))
      .map((name) => `${message.id}/${name}: ${JSON.stringify(message[name])} live, ${JSON.stringify(kept[place][name])} stored`);
  });
}

// What a client that holds `live` makes of a snapshot of `kept`: it goes through the client's own merge.
export async function merged(client, from, live, kept) {
  const ids = { threadId: "t", runId: "again" };
  const agent = new client.HttpAgent({ url: "http://localhost/", threadId: ids.threadId, initialMessages: live });
  agent.run = () =>
    from([
      { type: "RUN_STARTED", ...ids },
      { type: "MESSAGES_SNAPSHOT", messages: kept },
      { type: "RUN_FINISHED", ...ids },
    ]);
  await agent.runAgent({ runId: ids.runId });
  return plain(agent.messages);
}
