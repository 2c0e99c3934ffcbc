"""link_only: a library that others link but whose headers they do not see, so that a change of these compiles nothing of them anew."""

def _link_only_impl(ctx):
    return [CcInfo(linking_context = ctx.attr.library[CcInfo].linking_context)]

link_only = rule(
    implementation = _link_only_impl,
    attrs = {"library": attr.label(providers = [CcInfo], mandatory = True)},
)
