// The table of client calls that are parked until there is an answer. No thread blocks for them.
#ifndef RENDEZVOUS_SERVER_PARKED_CALLS_H_
#define RENDEZVOUS_SERVER_PARKED_CALLS_H_

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/support/server_callback.h"
#include "proto/rendezvous.pb.h"
#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::server {

class ParkedCall;

// Thread-safe. Must outlive its calls: shut the gRPC server down first. Each call is finished
// exactly once, by the first of: an answer, a cancellation by the client, Close.
class ParkedCalls {
 public:
  // `on_cancelled` is called for each call that its client cancels before there is an answer.
  explicit ParkedCalls(std::function<void(membership::CallId)> on_cancelled);

  // Adds a call whose answer goes to `response`. Return the result to gRPC. REQUIRES: Response is a
  // type in rendezvous.proto.
  template <typename Response>
  ParkedCall* Park(Response* response) {
    return Add(response);
  }

  // Finishes a call with the answer that `fill` writes. Ignored if the call has ended already. The
  // call ends with INTERNAL if its answer has another type.
  template <typename Response>
  void Answer(membership::CallId id, const std::function<void(Response&)>& fill);

  // Finishes a call with an empty response. Ignored if it has ended already.
  void Finish(membership::CallId id, const absl::Status& status);

  // Ends all calls, and every later one, with `status`.
  void Close(const absl::Status& status);

  // Whether gRPC still holds calls.
  bool busy();

 private:
  friend class ParkedCall;
  using ResponsePtr =
      std::variant<pb::JoinWorldResponse*, pb::WatchEpochResponse*, pb::ExchangeResponse*,
                   pb::ReportResponse*, pb::GetStatusResponse*, pb::DrainResponse*,
                   pb::StopResponse*, pb::ReportStallResponse*, pb::GetMembersResponse*>;

  ParkedCall* Add(ResponsePtr response);
  // Removes the call from the table; the caller must finish it. Returns null if it has ended
  // already.
  ParkedCall* Take(membership::CallId id);
  void Cancelled(membership::CallId id);
  void Gone();
  static ResponsePtr ResponseOf(const ParkedCall& call);
  static void End(ParkedCall& call, const absl::Status& status);

  const std::function<void(membership::CallId)> on_cancelled_;
  absl::Mutex mu_;
  std::unordered_map<uint64_t, ParkedCall*> calls_ ABSL_GUARDED_BY(mu_);
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t alive_ ABSL_GUARDED_BY(mu_) = 0;  // calls that gRPC still holds, including finished ones
  absl::Status closed_ ABSL_GUARDED_BY(mu_);  // not OK: closed
};

// One parked call. It deletes itself in OnDone, when gRPC no longer uses it.
class ParkedCall final : public grpc::ServerUnaryReactor {
 public:
  ParkedCall(ParkedCalls& table, membership::CallId id, ParkedCalls::ResponsePtr response)
      : table_(table), id_(id), response_(response) {}

  membership::CallId id() const { return id_; }

  void OnCancel() override { table_.Cancelled(id_); }
  void OnDone() override {
    ParkedCalls& table = table_;
    delete this;
    table.Gone();
  }

 private:
  friend class ParkedCalls;
  ParkedCalls& table_;
  const membership::CallId id_;
  const ParkedCalls::ResponsePtr response_;
};

template <typename Response>
void ParkedCalls::Answer(membership::CallId id, const std::function<void(Response&)>& fill) {
  ParkedCall* const call = Take(id);
  if (call == nullptr) return;
  const ResponsePtr response = ResponseOf(*call);
  if (Response* const* expected = std::get_if<Response*>(&response)) {
    fill(**expected);
    End(*call, absl::OkStatus());
  } else {
    End(*call, absl::InternalError("the daemon has an answer for another kind of call"));
  }
}

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_PARKED_CALLS_H_
