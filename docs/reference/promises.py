"""For the site: what a docstring guarantees, does not guarantee, and its edges stand out.

In the code they are lines of one paragraph, which Markdown would run together.
"""

import re

import griffe

_PROMISE = re.compile(r"^(Guarantees|Does not guarantee|Edges): ", flags=re.MULTILINE)


class Promises(griffe.Extension):
    """Gives each of them a paragraph of its own, with a bold beginning."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Called by griffe for everything that has been read."""
        if obj.docstring is not None:
            obj.docstring.value = _PROMISE.sub(r"\n**\1:** ", obj.docstring.value)
