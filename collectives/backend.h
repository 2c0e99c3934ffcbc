// The backend interface: a factory of communicators over one kind of connection. To add a backend,
// add a folder beside inproc/ and gloo/ and one line in worker_runtime/api/backends.cc.
#ifndef COLLECTIVES_BACKEND_H_
#define COLLECTIVES_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/cancellation.h"
#include "collectives/communicator.h"
#include "collectives/key_exchange.h"
#include "collectives/types.h"

namespace hvd::collectives {

// Makes communicators. Safe for concurrent use; must outlive the communicators that it made.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual absl::string_view name() const = 0;

  // Connects this rank with its peers; every rank of the group must call it. A peer that can't
  // prove knowledge of group.secret is refused. `keys` is used during the call only.
  // Errors:
  //   - DeadlineExceeded: not all ranks were connected within bounds.timeout.
  //   - The cancellation's status: bounds.cancellation was cancelled; a backend whose peers are in
  //     this process may ignore it.
  //   - Unavailable: a peer can't be reached or went away.
  //   - PermissionDenied: a peer gave a wrong proof.
  virtual absl::StatusOr<std::unique_ptr<Communicator>> Connect(const GroupInfo& group,
                                                                KeyExchange& keys,
                                                                const WaitBounds& bounds) = 0;
};

}  // namespace hvd::collectives

#endif  // COLLECTIVES_BACKEND_H_
