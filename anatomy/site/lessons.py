"""What a day's page gets round its text: where it stands, how its time is spent, what comes next.
And what is wrong with its boxes, which are written like this:

    ## Predict first { data-minutes="10" }

    !!! predict "How many blocks fit before a second wave begins?"

        Write down a number.
        { #d02-wave data-unit="blocks" }

        ??? answer "What was measured"
            [[occupancy.staircase.fit.blocks]]: one for each SM.

    [Your guess](#d02-wave){ .guess }

Minutes of a day's sections make 2.5 hours. A name begins with the day's number and is no other
box's. The first figure of the answer is what was measured, printed in a unit that `data-unit` can
be converted to. A choice has no unit but a list, each line beginning with its letter in bold, and
an answer that names the right one, `**b**{ .right }`, or, where the recording does not settle it,
the likely one, `**b**{ .open }`, which has no points. Where a script runs, the guess is kept, shown
in the box and at `.guess`, and scored (docs/assets/curriculum.js): of a ratio, a guess on the other
side of 1 has no points.

`!!! quiz` asks the same way, and how sure the reader is; an answer is right or wrong, and a number
right within a tenth. `!!! calculate`, `!!! measure` and `!!! build` are exercises, with
`??? answer`; a name and a unit have a reader's figure checked, against 5 % of a calculated answer,
or against the range that `[[... | expect]]` prints. With `data-whole="why"` no fraction of what is
counted will do.

`!!! takeaway` holds the verdict of a claim. `!!! misconception "What is believed"` may hold that of
one which states what is believed, `[[claim:ID | states]]`, or `refutes` it. `??? recall "Question"`
and `!!! outcomes "After today you can"` hold any text.
"""

import re
from collections.abc import Iterator
from html import escape, unescape

from anatomy.figures.curriculum import outline
from anatomy.figures.curriculum.lists import linked, missing
from anatomy.figures.curriculum.outline import Part
from anatomy.figures.text import labs
from anatomy.record.showing import Showing

MINUTES = round(outline.HOURS * 60)
_TIMED = re.compile(
    r'<h2 (?=[^>]*data-minutes="(\d+)")[^>]*id="([^"]+)"[^>]*>(.*?)<a class="header'
)
_PART = re.compile(r'(?=<div class="admonition |<h2\b)')
_BOX = re.compile(r'<div class="admonition (predict|quiz|calculate|measure|build|takeaway)"')
_ASKED = re.compile(r'<p (?=[^>]*\bid="([^"]*)")(?:[^>]*data-unit="([^"]*)")?[^>]*>')
_LETTER = re.compile(r"<li>\s*(?:<p>)?<strong>(\w+)</strong>")
_RIGHT = re.compile(r'<strong class="(?:right|open)">(\w+)</strong>')
_MEASURED = re.compile(r'<span class="measured[^"]*"[^>]*>([^<]*)</span>')
_SAID = re.compile(r"(?:about )?(?P<number>[\d.]+)\s?(?P<unit>\S*)")
_UNIT = re.compile(r"(?:[nµmkMGTPKi]{0,2})(?P<base>FLOP/s|B/s|FLOP/B|B|s|Hz)|(?P<other>.*)")
_TAKEAWAY = re.compile(r'<div class="admonition takeaway">.*?</div>\n?', re.DOTALL)
_TAGS = (
    '<p class="said-once" data-search-exclude>A tag such as “✓ holds” is set by a test on the '
    "recordings: point at it, or tap.</p>\n"
)
# Sections that begin a part of the day, and what follows a part in a section that begins none.
_BEGINS = {
    "What do you remember?": "recall",
    "Predict first": "predict",
    "The experiment": "experiment",
    "Exercises": "exercises",
    "Five mental models": "models",
    "The quiz": "quiz",
    "The checklist": "checklist",
    "The project": "project",
}
_FOLLOWS = {"predict": "ideas", "exercises": "close", "project": "close", "quiz": "close"}
# What stands for a figure: one that is drawn, and one that is not there yet.
_ELSEWHERE = ("<!--picture", "<figure", "gap-inline")


def framed(html: str, day: int, showing: Showing) -> str:
    """A day's page with its place above the heading, its time under the lead, and tomorrow."""
    about = outline.numbered("day", day)
    week = outline.numbered("week", about.within)
    phase = outline.numbered("phase", week.within)
    place = [linked(showing, each, each.place) for each in (phase, week)]
    place += [f"Day {day} of {len(outline.parts('day'))}", f"up to {outline.HOURS} hours"]
    if (lab := f"{labs.FOLDER}/day_{day:02}{labs.ENDING}") in showing.pages:
        place.append(f'<a href="{escape(showing.link_to(lab))}">Lab notebook</a>')
    html = f'<p class="day-of" data-search-exclude>{" · ".join(place)}</p>\n{html}'
    lead = re.search(r'(?<=<p class="lead">).*?</p>', html, re.DOTALL) or re.search("</h1>", html)
    at = lead.end() if lead else len(html)
    html = f"{html[:at]}\n{_time(html)}{html[at:]}"
    html = _TAKEAWAY.sub(lambda first: first[0] + _TAGS, html, count=1)
    html = html.replace("</h1>", f"</h1>\n{_guesses(html)}", 1)
    before, sources, after = html.partition('<details class="sources"')
    return f"{before}{_tomorrow(about, showing)}{sources}{after}"


