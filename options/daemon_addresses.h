// The addresses of a job's daemons as command lines give them. Pure.
#ifndef OPTIONS_DAEMON_ADDRESSES_H_
#define OPTIONS_DAEMON_ADDRESSES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/net/address.h"

namespace hvd::options {

// Parses the value of the option `flag`: "HOST:PORT,...", with names or numeric addresses. One of
// several daemons is the leader, the others stand by.
// Errors: one line that names the option.
//   - InvalidArgument: a part is not a host and a port.
absl::StatusOr<std::vector<net::HostPort>> ParseDaemons(absl::string_view flag,
                                                        const std::string& text);

}  // namespace hvd::options

#endif  // OPTIONS_DAEMON_ADDRESSES_H_
