// A job's credentials in a file, for agents that nobody hands them over to.
#ifndef RENDEZVOUS_CREDENTIALS_BUNDLE_H_
#define RENDEZVOUS_CREDENTIALS_BUNDLE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd {

// Owns the file: the destructor removes it. The contents are a message hvd.pb.Credentials in
// Protobuf's text format. Not thread-safe.
class CredentialsBundle {
 public:
  // Writes a new file that only its owner can read.
  //   AlreadyExists: there is such a file; it is left alone.   InvalidArgument: it can't be made
  //   there; says why.
  static absl::StatusOr<std::unique_ptr<CredentialsBundle>> Write(
      const std::string& path, const PeerCredentials& credentials);
  ~CredentialsBundle();
  CredentialsBundle(const CredentialsBundle&) = delete;
  CredentialsBundle& operator=(const CredentialsBundle&) = delete;

 private:
  explicit CredentialsBundle(std::string path);
  const std::string path_;
};

}  // namespace hvd

#endif  // RENDEZVOUS_CREDENTIALS_BUNDLE_H_
