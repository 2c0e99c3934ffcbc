// Seals of objects: the proof that bytes to be unpickled were sent by a member of this world, as
// this object of this operation. Unpickling the bytes of a stranger runs the stranger's code.
#ifndef WORKER_RUNTIME_API_OBJECT_SEALS_H_
#define WORKER_RUNTIME_API_OBJECT_SEALS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/crypto.h"
#include "base/ids.h"

namespace hvd::worker_runtime::api {

inline constexpr size_t kSealBytes = kHmacSha256Bytes;

// An operation that carries objects, with its name on all ranks.
struct ObjectOperation {
  int32_t process_set = 0;
  absl::string_view name;
};

// The seals of one epoch, under a key derived from its secret. Operations of one name are counted
// as they are opened, so that none can be replayed: all ranks of a process set open the same ones.
// Thread-safe.
class ObjectSeals {
 public:
  ObjectSeals(Epoch epoch, absl::string_view secret);

  // The seal, kSealBytes long, of the object that rank `sender` (of the world) contributes to the
  // next operation.
  std::string Seal(const ObjectOperation& operation, int sender, absl::string_view object) const;

  // One rank's object followed by its seal, as received.
  struct Sealed {
    int sender = 0;
    absl::string_view bytes;
  };
  // Checks all of an operation's objects; if they are valid, the operation is over.
  // Errors:
  //   - PermissionDenied: one is not what its rank sent; names operation and rank.
  absl::Status Open(const ObjectOperation& operation, absl::Span<const Sealed> objects);

 private:
  using Key = std::pair<int32_t, std::string>;

  uint64_t NumberOf(const ObjectOperation& operation) const;
  std::string Make(const ObjectOperation& operation, uint64_t number, int sender,
                   absl::string_view object) const;

  const Epoch epoch_;
  const std::string key_;
  mutable absl::Mutex mutex_;
  std::map<Key, uint64_t> opened_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_OBJECT_SEALS_H_
