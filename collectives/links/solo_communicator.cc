#include "collectives/links/solo_communicator.h"

#include <cstring>

#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "collectives/rank_text.h"

namespace hvd::collectives::links {
namespace {

class SoloCommunicator : public Communicator {
 public:
  SoloCommunicator(absl::string_view name, Epoch epoch) : name_(name), epoch_(epoch) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string ToString() const override { return RankText(name_, 0, 1, epoch_); }

  absl::Status AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                         const CallOptions& options) override {
    return Copy(in, out, count * SizeOf(type));
  }
  absl::Status AllGather(const void* in, void* out, absl::Span<const size_t> byte_counts,
                         const CallOptions& options) override {
    return Copy(in, out, byte_counts[0]);
  }
  absl::Status Broadcast(void* buffer, size_t bytes, int root,
                         const CallOptions& options) override {
    return Copy(buffer, buffer, bytes);
  }
  absl::Status AllToAll(const void* in, absl::Span<const size_t> send_bytes, void* out,
                        absl::Span<const size_t> receive_bytes,
                        const CallOptions& options) override {
    return Copy(in, out, receive_bytes[0]);
  }
  absl::Status ReduceScatter(const void* in, void* out, absl::Span<const size_t> counts,
                             DataType type, ReduceOp op, const CallOptions& options) override {
    return Copy(in, out, counts[0] * SizeOf(type));
  }
  absl::Status SendReceive(int peer, const void* in, void* out, size_t bytes,
                           const CallOptions& options) override {
    return absl::InternalError(absl::StrCat("there is no rank ", peer, " in ", ToString()));
  }
  absl::Status Barrier(const CallOptions& options) override { return Copy(nullptr, nullptr, 0); }

  void Abort(absl::string_view reason) override {
    absl::MutexLock lock(&mutex_);
    if (status_.ok()) status_ = absl::AbortedError(reason);
  }

 private:
  absl::Status Copy(const void* in, void* out, size_t bytes) {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(status_);
    if (in != out && bytes > 0) std::memcpy(out, in, bytes);
    return absl::OkStatus();
  }

  const std::string name_;
  const Epoch epoch_;
  absl::Mutex mutex_;
  absl::Status status_;
};

}  // namespace

std::unique_ptr<Communicator> MakeSoloCommunicator(absl::string_view name, const GroupInfo& group) {
  return std::make_unique<SoloCommunicator>(name, group.epoch);
}

}  // namespace hvd::collectives::links
