
// The data of a page that is served by `agentgym view`.

textOf = async (id) => {
  const response = await fetch(`data/${id}`);
  if (!response.ok) throw new Error(`HTTP ${response.status} from the server of this page`);
  return response.text();
};
