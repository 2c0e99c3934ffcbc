#include "tools/event_types/event_structs.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/cpp.pb.h"

namespace hvd {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::SourceLocation;

constexpr absl::string_view kNanoseconds = "_ns";

// "worker_dying" is WorkerDying.
std::string CamelCase(absl::string_view name) {
  std::string result;
  for (const absl::string_view word : absl::StrSplit(name, '_')) {
    absl::StrAppend(&result, std::string(1, absl::ascii_toupper(word[0])), word.substr(1));
  }
  return result;
}

bool IsDuration(const FieldDescriptor& field) {
  return field.type() == FieldDescriptor::TYPE_INT64 && absl::EndsWith(field.name(), kNanoseconds);
}

// The type of one value, or "" if there is none.
std::string ValueType(const FieldDescriptor& field) {
  const std::string& named = field.options().GetExtension(pb::cpp).type();
  if (!named.empty()) return named;
  if (IsDuration(field)) return "absl::Duration";
  switch (field.type()) {
    case FieldDescriptor::TYPE_UINT64:
      return "uint64_t";
    case FieldDescriptor::TYPE_INT64:
      return "int64_t";
    case FieldDescriptor::TYPE_INT32:
      return "int";
    case FieldDescriptor::TYPE_BOOL:
      return "bool";
    case FieldDescriptor::TYPE_BYTES:
    case FieldDescriptor::TYPE_STRING:
      return "std::string";
    case FieldDescriptor::TYPE_MESSAGE:
      return field.message_type()->file() == field.file() ? field.message_type()->name() : "";
    default:
      return "";
  }
}

std::string MemberName(const FieldDescriptor& field) {
  const std::string& named = field.options().GetExtension(pb::cpp).member();
  if (!named.empty()) return named;
  absl::string_view name = field.name();
  if (IsDuration(field)) absl::ConsumeSuffix(&name, kNanoseconds);
  return std::string(name);
}

template <typename Described>
SourceLocation LocationOf(const Described& described) {
  SourceLocation location;
  described.GetSourceLocation(&location);
  return location;
}

absl::StatusOr<StructMember> ReadMember(const FieldDescriptor& field) {
  std::string type = ValueType(field);
  if (type.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(field.full_name(), ": no C++ type is known for ", field.type_name(),
                     "; add it to ValueType, or name one with (cpp).type"));
  }
  if (field.is_repeated()) type = absl::StrCat("std::vector<", type, ">");
  if (field.has_optional_keyword()) type = absl::StrCat("std::optional<", type, ">");
  SourceLocation location = LocationOf(field);
  return StructMember{field.name(), std::move(type), MemberName(field),
                      std::move(location.leading_comments), std::move(location.trailing_comments)};
}

absl::StatusOr<Struct> ReadStruct(const Descriptor& message) {
  Struct result{message.name(), LocationOf(message).leading_comments, {}};
  for (int i = 0; i < message.field_count(); ++i) {
    absl::StatusOr<StructMember> member = ReadMember(*message.field(i));
    if (!member.ok()) return member.status();
    result.members.push_back(*std::move(member));
  }
  return result;
}

// The struct of a kind without a message of its own: empty, or with one member.
absl::StatusOr<Struct> ReadSimpleKind(const FieldDescriptor& field) {
  Struct result{CamelCase(field.name()), LocationOf(field).leading_comments, {}};
  if (field.message_type() != nullptr) return result;
  absl::StatusOr<StructMember> member = ReadMember(field);
  if (!member.ok()) return member.status();
  member->comment_before.clear();  // it describes the kind
  result.members.push_back(*std::move(member));
  return result;
}

}  // namespace

absl::StatusOr<EventStructs> ReadEventStructs(const FileDescriptor& file) {
  EventStructs result;
  const Descriptor& event = *file.FindMessageTypeByName("Event");
  const Descriptor& empty = *file.FindMessageTypeByName("Empty");
  for (int i = 0; i < file.message_type_count(); ++i) {
    const Descriptor& message = *file.message_type(i);
    if (&message == &event || &message == &empty) continue;
    absl::StatusOr<Struct> made = ReadStruct(message);
    if (!made.ok()) return made.status();
    result.structs.push_back(*std::move(made));
  }
  const auto& kinds = *event.FindOneofByName("kind");
  for (int i = 0; i < kinds.field_count(); ++i) {
    const FieldDescriptor& field = *kinds.field(i);
    const bool is_message = field.message_type() != nullptr;
    result.kinds.push_back({field.name(), field.number(), CamelCase(field.name()), is_message});
    if (is_message && field.message_type() != &empty) {
      result.kinds.back().type = field.message_type()->name();
      continue;
    }
    absl::StatusOr<Struct> made = ReadSimpleKind(field);
    if (!made.ok()) return made.status();
    result.structs.push_back(*std::move(made));
  }
  return result;
}

}  // namespace hvd
