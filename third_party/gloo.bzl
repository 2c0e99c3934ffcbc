"""A header that Debian's libgloo-dev lacks."""

# After the system's own folders, so that a package that has the header is used as it is.
GLOO_SHIM_COPTS = [
    "-idirafter",
    "third_party/shims/gloo",
]
