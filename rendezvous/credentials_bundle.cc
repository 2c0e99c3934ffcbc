#include "rendezvous/credentials_bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/fd.h"
#include "google/protobuf/text_format.h"
#include "proto/agent.pb.h"

namespace hvd {

absl::StatusOr<std::unique_ptr<CredentialsBundle>> CredentialsBundle::Write(
    const std::string& path, const PeerCredentials& credentials) {
  pb::Credentials message;
  message.set_token(credentials.token);
  message.set_ca_certificate(credentials.ca_certificate);
  message.set_certificate(credentials.certificate);
  message.set_private_key(credentials.private_key);
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(message, &text)) {
    return absl::InternalError("the credentials can't be printed");
  }
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid() && errno == EEXIST) {
    return absl::AlreadyExistsError(absl::StrCat(path, " exists already and is left alone"));
  }
  if (!file.valid()) {
    return absl::InvalidArgumentError(absl::StrCat("can't create ", path, ": ", strerror(errno)));
  }
  std::unique_ptr<CredentialsBundle> bundle(new CredentialsBundle(path));
  if (!WriteAll(file.get(), text).ok()) {
    return absl::InvalidArgumentError(absl::StrCat("can't write ", path, ": ", strerror(errno)));
  }
  return bundle;
}

CredentialsBundle::CredentialsBundle(std::string path) : path_(std::move(path)) {}

CredentialsBundle::~CredentialsBundle() { unlink(path_.c_str()); }

}  // namespace hvd
