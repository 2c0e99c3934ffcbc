// Conversion of workers' requests to events of the membership.
#ifndef RENDEZVOUS_JOURNAL_REQUEST_EVENT_H_
#define RENDEZVOUS_JOURNAL_REQUEST_EVENT_H_

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "rendezvous/membership/event_fields.h"
#include "rendezvous/snapshot/fields.h"

namespace hvd::rendezvous::journal {

// Reads the members of an event from a request, as snapshot::FieldReader does from a message of the
// journal. Two differ: the call's id is not in the request, and a time is in milliseconds.
class RequestReader {
 public:
  static constexpr bool kReads = true;

  RequestReader(membership::CallId call, const google::protobuf::Message& request)
      : call_(call), fields_(request) {}

  void operator()() {}
  template <typename T, typename... Rest>
  void operator()(absl::string_view name, T& value, Rest&&... rest) {
    Get(name, value);
    (*this)(std::forward<Rest>(rest)...);
  }

 private:
  template <typename T>
  void Get(absl::string_view name, T& value) {
    fields_(name, value);
  }
  void Get(absl::string_view, membership::CallId& value) { value = call_; }
  void Get(absl::string_view name, absl::Duration& value) {
    uint64_t milliseconds = 0;
    absl::ConsumeSuffix(&name, "_ns");
    fields_(std::string(name) + "_ms", milliseconds);
    value = absl::Milliseconds(milliseconds);
  }

  const membership::CallId call_;
  snapshot::FieldReader fields_;
};

// Returns the event of a request that has been checked. Each member but the call's id is in the
// field of the request that has its name in proto/events.proto, `x_ms` instead of `x_ns`. Aborts if
// the request has no such field, which is a bug that the first use reveals.
template <typename Event>
Event ToEvent(membership::CallId call, const google::protobuf::Message& request) {
  Event event;
  RequestReader reader(call, request);
  KeepFields(reader, event);
  return event;
}

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_REQUEST_EVENT_H_
