// A job's credentials in a file, for agents that nobody hands them over to.
#ifndef RENDEZVOUS_SECURITY_TOKEN_FILE_H_
#define RENDEZVOUS_SECURITY_TOKEN_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::rendezvous::security {

// Owns the file: the destructor removes it. The contents are a message hvd.pb.Credentials in
// Protobuf's text format. Not thread-safe.
class TokenFile {
 public:
  // Writes a file that only its owner can read. One that is there already and has these same
  // credentials, even if cut short, is taken over.
  //   AlreadyExists: there is another file; it is left alone.   InvalidArgument: it can't be made
  //   there; says why.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Write(const std::string& path,
                                                          const PeerCredentials& credentials);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  // Lets the file be when this object goes.
  void Keep() { keep_ = true; }

 private:
  explicit TokenFile(std::string path);
  const std::string path_;
  bool keep_ = false;
};

}  // namespace hvd::rendezvous::security

#endif  // RENDEZVOUS_SECURITY_TOKEN_FILE_H_
