"""How far colours stand out from what they are painted on."""

LEAST = 4.5  # WCAG 2.1, 1.4.3
_RATIOS = """([chosen, property]) => {
  const parse = c => c.match(/[\\d.]+/g).map(Number);
  const light = c => c.slice(0, 3).map(v => v / 255)
    .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ground = e => {
    const c = parse(getComputedStyle(e).backgroundColor);
    return c.length > 3 && c[3] < 1 && e.parentElement ? ground(e.parentElement) : light(c);
  };
  return [...document.querySelectorAll(chosen)].map(e => {
    const [a, b] = [light(parse(getComputedStyle(e)[property])), ground(e)];
    return [e.getAttribute('class') || e.tagName, (Math.max(a, b) + .05) / (Math.min(a, b) + .05)];
  });
}"""


def contrasts(page, chosen: str, property: str = "color") -> list[tuple[str, float]]:
    """Class, or tag, of each element that a CSS selector chooses, and its contrast."""
    return page.evaluate(_RATIOS, [chosen, property])
