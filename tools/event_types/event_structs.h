// The C++ structs that are made from the messages of a .proto file, as data.
#ifndef TOOLS_EVENT_TYPES_EVENT_STRUCTS_H_
#define TOOLS_EVENT_TYPES_EVENT_STRUCTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"

namespace hvd {

struct StructMember {
  std::string field;  // the field of the message that holds it
  std::string type;
  std::string name;
  std::string comment_before;
  std::string comment_behind;
};

struct Struct {
  std::string name;
  std::string comment;
  std::vector<StructMember> members;
};

// A kind of event: an alternative of Event.kind.
struct EventKind {
  std::string field;  // the field of Event
  int number = 0;
  std::string type;         // its struct
  bool is_message = false;  // else `field` is the value of the struct's only member
};

struct EventStructs {
  std::vector<Struct> structs;   // each one after those that it has as members
  std::vector<EventKind> kinds;  // as they stand in the file
};

// See MakeEventHeaders, also for the errors.
absl::StatusOr<EventStructs> ReadEventStructs(const google::protobuf::FileDescriptor& file);

}  // namespace hvd

#endif  // TOOLS_EVENT_TYPES_EVENT_STRUCTS_H_
