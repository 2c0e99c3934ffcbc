#include "tools/event_types/event_headers.h"

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "tools/event_types/event_structs.h"

namespace hvd {
namespace {

// A header of rendezvous/membership.
std::string Header(absl::string_view comment, absl::string_view guard,
                   const std::vector<std::string>& includes, absl::string_view content) {
  return absl::StrCat(comment, "#ifndef ", guard, "\n#define ", guard, "\n\n#include ",
                      absl::StrJoin(includes, "\n#include "),
                      "\n\nnamespace hvd::rendezvous::membership {\n\n", content,
                      "\n}  // namespace hvd::rendezvous::membership\n\n#endif  // ", guard, "\n");
}

std::string CommentLines(absl::string_view comment, absl::string_view indent) {
  std::string result;
  if (comment.empty()) return result;
  for (const absl::string_view line :
       absl::StrSplit(absl::StripTrailingAsciiWhitespace(comment), '\n'))
    absl::StrAppend(&result, indent, "//", line, "\n");
  return result;
}

std::string CommentBehind(absl::string_view comment) {
  if (comment.empty()) return "";
  return absl::StrCat("  // ",
                      absl::StrReplaceAll(absl::StripAsciiWhitespace(comment), {{"\n", ""}}));
}

std::string Definition(const Struct& made) {
  std::string result = absl::StrCat(CommentLines(made.comment, ""), "struct ", made.name, " {\n");
  for (const StructMember& member : made.members) {
    absl::StrAppend(&result, CommentLines(member.comment_before, "  "), "  ", member.type, " ",
                    member.name, " = {};", CommentBehind(member.comment_behind), "\n");
  }
  return result + "};\n\n";
}

std::string Types(const EventStructs& events) {
  std::string content = "using placement::HostSlots;\n\n";
  for (const Struct& made : events.structs) content += Definition(made);
  const auto name = [](std::string* out, const EventKind& kind) { *out += kind.type; };
  absl::StrAppend(&content, "using Event = std::variant<", absl::StrJoin(events.kinds, ", ", name),
                  ">;\n");
  return Header("// The events of the membership state machine, made from proto/events.proto.\n",
                "RENDEZVOUS_MEMBERSHIP_EVENT_TYPES_H_",
                {"<cstdint>", "<optional>", "<string>", "<variant>", "<vector>\n",
                 "\"absl/time/time.h\"", "\"base/ids.h\"", "\"rendezvous/membership/call_id.h\"",
                 "\"rendezvous/placement/placement.h\""},
                content);
}

// KeepFields, as rendezvous/snapshot/fields.h describes.
std::string Mapping(const Struct& made) {
  std::vector<std::string> pairs;
  for (const StructMember& member : made.members)
    pairs.push_back(absl::StrCat("\n      \"", member.field, "\", kept.", member.name));
  return absl::StrCat("template <typename Fields>\nvoid KeepFields(Fields& fields, ", made.name,
                      "&", made.members.empty() ? "" : " kept", ") {\n  fields(",
                      absl::StrJoin(pairs, ","), ");\n}\n\n");
}

// KeepKind, which maps an event to its field of the message Event.
std::string KindMapping(const EventKind& kind) {
  const std::string body = kind.is_message ? absl::StrCat("fields(\"", kind.field, "\", kept);")
                                           : "KeepFields(fields, kept);";
  return absl::StrCat("template <typename Fields>\nvoid KeepKind(Fields& fields, ", kind.type,
                      "& kept) {\n  ", body, "\n}\n\n");
}

std::string NewEvent(const std::vector<EventKind>& kinds) {
  std::string result =
      "// Returns an event of the kind whose field of the message Event has this number; nullopt:\n"
      "// there is none.\n"
      "inline std::optional<Event> EventOfKind(int number) {\n  switch (number) {\n";
  for (const EventKind& kind : kinds) {
    absl::StrAppend(&result, "    case ", kind.number, ":\n      return ", kind.type, "{};\n");
  }
  return result + "  }\n  return std::nullopt;\n}\n";
}

std::string Fields(const EventStructs& events) {
  std::string content;
  for (const Struct& made : events.structs) content += Mapping(made);
  content += "// Maps an event to its field of the message Event.\n";
  for (const EventKind& kind : events.kinds) content += KindMapping(kind);
  content += NewEvent(events.kinds);
  return Header(
      "// The mapping of events to the messages of proto/events.proto, from which it is made: see\n"
      "// rendezvous/snapshot/fields.h.\n",
      "RENDEZVOUS_MEMBERSHIP_EVENT_FIELDS_H_",
      {"<optional>\n", "\"rendezvous/membership/event_types.h\"",
       "\"rendezvous/placement/placement_fields.h\""},
      content);
}

}  // namespace

absl::StatusOr<EventHeaders> MakeEventHeaders(const google::protobuf::FileDescriptor& file) {
  ASSIGN_OR_RETURN(const EventStructs events, ReadEventStructs(file));
  return EventHeaders{Types(events), Fields(events)};
}

}  // namespace hvd
