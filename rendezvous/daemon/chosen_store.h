// The job store that the daemon's options choose.
#ifndef RENDEZVOUS_DAEMON_CHOSEN_STORE_H_
#define RENDEZVOUS_DAEMON_CHOSEN_STORE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "rendezvous/daemon/rendezvousd_options.h"
#include "rendezvous/store/job_store.h"

namespace hvd::rendezvous::daemon {

// Null: nothing is to be kept.
// Errors: those of FileJobStore::Open and EtcdJobStore::Open.
//   - InvalidArgument: a file of the options can't be read; says which.
absl::StatusOr<std::unique_ptr<store::JobStore>> OpenChosenStore(const RendezvousdOptions& options,
                                                                 const store::StoreWait& wait);

}  // namespace hvd::rendezvous::daemon

#endif  // RENDEZVOUS_DAEMON_CHOSEN_STORE_H_
