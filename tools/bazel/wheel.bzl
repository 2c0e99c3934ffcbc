"""wheel: the Python package with its programs and libraries, as tools/wheel.py packs it."""

def _wheel_impl(ctx):
    directory = ctx.actions.declare_directory("dist")
    stage = directory.path + ".stage/horovod"
    copies = ["mkdir -p %s/bin %s/lib" % (stage, stage)]
    for file in ctx.files.programs:
        copies.append("cp -L %s %s/bin/" % (file.path, stage))
    for file in ctx.files.libraries:
        copies.append("cp -L %s %s/lib/" % (file.path, stage))
    for file in ctx.files.package + ctx.files.headers:
        target = file.short_path[len("python/horovod/"):] if file not in ctx.files.headers else "include/horovod/" + file.basename
        target = "%s/%s" % (stage, target)
        copies.append("mkdir -p $(dirname %s) && cp -L %s %s" % (target, file.path, target))
    copies.append("/usr/bin/python3 tools/wheel.py %s.stage %s" % (directory.path, directory.path))
    ctx.actions.run_shell(
        outputs = [directory],
        inputs = ctx.files.programs + ctx.files.package + ctx.files.headers + ctx.files.sources + ctx.files.libraries,
        # Actions have no PATH, without which g++ does not find where it is installed.
        command = "set -e\nexport PATH=/usr/local/bin:/usr/bin:/bin\n" + "\n".join(copies),
        mnemonic = "Wheel",
    )
    return DefaultInfo(files = depset([directory]))

wheel = rule(
    implementation = _wheel_impl,
    attrs = {
        "programs": attr.label_list(allow_files = True, doc = "What is installed into bin/."),
        "libraries": attr.label_list(allow_files = True, doc = "libhvd.so, and what frameworks load."),
        "package": attr.label_list(allow_files = True, doc = "The Python files, under python/horovod/."),
        "headers": attr.label_list(allow_files = True, doc = "What is installed into include/horovod/."),
        "sources": attr.label_list(allow_files = True, doc = "What tools/wheel.py reads besides, and itself."),
    },
)
