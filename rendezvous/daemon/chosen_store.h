// Selection of the job store by the daemon's options.
#ifndef RENDEZVOUS_DAEMON_CHOSEN_STORE_H_
#define RENDEZVOUS_DAEMON_CHOSEN_STORE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "rendezvous/daemon/rendezvousd_options.h"
#include "rendezvous/store/job_store.h"

namespace hvd::rendezvous::daemon {

// Opens the store. Returns null if the options name none.
// Errors:
//   - InvalidArgument: a file of the options can't be read or used; says which, and why.
//   - Others: those of FileJobStore::Open and EtcdJobStore::Open.
absl::StatusOr<std::unique_ptr<store::JobStore>> OpenChosenStore(const RendezvousdOptions& options,
                                                                 const store::StoreWait& wait);

}  // namespace hvd::rendezvous::daemon

#endif  // RENDEZVOUS_DAEMON_CHOSEN_STORE_H_
