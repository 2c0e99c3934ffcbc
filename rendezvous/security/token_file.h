// The token file: a job's credentials in a file, written by the daemon, for agents that do not get
// them from a launcher.
#ifndef RENDEZVOUS_SECURITY_TOKEN_FILE_H_
#define RENDEZVOUS_SECURITY_TOKEN_FILE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "proto/credentials.pb.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::rendezvous::security {

// Returns the contents of a token file: a message hvd.pb.Credentials in Protobuf's text format.
// Errors:
//   - Internal: the message can't be printed.
absl::StatusOr<std::string> TokenText(const PeerCredentials& credentials);

// Owns the file: the destructor removes it. Not thread-safe.
class TokenFile {
 public:
  // Writes a file that only its owner can read. Takes over an existing file with the same
  // credentials, even a truncated one, if it belongs to this user and was never readable by others.
  // Errors:
  //   - AlreadyExists: the path exists and is not such a file; it is not changed. Says why.
  //   - InvalidArgument: the file can't be created; says why.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Write(const std::string& path,
                                                          const PeerCredentials& credentials);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  // Leaves the file in place when this object is destroyed.
  void Keep() { keep_ = true; }

 private:
  explicit TokenFile(std::string path);
  const std::string path_;
  bool keep_ = false;
};

// Reads the credentials from a token file.
// Errors:
//   - NotFound: the file is missing or empty.
//   - InvalidArgument: one line that names the file and the reason: it can't be read, it is
//     another user's link, its owner is neither this user nor root, it is writable by its group or
//     accessible to others, or its contents are not valid.
absl::StatusOr<pb::Credentials> ReadTokenFile(const std::string& path);

// The same, but waits up to `timeout` for the file to appear. `on_wait` is called once, if the wait
// is longer than moments.
absl::StatusOr<pb::Credentials> AwaitTokenFile(const std::string& path, absl::Duration timeout,
                                               const std::function<void()>& on_wait,
                                               Clock& clock = Clock::Real());

}  // namespace hvd::rendezvous::security

#endif  // RENDEZVOUS_SECURITY_TOKEN_FILE_H_
