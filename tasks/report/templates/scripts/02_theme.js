// Light, dark, or as the system has it. Style sheets and charts follow color-scheme.

const THEMES = ["auto", "light", "dark"];
const THEME_KEY = "cuda-l1-report-theme";

function storedTheme() {
  try {
    return localStorage.getItem(THEME_KEY);
  } catch {
    return null; // a browser may forbid a local file to store anything
  }
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").value = theme;
  try {
    localStorage.setItem(THEME_KEY, theme);
  } catch {
    // then it holds until the page is closed
  }
}

function startTheme() {
  const stored = storedTheme();
  if (THEMES.includes(stored)) setTheme(stored);
  byId("theme").addEventListener("change", (event) => setTheme(event.target.value));
}
