// An identity shared by processes that can share memory and connect by abstract unix sockets.
#ifndef BASE_OS_HOST_IDENTITY_H_
#define BASE_OS_HOST_IDENTITY_H_

#include <string>

namespace hvd::os {

// Returns an opaque string that is equal exactly for processes of the same user, network namespace,
// machine and boot. Empty if /proc does not provide these. Processes with the same identity may
// still be isolated from each other, e.g. by mandatory access control. Thread-safe.
std::string HostIdentity();

}  // namespace hvd::os

#endif  // BASE_OS_HOST_IDENTITY_H_
