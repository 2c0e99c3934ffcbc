// An identity shared by processes that can share memory and connect by abstract unix sockets.
#ifndef BASE_OS_HOST_IDENTITY_H_
#define BASE_OS_HOST_IDENTITY_H_

#include <string>

namespace hvd::os {

// The same string in all processes of one user in one network namespace of one boot of one machine,
// and in no others; it has no other meaning. Empty if /proc does not have the parts. Processes with
// the same identity may still be kept apart, e.g. by mandatory access control. Safe for concurrent
// use.
std::string HostIdentity();

}  // namespace hvd::os

#endif  // BASE_OS_HOST_IDENTITY_H_
