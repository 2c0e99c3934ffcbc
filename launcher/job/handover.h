// What the program that started this one (horovod.run) and its workers need to talk with each
// other: certificates for mutual TLS, and places to meet.
#ifndef LAUNCHER_JOB_HANDOVER_H_
#define LAUNCHER_JOB_HANDOVER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace hvd::launcher::job {

// Sends over `caller`, a unix socket, the server's side: a JSON object with the PEM texts "ca",
// "certificate" and "key", and sockets that listen at `addresses` (numeric, with port 0). Returns
// the clients' side, a JSON object with the same of their own, and "addresses" with the ports that
// were found. The authority is made for this and its key is dropped: nobody else can be certified.
//   InvalidArgument: `caller` is no unix socket.   Unavailable: it can't be sent, or nothing can
//   listen there.   Internal: OpenSSL failed.
absl::StatusOr<std::string> HandOver(Fd caller, const std::vector<std::string>& addresses);

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_HANDOVER_H_