def problems(html: str, day: int) -> Iterator[tuple[str, str]]:
    """What is wrong with a day's page as Markdown gives it: what to look for in its source, empty
    for the whole page, and a sentence."""
    spent = sum(int(minutes) for minutes, _, _ in _TIMED.findall(html))
    if spent != MINUTES:
        yield "data-minutes", f"the sections take {spent} minutes together, and not {MINUTES}."
    names = set()
    for part in _PART.split(html):
        if not (box := _BOX.match(part)):
            continue
        question, _, answer = part.partition('<details class="answer"')
        title = re.search(r'class="admonition-title">(.*?)</p>', question)
        place = re.sub(r"<[^>]*>", "", title[1]) if title else ""
        if box[1] == "takeaway":
            if 'class="chip' not in part and "gap-inline" not in part:
                yield place, "a takeaway is bound to a claim: [[claim:ID | verdict]]."
            continue
        if not answer:
            yield place, f'a box "{box[1]}" has its answer folded: ??? answer "...".'
        asked = _ASKED.search(question)
        if asked is None:
            if box[1] in ("predict", "quiz"):
                yield place, 'its question ends with a name: { #d02-wave data-unit="blocks" }.'
            continue
        name, unit = asked.groups()
        if name in names or not name.startswith(f"d{day:02}-"):
            yield name, f"{name}: a box's name begins with d{day:02}- and is no other box's."
        names.add(name)
        yield from ((name, f"{name}: {wrong}") for wrong in _answers(question, unit, answer))


def _answers(question: str, unit: str | None, answer: str) -> Iterator[str]:
    """What is wrong with the answer to a question for a number, or with that to a choice."""
    letters, right, said = (
        each.findall(text)
        for each, text in ((_LETTER, question), (_RIGHT, answer), (_MEASURED, answer))
    )
    there = any(each in answer for each in _ELSEWHERE)
    if not unit:
        if len(letters) < 2:
            yield "a question has a data-unit, or a list of choices, each with its letter in bold."
        elif not there and (len(right) != 1 or right[0] not in letters):
            yield "its answer names the right choice once, as **b**{ .right } or **b**{ .open }."
    elif not said and not there:
        yield "its answer has no measured figure. Refer to one: [[...]]."
    elif said and not there:
        found = _SAID.match(said[0].replace(",", ""))
        printed = found["unit"] if found else ""
        ratio = unit == "×" and (printed == "%" or said[0].endswith("as fast"))
        if not ratio and (found is None or _base(printed) != _base(unit)):
            yield f"its answer reads {said[0]!r}, which is no number of {unit}."


def _base(unit: str) -> str:
    """A unit without its prefix; empty for a word, such as `blocks`."""
    found = _UNIT.fullmatch(unit)
    other = found["other"] or ""
    return found["base"] or ("" if other.isalpha() else other)


def _guesses(html: str) -> str:
    """A line that leads to the questions, before a page's first screen tells their answers."""
    many = html.count('<div class="admonition predict"')
    at = re.search(r'<h2 (?=[^>]*id="(predict[^"]*)")', html)
    if not many or not at:
        return ""
    guesses = f"{many} guess{'es' if many > 1 else ''}"
    link = f'<a href="#{escape(at[1])}">{guesses} first</a>'
    said = f"{link}: what follows tells the answers."
    return f'<p class="said-once" data-search-exclude>{said}</p>\n'


def _time(html: str) -> str:
    """A bar of the parts of a day, each with its name and as wide as its sections are long."""
    parts: dict[str, tuple[str, int]] = {}  # name -> its first section, and its minutes
    part = "recall"
    for minutes, name, text in _TIMED.findall(html):
        title = unescape(re.sub("<[^>]*>", "", text))
        begun = (each for start, each in _BEGINS.items() if title.startswith(start))
        part = next(begun, _FOLLOWS.get(part, part))
        first, spent = parts.get(part, (name, 0))
        parts[part] = first, spent + int(minutes)
    items = (
        f'<li style="flex-grow:{spent}"><a href="#{name}">{part} <b>{spent}</b></a></li>'
        for part, (name, spent) in parts.items()
    )
    label = escape(f"How the {outline.HOURS} hours are spent, in minutes")
    return f'<ol class="spent" aria-label="{label}" data-search-exclude>{"".join(items)}</ol>\n'


def _tomorrow(today: Part, showing: Showing) -> str:
    if today.number == len(outline.parts("day")):
        return ""
    day = outline.numbered("day", today.number + 1)
    name = f"{linked(showing, day)} {missing(showing, day)}".rstrip()
    said = f"<b>Tomorrow</b> {name}<br>You measure {escape(day.measures)}."
    return f'<aside class="tomorrow" data-search-exclude><p>{said}</p></aside>\n'
