// Sphinx's search fetches each page for its excerpt, which browsers refuse for pages opened from the disk.
// There, the excerpts come from page_texts.js, which conf.py writes.
if (location.protocol === "file:") {
  const fetchPage = window.fetch;
  window.fetch = (url, ...options) => {
    const text = window.pageTexts?.[String(url).replace(/^\.\//, "")];
    if (text === undefined) return fetchPage(url, ...options);
    const main = document.createElement("div");
    main.setAttribute("role", "main");
    main.textContent = text;
    return Promise.resolve(new Response(main.outerHTML));
  };
}
