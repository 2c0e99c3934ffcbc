// The registry of this process's transfers of process groups, by number.
#ifndef WORKER_RUNTIME_GROUP_TRANSFERS_H_
#define WORKER_RUNTIME_GROUP_TRANSFERS_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "collectives/messages/transfer.h"
#include "worker_runtime/group/process_group.h"

namespace hvd::worker_runtime::group {

// Thread-safe.
class Transfers {
 public:
  using Number = int64_t;

  // Returns the number of a transfer of this group, which is never used again.
  Number Add(const std::shared_ptr<ProcessGroup>& group,
             collectives::messages::TransferPtr transfer);
  // Errors of all:
  //   - NotFound: there is no such transfer.
  absl::StatusOr<collectives::messages::TransferPtr> Find(Number number) const;
  // Waits for `most` and about a second at most, or until this thread takes a signal. nullopt: the
  // transfer is not done. It is after its group was left. Else returns how it has ended, and sets
  // *source to the rank that has sent what was received. Errors: those of Transfer::status(), with
  // the cause that the group knows.
  std::optional<absl::Status> AwaitEnd(Number number, absl::Duration most, int32_t* source) const;
  // Forgets the transfer. One that is not done goes on, and uses its memory.
  void Remove(Number number);

 private:
  struct Entry {
    // Not owned: a transfer that nobody completes must not keep its group.
    std::weak_ptr<ProcessGroup> group;
    collectives::messages::TransferPtr transfer;
  };
  absl::StatusOr<Entry> FindEntry(Number number) const;

  mutable absl::Mutex mutex_;
  Number next_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<Number, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::group

#endif  // WORKER_RUNTIME_GROUP_TRANSFERS_H_
