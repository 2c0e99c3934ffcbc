// Client calls that are parked until there is an answer. No thread waits with them.
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

// Thread-safe. Must outlive its calls: gRPC's server is shut down first. Each call is ended exactly
// once, by the first of: an answer, the client that gave up, Close.
class ParkedCalls {
 public:
  // `on_cancelled` is called for each call whose client gave up before there was an answer.
  explicit ParkedCalls(std::function<void(membership::CallId)> on_cancelled);

  // A new call whose answer goes to `response`. gRPC must be given the result. REQUIRES: Response
  // is one of rendezvous.proto's.
  template <typename Response>
  ParkedCall* Park(Response* response) {
    return Add(response);
  }

  // Ends a call with an answer, which `fill` writes. Ignored if the call has ended already;
  // INTERNAL if it expects another kind.
  template <typename Response>
  void Answer(membership::CallId id, const std::function<void(Response&)>& fill);

  // Ends a call without an answer; its response is empty. Ignored if it has ended already.
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
                   pb::ReportStallResponse*, pb::GetMembersResponse*>;

  ParkedCall* Add(ResponsePtr response);
  // The call, which the caller must now end; null if it has ended already.
  ParkedCall* Take(membership::CallId id);
  void Cancelled(membership::CallId id);
  void Gone();
  static ResponsePtr ResponseOf(const ParkedCall& call);
  static void End(ParkedCall& call, const absl::Status& status);

  const std::function<void(membership::CallId)> on_cancelled_;
  absl::Mutex mu_;
  std::unordered_map<uint64_t, ParkedCall*> calls_ ABSL_GUARDED_BY(mu_);
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t alive_ ABSL_GUARDED_BY(mu_) = 0;   // also those that have ended
  absl::Status closed_ ABSL_GUARDED_BY(mu_);  // not OK: closed
};

// One parked call. gRPC owns it until it is done.
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
