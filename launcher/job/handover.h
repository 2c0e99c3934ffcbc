// The handover to the program that started this one (horovod.run), by which that program and its
// workers can connect: certificates for mutual TLS, and listening sockets.
#ifndef LAUNCHER_JOB_HANDOVER_H_
#define LAUNCHER_JOB_HANDOVER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace hvd::launcher::job {

// Sends over `caller`, a unix socket, the server's side: a JSON object with the PEM texts "ca",
// "certificate" and "key", and sockets that listen at `addresses` (numeric, with port 0). Returns
// the clients' side, a JSON object with PEM texts of the same names, and "addresses" with the real
// ports. The authority is made for this call and its key is dropped: nobody else can be certified.
// Errors:
//   - InvalidArgument: `caller` is not a unix socket, or an address is not numeric, or there are
//     too many.
//   - Unavailable: it can't be sent, or nothing can listen there.
//   - Internal: OpenSSL failed.
absl::StatusOr<std::string> HandOver(Fd caller, const std::vector<std::string>& addresses);

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_HANDOVER_H_
