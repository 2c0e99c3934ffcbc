// A leader's reads from a key-value store, in pages. While etcd is unreachable they retry, until
// the leadership is lost. They end if etcd denies them to this daemon's user.
#ifndef RENDEZVOUS_ETCD_READING_H_
#define RENDEZVOUS_ETCD_READING_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/etcd/key_value_store.h"
#include "rendezvous/etcd/keys.h"
#include "rendezvous/etcd/leadership.h"

namespace hvd::rendezvous::etcd {

// Returns the key's value, or nullopt if the key does not exist.
// Errors:
//   - Aborted: the leadership was lost.
//   - InvalidArgument: the user may not read the key; names the prefix of the job's keys.
absl::StatusOr<std::optional<std::string>> ReadKey(KeyValueStore& store,
                                                   const Leadership& leadership,
                                                   const std::string& key);

// Visits the keys in order; an error of `visit` stops the reading. REQUIRES: no other client writes
// to these keys.
// Errors:
//   - Aborted: the leadership was lost.
//   - InvalidArgument: the user may not read the keys; names the prefix of the job's keys.
//   - DataLoss: the store answers with keys that were not asked for, and would do so without end.
//   - Others: those of `visit`.
absl::Status ReadRange(KeyValueStore& store, const Leadership& leadership, const KeyRange& range,
                       const std::function<absl::Status(const etcdserverpb::KeyValue&)>& visit);

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_READING_H_
