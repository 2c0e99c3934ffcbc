// The C++ headers that are made from proto/events.proto.
#ifndef TOOLS_EVENT_TYPES_EVENT_HEADERS_H_
#define TOOLS_EVENT_TYPES_EVENT_HEADERS_H_

#include <string>

#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"

namespace hvd {

struct EventHeaders {
  std::string types;   // a struct for each message and kind of event, and the variant of all kinds
  std::string fields;  // their mapping to the messages, for rendezvous/snapshot/fields.h
};

// `file` must have been parsed with comments, and have a message Event with the oneof `kind`.
// Errors:
//   - InvalidArgument: a field has a type for which there is none in C++; names the field.
absl::StatusOr<EventHeaders> MakeEventHeaders(const google::protobuf::FileDescriptor& file);

}  // namespace hvd

#endif  // TOOLS_EVENT_TYPES_EVENT_HEADERS_H_
