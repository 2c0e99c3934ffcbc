// The table of client calls that are parked until there is an answer. No thread blocks for them.
#ifndef RENDEZVOUS_SERVER_PARKED_CALLS_H_
#define RENDEZVOUS_SERVER_PARKED_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/support/server_callback.h"
#include "proto/rendezvous.pb.h"
#include "rendezvous/membership/events.h"
#include "rendezvous/transport/call_memory.h"

namespace hvd::rendezvous::server {

class ParkedCall;

// Thread-safe. Must outlive its calls: shut the gRPC server down first. Each call is finished
// exactly once, by the first of: an answer, a cancellation by the client, Close.
class ParkedCalls {
 public:
  // `on_cancelled` is called for each call that its client cancels before there is an answer.
  explicit ParkedCalls(std::function<void(membership::CallId)> on_cancelled);

  // OK, or why a call must be refused instead of parked. See CallMemory.
  template <typename Request>
  absl::Status CheckRoom(const grpc::CallbackServerContext& context, const Request& request) {
    absl::MutexLock lock(&mu_);
    return memory_.CheckRoom(transport::CallMemory::OwnerOf(context, request));
  }

  // Adds a call whose answer goes to `response`. Return the result to gRPC. REQUIRES: Request and
  // Response are types in rendezvous.proto.
  template <typename Request, typename Response>
  ParkedCall* Park(const grpc::CallbackServerContext& context, const Request& request,
                   Response* response) {
    return Add(response, transport::CallMemory::OwnerOf(context, request), request.SpaceUsedLong());
  }

  // Finishes a call with the answer that `fill` writes. Ignored if the call has ended already. The
  // call ends with INTERNAL if its answer has another type, and with RESOURCE_EXHAUSTED if its
  // owner leaves too many answers unread.
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

  ParkedCall* Add(ResponsePtr response, transport::CallMemory::Owner owner, size_t request_bytes);
  // Removes the call from the table; the caller must finish it. Returns null if it has ended
  // already.
  ParkedCall* Take(membership::CallId id);
  void Cancelled(membership::CallId id);
  void Gone(const transport::CallMemory::Owner& owner, const transport::CallMemory::Bytes& bytes);
  // OK, or why the answer must not be sent.
  absl::Status Charge(ParkedCall& call, size_t answer_bytes);
  static ResponsePtr ResponseOf(const ParkedCall& call);
  static void End(ParkedCall& call, const absl::Status& status);

  const std::function<void(membership::CallId)> on_cancelled_;
  absl::Mutex mu_;
  std::unordered_map<uint64_t, ParkedCall*> calls_ ABSL_GUARDED_BY(mu_);
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t alive_ ABSL_GUARDED_BY(mu_) = 0;  // calls that gRPC still holds, including finished ones
  absl::Status closed_ ABSL_GUARDED_BY(mu_);  // not OK: closed
  transport::CallMemory memory_ ABSL_GUARDED_BY(mu_);
};

// One parked call. It deletes itself in OnDone, when gRPC no longer uses it.
class ParkedCall final : public grpc::ServerUnaryReactor {
 public:
  ParkedCall(ParkedCalls& table, membership::CallId id, ParkedCalls::ResponsePtr response,
             transport::CallMemory::Owner owner, size_t request_bytes)
      : table_(table),
        id_(id),
        response_(response),
        owner_(std::move(owner)),
        bytes_{request_bytes, 0} {}

  membership::CallId id() const { return id_; }

  void OnCancel() override { table_.Cancelled(id_); }
  void OnDone() override {
    ParkedCalls& table = table_;
    const transport::CallMemory::Owner owner = owner_;
    const transport::CallMemory::Bytes bytes = bytes_;
    delete this;
    table.Gone(owner, bytes);
  }

 private:
  friend class ParkedCalls;
  ParkedCalls& table_;
  const membership::CallId id_;
  const ParkedCalls::ResponsePtr response_;
  const transport::CallMemory::Owner owner_;
  transport::CallMemory::Bytes bytes_;
};

template <typename Response>
void ParkedCalls::Answer(membership::CallId id, const std::function<void(Response&)>& fill) {
  ParkedCall* const call = Take(id);
  if (call == nullptr) return;
  const ResponsePtr response = ResponseOf(*call);
  if (Response* const* expected = std::get_if<Response*>(&response)) {
    fill(**expected);
    const absl::Status charged = Charge(*call, (*expected)->ByteSizeLong());
    if (!charged.ok()) (*expected)->Clear();
    End(*call, charged);
  } else {
    End(*call, absl::InternalError("the daemon has an answer for another kind of call"));
  }
}

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_PARKED_CALLS_H_
