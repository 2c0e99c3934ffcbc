// Which processes can share memory and meet at abstract unix sockets.
#ifndef BASE_OS_HOST_IDENTITY_H_
#define BASE_OS_HOST_IDENTITY_H_

#include <string>

namespace hvd::os {

// The same string in processes of one user in one network namespace of one boot of one machine, and
// in no others; it tells nothing else. Empty if /proc does not say. Processes with the same one may
// still be kept apart, by mandatory access control say. Safe for concurrent use.
std::string HostIdentity();

}  // namespace hvd::os

#endif  // BASE_OS_HOST_IDENTITY_H_
