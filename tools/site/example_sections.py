"""A griffe extension for docstrings: "Example:" is a section of code, as "Examples:" is, and names in roles, such as :class:`X`, are code."""

import re
from typing import Any

import griffe


class ExampleSections(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            text = re.sub(r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.M)
            obj.docstring.value = re.sub(r":(?:class|meth|func|attr|mod|exc|data):`~?([^`]+)`", r"`\1`", text)
