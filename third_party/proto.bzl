"""cc_proto: C++ code from .proto files with Debian's protoc, optionally with gRPC stubs."""

def cc_proto(name, src, deps = [], grpc = False, visibility = None):
    """Makes a cc_library with the messages (and, if asked for, the gRPC services) of one file.

    Args:
      name: the library's name.
      src: the .proto file, in this package.
      deps: other cc_proto targets whose files src imports.
      grpc: whether src defines services.
      visibility: as everywhere.
    """
    stem = src[:-len(".proto")]
    outs = [stem + ".pb.h", stem + ".pb.cc"]
    command = "protoc -I. --cpp_out=$(GENDIR) "
    if grpc:
        outs += [stem + ".grpc.pb.h", stem + ".grpc.pb.cc"]
        command += "--grpc_out=$(GENDIR) --plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin "
    native.filegroup(name = name + "_files", srcs = [src] + [dep + "_files" for dep in deps], visibility = visibility)
    native.genrule(
        name = name + "_gen",
        srcs = [src, name + "_files"],
        outs = outs,
        cmd = command + "$(location %s)" % src,
    )
    native.cc_library(
        name = name,
        srcs = [out for out in outs if out.endswith(".cc")],
        hdrs = [out for out in outs if out.endswith(".h")],
        copts = ["-w"],
        visibility = visibility,
        deps = deps + ["//third_party:grpc" if grpc else "//third_party:protobuf"],
    )
