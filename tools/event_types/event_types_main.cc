// Writes the C++ headers of the events:
//   event_types DESCRIPTOR_SET FILE TYPES_HEADER FIELDS_HEADER
// DESCRIPTOR_SET is what `protoc --include_imports --include_source_info` has made of FILE, a
// .proto file.
#include <cstdio>
#include <fstream>

#include "google/protobuf/descriptor.pb.h"
#include "proto/cpp.pb.h"
#include "tools/event_types/event_headers.h"

namespace hvd {
namespace {

int Fail(const std::string& why) {
  std::fprintf(stderr, "event_types: %s\n", why.c_str());
  return 2;
}

bool Write(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  return file.flush().good();
}

int Main(int argc, char** argv) {
  if (argc != 5) return Fail("usage: event_types DESCRIPTOR_SET FILE TYPES_HEADER FIELDS_HEADER");
  std::ifstream input(argv[1], std::ios::binary);
  google::protobuf::FileDescriptorSet set;
  if (!set.ParseFromIstream(&input)) return Fail(std::string(argv[1]) + " has no descriptors");
  google::protobuf::DescriptorPool pool;
  for (const google::protobuf::FileDescriptorProto& file : set.file()) pool.BuildFile(file);
  const google::protobuf::FileDescriptor* const file = pool.FindFileByName(argv[2]);
  if (file == nullptr) return Fail(std::string(argv[1]) + " has no file " + argv[2]);
  const absl::StatusOr<EventHeaders> headers = MakeEventHeaders(*file);
  if (!headers.ok()) return Fail(std::string(headers.status().message()));
  for (const auto& [path, text] : {std::pair(argv[3], headers->types), {argv[4], headers->fields}})
    if (!Write(path, text)) return Fail(std::string("can't write ") + path);
  return 0;
}

}  // namespace
}  // namespace hvd

int main(int argc, char** argv) { return hvd::Main(argc, argv); }
