"""A griffe extension: "Example:" in a docstring is a section of code, as "Examples:" is."""

import re
from typing import Any

import griffe


class ExampleSections(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.M)
