"""Draw `docs/architecture.md` from the sources: the rooms, their doors, and who imports whom.

python scripts/draw_house.py            # write the drawn parts anew
python scripts/draw_house.py --check    # exit 1 if they are not what the sources say
"""

import ast
import sys
from collections import defaultdict
from pathlib import Path

from house import FLOW, PACKAGE, ROOT, House, read_house, room_of

PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- drawn: {} -->", "<!-- /drawn -->"


def rooms(house: House) -> str:
    """A table of rooms: what each is for, how many files and names it has, what it imports."""
    uses: dict[str, set[str]] = defaultdict(set)
    for module in house.modules:
        uses[room_of(module)] |= {room_of(found.home) for found in house.imports(module)}
    lines = ["| room | what it is for | files | names in its door | imports |", "|---|---|---:|---:|---|"]
    for room in FLOW:
        name = f"{PACKAGE}.{room}"
        files = [module for module in house.modules if module == name or module.startswith(f"{name}.")]
        doc = (ast.get_docstring(house.modules[name]) or "").split("\n")[0]
        left = ", ".join(other for other in FLOW if other in uses[room] - {room})
        door = str(len(house.doors[name])) if name in house.doors else "–"
        lines.append(f"| `{room}` | {doc} | {len(files)} | {door} | {left or '–'} |")
    return "\n".join(lines)


def files(house: House) -> str:
    """Every file with its first sentence, room by room."""
    lines = []
    for room in FLOW:
        name = f"{PACKAGE}.{room}"
        lines.append(f"**`{room}`**\n")
        for module in sorted(house.modules):
            if module.startswith(f"{name}.") or (module == name and name not in house.doors):
                doc = (ast.get_docstring(house.modules[module]) or "").split("\n")[0]
                path = module.removeprefix(f"{PACKAGE}.").replace(".", "/")
                is_folder = (ROOT / "src" / PACKAGE / path).is_dir()
                lines.append(f"- `{path}{'/' if is_folder else '.py'}`: {doc}")
        lines.append("")
    return "\n".join(lines).rstrip("\n")


def drawn(text: str, house: House) -> str:
    """The page with its drawn parts made anew."""
    for name, part in (("rooms", rooms(house)), ("files", files(house))):
        begin = BEGIN.format(name)
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(END)
        text = f"{before}{begin}\n{part}\n{END}{after}"
    return text


def main(arguments: list[str], page: Path = PAGE) -> int:
    """Write the page, or compare it."""
    text = page.read_text(encoding="utf-8")
    new = drawn(text, read_house())
    if "--check" in arguments:
        return int(new != text)
    page.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
