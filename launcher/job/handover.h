// The handover of certificates and listening sockets to the calling program (horovod.run), for
// mutual TLS between that program and its workers.
#ifndef LAUNCHER_JOB_HANDOVER_H_
#define LAUNCHER_JOB_HANDOVER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace hvd::launcher::job {

// Sends the server's part over `caller`, a unix socket: a JSON object with the PEM texts "ca",
// "certificate" and "key", and sockets that listen at `addresses` (numeric, with port 0). Returns
// the clients' part: a JSON object with PEM texts of the same names, and "addresses" with the real
// ports. The certificate authority is created for this call and its key is then destroyed, so that
// no other certificate can be issued.
// Errors:
//   - InvalidArgument: `caller` is not a unix socket, or an address is not numeric, or there are
//     too many.
//   - Unavailable: the message can't be sent, or a socket can't listen at an address.
//   - Internal: OpenSSL failed.
absl::StatusOr<std::string> HandOver(Fd caller, const std::vector<std::string>& addresses);

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_HANDOVER_H_
