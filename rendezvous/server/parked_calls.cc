#include "rendezvous/server/parked_calls.h"

#include <utility>
#include <vector>

#include "rendezvous/transport/grpc_status.h"

namespace hvd::rendezvous::server {

ParkedCalls::ParkedCalls(std::function<void(membership::CallId)> on_cancelled)
    : on_cancelled_(std::move(on_cancelled)) {}

void ParkedCalls::Finish(membership::CallId id, const absl::Status& status) {
  if (ParkedCall* const call = Take(id)) End(*call, status);
}

void ParkedCalls::Close(const absl::Status& status) {
  std::unordered_map<uint64_t, ParkedCall*> calls;
  {
    absl::MutexLock lock(&mu_);
    closed_ = status;
    calls.swap(calls_);
  }
  // Outside the lock: gRPC may call OnDone, and so Gone, from within Finish.
  for (const auto& [id, call] : calls) End(*call, status);
}

bool ParkedCalls::busy() {
  absl::MutexLock lock(&mu_);
  return alive_ > 0;
}

void ParkedCalls::Gone(const transport::CallMemory::Owner& owner,
                       const transport::CallMemory::Bytes& bytes) {
  absl::MutexLock lock(&mu_);
  memory_.Release(owner, bytes);
  --alive_;
}

absl::Status ParkedCalls::Charge(ParkedCall& call, size_t answer_bytes) {
  absl::MutexLock lock(&mu_);
  absl::Status taken = memory_.TakeAnswer(call.owner_, answer_bytes);
  if (taken.ok()) call.bytes_.answer = answer_bytes;
  return taken;
}

ParkedCall* ParkedCalls::Add(ResponsePtr response, transport::CallMemory::Owner owner,
                             size_t request_bytes) {
  ParkedCall* call = nullptr;
  absl::Status closed;
  {
    absl::MutexLock lock(&mu_);
    // Counted even if the table is closed: gRPC holds the call until OnDone.
    ++alive_;
    memory_.TakeRequest(owner, request_bytes);
    call = new ParkedCall(*this, membership::CallId(++last_id_), response, std::move(owner),
                          request_bytes);
    closed = closed_;
    if (closed.ok()) calls_.emplace(call->id().value(), call);
  }
  // The caller may still return `call` to gRPC, which deletes it only after that: gRPC delays the
  // effect of Finish until the handler has returned.
  if (!closed.ok()) End(*call, closed);
  return call;
}

// Removal from the map decides between an answer, a cancellation and Close: whoever removes the
// call finishes it, so gRPC's Finish is called exactly once.
ParkedCall* ParkedCalls::Take(membership::CallId id) {
  absl::MutexLock lock(&mu_);
  const auto found = calls_.find(id.value());
  if (found == calls_.end()) return nullptr;
  ParkedCall* const call = found->second;
  calls_.erase(found);
  return call;
}

void ParkedCalls::Cancelled(membership::CallId id) {
  ParkedCall* const call = Take(id);
  if (call == nullptr) return;
  // The machine must forget the call too. Its answer may be on the way already; then Finish or
  // Answer finds no call and ignores it.
  on_cancelled_(id);
  End(*call, absl::CancelledError("the caller gave up"));
}

ParkedCalls::ResponsePtr ParkedCalls::ResponseOf(const ParkedCall& call) { return call.response_; }

void ParkedCalls::End(ParkedCall& call, const absl::Status& status) {
  call.grpc::ServerUnaryReactor::Finish(transport::ToGrpcStatus(status));
}

}  // namespace hvd::rendezvous::server
