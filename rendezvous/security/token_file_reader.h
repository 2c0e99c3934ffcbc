// The credentials of a job, as its daemon has written them into a file.
#ifndef RENDEZVOUS_SECURITY_TOKEN_FILE_READER_H_
#define RENDEZVOUS_SECURITY_TOKEN_FILE_READER_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "proto/agent.pb.h"

namespace hvd::rendezvous::security {

// Reads a message hvd.pb.Credentials in Protobuf's text format.
//   NotFound: it is not there, or empty.   InvalidArgument: it can't be read, is another user's
//   (but root's) or open to others (its group may read it), or holds something else; one line that
//   names the file.
absl::StatusOr<pb::Credentials> ReadTokenFile(const std::string& path);

// The same, when there is one: it looks again and again for so long. `on_wait` is called once, if
// it takes more than moments.
absl::StatusOr<pb::Credentials> AwaitTokenFile(const std::string& path, absl::Duration timeout,
                                               const std::function<void()>& on_wait,
                                               Clock& clock = Clock::Real());

}  // namespace hvd::rendezvous::security

#endif  // RENDEZVOUS_SECURITY_TOKEN_FILE_READER_H_
