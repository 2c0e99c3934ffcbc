// The file with a job's credentials, for agents that are not given them by a launcher: its writer,
// the daemon, and its readers.
#ifndef RENDEZVOUS_SECURITY_TOKEN_FILE_H_
#define RENDEZVOUS_SECURITY_TOKEN_FILE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "proto/agent.pb.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::rendezvous::security {

// The text of such a file: a message hvd.pb.Credentials in Protobuf's text format.
// Errors:
//   - Internal: it can't be printed.
absl::StatusOr<std::string> TokenText(const PeerCredentials& credentials);

// Owns the file: the destructor removes it. Not thread-safe.
class TokenFile {
 public:
  // Writes a file that only its owner can read. An existing file with these same credentials, even
  // if truncated, is taken over, if it is this user's and no one else can have read it.
  // Errors:
  //   - AlreadyExists: there is something else; it is left alone. Says why.
  //   - InvalidArgument: it can't be made there; says why.
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

// Reads a message hvd.pb.Credentials in Protobuf's text format.
// Errors:
//   - NotFound: it is not there, or empty.
//   - InvalidArgument: it can't be read, is another user's (but root's) or open to others (its
//     group may read it), or holds something else; one line that names the file.
absl::StatusOr<pb::Credentials> ReadTokenFile(const std::string& path);

// The same, but retries until the file is there, for at most `timeout`. `on_wait` is called once,
// if it takes more than moments.
absl::StatusOr<pb::Credentials> AwaitTokenFile(const std::string& path, absl::Duration timeout,
                                               const std::function<void()>& on_wait,
                                               Clock& clock = Clock::Real());

}  // namespace hvd::rendezvous::security

#endif  // RENDEZVOUS_SECURITY_TOKEN_FILE_H_
