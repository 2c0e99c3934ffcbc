// Message authentication codes ("seals") of serialised objects. A seal proves that a given member
// of this world has sent the object in a given operation. It is checked before unpickling, because
// unpickling an attacker's bytes runs the attacker's code.
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

// An operation that sends objects; `name` is the same on all ranks.
struct ObjectOperation {
  int32_t process_set = 0;
  absl::string_view name;
};

// Seals of one epoch, HMAC-SHA-256 with a key derived from the epoch's secret. Against replay a
// seal contains the number of operations of that name opened so far; all ranks of a process set
// open the same operations, so their counts agree. Thread-safe.
class ObjectSeals {
 public:
  ObjectSeals(Epoch epoch, absl::string_view secret);

  // Returns the seal, kSealBytes long, of the object that `sender`, a rank of the world, sends in
  // the next operation.
  std::string Seal(const ObjectOperation& operation, int sender, absl::string_view object) const;

  // One rank's object followed by its seal, as received.
  struct Sealed {
    int sender = 0;
    absl::string_view bytes;
  };
  // Checks all objects of an operation. If all are valid, counts the operation.
  // Errors:
  //   - PermissionDenied: the seal of an object is wrong; names the operation and the rank.
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
