#include "collectives/inproc/inproc_communicator.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collectives/rank_text.h"
#include "collectives/reduce.h"

namespace hvd::collectives::inproc {
namespace {

std::string Bytes(const void* data, size_t offset, size_t bytes) {
  return bytes == 0 ? std::string() : std::string(static_cast<const char*>(data) + offset, bytes);
}

void CopyOut(const std::string& from, void* out, size_t offset) {
  if (!from.empty()) std::memcpy(static_cast<char*>(out) + offset, from.data(), from.size());
}

size_t Before(absl::Span<const size_t> counts, int rank) {
  size_t sum = 0;
  for (int r = 0; r < rank; ++r) sum += counts[r];
  return sum;
}

// Reduces the parts of all ranks in rank order, so that all ranks get bitwise equal results.
std::string Reduce(const std::vector<std::string>& parts, DataType type, ReduceOp op) {
  std::string result = parts[0];
  for (size_t r = 1; r < parts.size(); ++r) {
    GetReduceFunction(type, op)(&result[0], result.data(), parts[r].data(),
                                result.size() / SizeOf(type));
  }
  return result;
}

}  // namespace

InprocCommunicator::InprocCommunicator(std::shared_ptr<HubMember> self, Epoch epoch,
                                       std::vector<int> ranks)
    : self_(std::move(self)),
      hub_(self_->hub()),
      epoch_(epoch),
      ranks_(std::move(ranks)),
      rank_(static_cast<int>(std::find(ranks_.begin(), ranks_.end(), self_->rank()) -
                             ranks_.begin())) {}

std::string InprocCommunicator::ToString() const {
  return RankText("inproc", rank_, size(), epoch_);
}

absl::Status InprocCommunicator::Fail(absl::string_view operation, const absl::Status& status) {
  // A rank that fails in the middle of an operation has left its peers' messages unread. Breaking
  // the hub keeps the next operation from taking them for its own.
  hub_.Break(self_->rank());
  // The status of an abort is the one that the caller of Abort gave. It is returned unchanged.
  if (absl::IsAborted(status)) return status;
  return absl::Status(status.code(),
                      absl::StrCat(operation, " (", ToString(), "): ", status.message()));
}

absl::StatusOr<std::vector<std::string>> InprocCommunicator::ExchangeAll(
    absl::string_view operation, absl::FunctionRef<std::string(int)> for_rank,
    const CallOptions& options) {
  // All sends come before the first receive. They never block, so no order of the ranks can
  // deadlock.
  for (int r = 0; r < size(); ++r) {
    const absl::Status sent = hub_.Send(self_->rank(), ranks_[r], for_rank(r));
    if (!sent.ok()) return Fail(operation, sent);
  }
  std::vector<std::string> received;
  for (int r = 0; r < size(); ++r) {
    absl::StatusOr<std::string> message = hub_.Receive(ranks_[r], self_->rank(), options.timeout);
    if (!message.ok()) return Fail(operation, message.status());
    received.push_back(*std::move(message));
  }
  return received;
}

absl::Status InprocCommunicator::AllReduce(const void* in, void* out, size_t count, DataType type,
                                           ReduceOp op, const CallOptions& options) {
  // A copy, made before the exchange: `out` may be the same memory.
  const std::string own = Bytes(in, 0, count * SizeOf(type));
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   ExchangeAll(
                       "allreduce", [&](int) { return own; }, options));
  CopyOut(Reduce(all, type, op), out, 0);
  return absl::OkStatus();
}

absl::Status InprocCommunicator::AllGather(const void* in, void* out,
                                           absl::Span<const size_t> byte_counts,
                                           const CallOptions& options) {
  const std::string own = Bytes(in, 0, byte_counts[rank_]);
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   ExchangeAll(
                       "allgather", [&](int) { return own; }, options));
  for (int r = 0; r < size(); ++r) CopyOut(all[r], out, Before(byte_counts, r));
  return absl::OkStatus();
}

absl::Status InprocCommunicator::Broadcast(void* buffer, size_t bytes, int root,
                                           const CallOptions& options) {
  // Every rank sends to every other one here, though only the root has data: no rank returns before
  // all have called.
  const std::string own = rank_ == root ? Bytes(buffer, 0, bytes) : "";
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   ExchangeAll(
                       "broadcast", [&](int) { return own; }, options));
  CopyOut(all[root], buffer, 0);
  return absl::OkStatus();
}

absl::Status InprocCommunicator::AllToAll(const void* in, absl::Span<const size_t> send_bytes,
                                          void* out, absl::Span<const size_t> receive_bytes,
                                          const CallOptions& options) {
  const auto block = [&](int r) { return Bytes(in, Before(send_bytes, r), send_bytes[r]); };
  ASSIGN_OR_RETURN(const std::vector<std::string> all, ExchangeAll("alltoall", block, options));
  for (int r = 0; r < size(); ++r) CopyOut(all[r], out, Before(receive_bytes, r));
  return absl::OkStatus();
}

absl::Status InprocCommunicator::ExchangeBlocks(const void* in, const std::vector<Block>& send,
                                                void* out, const std::vector<Block>& receive,
                                                const CallOptions& options) {
  const auto block = [&](int r) { return Bytes(in, send[r].offset, send[r].bytes); };
  ASSIGN_OR_RETURN(const std::vector<std::string> all, ExchangeAll("alltoall", block, options));
  for (int r = 0; r < size(); ++r) CopyOut(all[r], out, receive[r].offset);
  return absl::OkStatus();
}

absl::Status InprocCommunicator::ReduceScatter(const void* in, void* out,
                                               absl::Span<const size_t> counts, DataType type,
                                               ReduceOp op, const CallOptions& options) {
  const size_t unit = SizeOf(type);
  const auto block = [&](int r) { return Bytes(in, Before(counts, r) * unit, counts[r] * unit); };
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   ExchangeAll("reducescatter", block, options));
  CopyOut(Reduce(all, type, op), out, 0);
  return absl::OkStatus();
}

absl::Status InprocCommunicator::SendReceive(int peer, const void* in, void* out, size_t bytes,
                                             const CallOptions& options) {
  const absl::Status sent = hub_.Send(self_->rank(), ranks_[peer], Bytes(in, 0, bytes));
  if (!sent.ok()) return Fail("send-receive", sent);
  absl::StatusOr<std::string> message = hub_.Receive(ranks_[peer], self_->rank(), options.timeout);
  if (!message.ok()) return Fail("send-receive", message.status());
  CopyOut(*message, out, 0);
  return absl::OkStatus();
}

absl::Status InprocCommunicator::Barrier(const CallOptions& options) {
  return ExchangeAll(
             "barrier", [](int) { return std::string(); }, options)
      .status();
}

void InprocCommunicator::Abort(absl::string_view reason) { hub_.Abort(self_->rank(), reason); }

std::unique_ptr<Communicator> InprocCommunicator::Subset(const std::vector<int>& ranks) {
  std::vector<int> of_hub;
  of_hub.reserve(ranks.size());
  for (const int rank : ranks) of_hub.push_back(ranks_[rank]);
  return std::make_unique<InprocCommunicator>(self_, epoch_, std::move(of_hub));
}

void InprocCommunicator::OnBroken(std::function<void(const absl::Status&)> listener) {
  hub_.OnBroken(self_->rank(), std::move(listener));
}

}  // namespace hvd::collectives::inproc
