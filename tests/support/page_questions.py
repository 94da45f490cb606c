"""What tests ask of the page, as expressions that a browser answers."""

from __future__ import annotations

RATES = """(() => {
  const cells = [...document.querySelectorAll('td[data-name="Records/s"]')].map((cell) => Number(cell.innerText.replaceAll(',', '')));
  return !document.querySelector('.stale') && cells.every((rate, place) => place === 0 || rate <= cells[place - 1]) ? cells : null;
})()"""
"""The shown rates, if every row stands by its own."""
LANES = """[...document.querySelectorAll('td[data-name="Lane"]')].map((cell) => cell.innerText)"""
"""The lanes of a table, from the top."""
POSITIONS = """[...document.querySelectorAll('td[data-name="Position"]')].map((cell) => cell.innerText)"""
"""Their positions."""
LINES = """[...document.querySelectorAll('.chart .line')].length === 4
  && [...document.querySelectorAll('.chart .line')].every((line) => line.getAttribute('d').split('L').length > 50)"""
"""Whether every chart has its line of the last hour, with many points."""
STOPS = "a[href], button:not([disabled]), input, select, [tabindex='0']"
HERE = """(() => {
  const here = document.activeElement;
  if (here === document.body) return null;
  const ring = getComputedStyle(here).outlineStyle !== 'none';
  const stops = [...document.querySelectorAll("STOPS")].filter((one) => one.checkVisibility());
  return {place: stops.indexOf(here), ring, what: here.outerHTML.slice(0, 120), inside: Boolean(here.closest('dialog'))};
})()""".replace("STOPS", STOPS)
"""Where the keyboard is: its place among all that it should reach, and whether that can be seen."""
COUNT = f'[...document.querySelectorAll("{STOPS}")].filter((one) => one.checkVisibility()).length'
"""How many places it should reach."""
OVERLAPS = """(() => {
  const boxes = [...document.querySelectorAll('.map .node, .map .tag')].map((one) => [one.getAttribute('aria-label'), one.getBoundingClientRect()]);
  const frame = document.querySelector('.map').getBoundingClientRect();
  const found = boxes.filter(([, box]) => box.left < frame.left - 1 || box.right > frame.right + 1).map(([name]) => `${name} is outside`);
  boxes.forEach(([name, one], place) => boxes.slice(place + 1).forEach(([other, two]) => {
    if (one.left < two.right - 1 && two.left < one.right - 1 && one.top < two.bottom - 1 && two.top < one.bottom - 1) found.push(`${name} over ${other}`);
  }));
  return found;
})()"""
"""What on the map hides something else."""

ROWS = """Object.fromEntries([...document.querySelectorAll('tbody tr')].map((row) => {
  const cells = Object.fromEntries([...row.cells].map((cell) => [cell.dataset.name, cell.innerText.trim()]));
  return [cells.Flow, { ...cells, tone: row.querySelector('.badge').className.replace('badge ', '') }];
}))"""
"""The flows of the overview: the text of every cell, and the tone of the state."""
