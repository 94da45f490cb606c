// Before the first paint: the colours that were chosen last time. Not a module, so that nothing is drawn in the wrong ones.
(() => {
  const KEY = "heliograph-theme";
  const chosen = () => {
    try { return localStorage.getItem(KEY) ?? ""; } catch { return ""; }
  };
  const show = (theme) => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  };
  show(chosen());
  window.heliographTheme = {
    now: () => document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"),
    turn() {
      const next = this.now() === "dark" ? "light" : "dark";
      const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
      // The system's own choice is followed again as soon as the two agree.
      try {
        if (next === system) localStorage.removeItem(KEY);
        else localStorage.setItem(KEY, next);
      } catch { /* storage may be forbidden: the choice then lasts until the page is loaded again */ }
      show(next === system ? "" : next);
      return next;
    },
  };
})();
