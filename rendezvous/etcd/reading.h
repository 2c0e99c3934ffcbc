// Reads of a key-value store by a leader, in pages. While etcd is away they wait, until the
// leadership is lost.
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

// The key's value; nullopt: there is none.
// Errors:
//   - Aborted: the leadership is lost.
absl::StatusOr<std::optional<std::string>> ReadKey(KeyValueStore& store,
                                                   const Leadership& leadership,
                                                   const std::string& key);

// Visits the keys in order; `visit` may stop it with an error. REQUIRES: nobody else writes to
// them. Errors: those of ReadKey and of `visit`.
absl::Status ReadRange(KeyValueStore& store, const Leadership& leadership, const KeyRange& range,
                       const std::function<absl::Status(const etcdserverpb::KeyValue&)>& visit);

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_READING_H_
