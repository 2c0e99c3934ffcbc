#include "tools/event_types/event_headers.h"

#include <string>

#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/cpp.pb.h"

namespace hvd {
namespace {

using google::protobuf::FileDescriptorProto;

// Of a message Told, the kinds `told`, `tick` and `worker_gone`, and comments on them.
FileDescriptorProto File() {
  FileDescriptorProto file;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        name: "events.proto"
        syntax: "proto3"
        message_type {
          name: "Event"
          oneof_decl { name: "kind" }
          field {
            name: "told"
            number: 3
            label: LABEL_OPTIONAL
            type: TYPE_MESSAGE
            type_name: ".Told"
            oneof_index: 0
          }
          field {
            name: "tick"
            number: 2
            label: LABEL_OPTIONAL
            type: TYPE_MESSAGE
            type_name: ".Empty"
            oneof_index: 0
          }
          field {
            name: "worker_gone"
            number: 4
            label: LABEL_OPTIONAL
            type: TYPE_UINT64
            oneof_index: 0
            options {
              [hvd.pb.cpp] { type: "WorkerId" member: "worker" }
            }
          }
        }
        message_type { name: "Empty" }
        message_type {
          name: "Told"
          field { name: "text" number: 1 label: LABEL_OPTIONAL type: TYPE_BYTES }
          field { name: "wait_ns" number: 2 label: LABEL_OPTIONAL type: TYPE_INT64 }
          field { name: "rank" number: 3 label: LABEL_REPEATED type: TYPE_INT32 }
        }
        source_code_info {
          location {
            path: [ 4, 0, 2, 2 ]
            span: [ 1, 1, 1 ]
            leading_comments: " A worker is gone.\n"
          }
          location {
            path: [ 4, 2 ]
            span: [ 2, 1, 1 ]
            leading_comments: " A text\n of someone.\n"
          }
          location {
            path: [ 4, 2, 2, 0 ]
            span: [ 3, 1, 1 ]
            trailing_comments: " one line\n"
          }
          location {
            path: [ 4, 2, 2, 1 ]
            span: [ 4, 1, 1 ]
            leading_comments: " How long.\n"
          }
        }
      )pb",
      &file));
  return file;
}

absl::StatusOr<EventHeaders> Make(const FileDescriptorProto& file) {
  google::protobuf::DescriptorPool pool;
  return MakeEventHeaders(*pool.BuildFile(file));
}

void ExpectHas(const std::string& header, const std::string& part) {
  EXPECT_NE(header.find(part), std::string::npos) << part << "\nis not in\n" << header;
}

TEST(EventHeadersTest, Message_BecomesAStructWithItsComments) {
  const absl::StatusOr<EventHeaders> headers = Make(File());
  ASSERT_TRUE(headers.ok()) << headers.status();
  ExpectHas(headers->types,
            "// A text\n"
            "// of someone.\n"
            "struct Told {\n"
            "  std::string text = {};  // one line\n"
            "  // How long.\n"
            "  absl::Duration wait = {};\n"
            "  std::vector<int> rank = {};\n"
            "};\n");
}

TEST(EventHeadersTest, KindWithoutMessage_BecomesAStructNamedAfterItsField) {
  const absl::StatusOr<EventHeaders> headers = Make(File());
  ASSERT_TRUE(headers.ok()) << headers.status();
  ExpectHas(headers->types, "struct Tick {\n};\n");
  ExpectHas(headers->types,
            "// A worker is gone.\n"
            "struct WorkerGone {\n"
            "  WorkerId worker = {};\n"
            "};\n");
}

TEST(EventHeadersTest, Kinds_AreAVariantInTheOrderOfTheFile) {
  const absl::StatusOr<EventHeaders> headers = Make(File());
  ASSERT_TRUE(headers.ok()) << headers.status();
  ExpectHas(headers->types, "using Event = std::variant<Told, Tick, WorkerGone>;\n");
  ExpectHas(headers->fields, "case 2:\n      return Tick{};\n");
}

TEST(EventHeadersTest, Mapping_HasTheFieldOfEachMember) {
  const absl::StatusOr<EventHeaders> headers = Make(File());
  ASSERT_TRUE(headers.ok()) << headers.status();
  ExpectHas(headers->fields, "\"wait_ns\", kept.wait");
  ExpectHas(headers->fields, "KeepKind(Fields& fields, Told& kept) {\n  fields(\"told\", kept);\n");
  ExpectHas(headers->fields, "\"worker_gone\", kept.worker");
}

TEST(EventHeadersTest, TypeThatCppLacks_IsRefusedByName) {
  FileDescriptorProto file = File();
  file.mutable_message_type(2)->mutable_field(0)->set_type(
      google::protobuf::FieldDescriptorProto::TYPE_FLOAT);
  const absl::Status status = Make(file).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("Told.text: no C++ type is known for float"), std::string::npos)
      << status;
}

}  // namespace
}  // namespace hvd
