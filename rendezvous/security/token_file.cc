#include "rendezvous/security/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/fd.h"
#include "base/status_macros.h"
#include "google/protobuf/text_format.h"
#include "proto/agent.pb.h"

namespace hvd::rendezvous::security {
namespace {

absl::StatusOr<std::string> Print(const PeerCredentials& credentials) {
  pb::Credentials message;
  message.set_token(credentials.token);
  message.set_ca_certificate(credentials.ca_certificate);
  message.set_certificate(credentials.certificate);
  message.set_private_key(credentials.private_key);
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(message, &text)) {
    return absl::InternalError("the credentials can't be printed");
  }
  return text;
}

// Whether what is in the file is `text` or its beginning.
bool HoldsPartOf(int fd, const std::string& text) {
  std::string found(text.size() + 1, '\0');
  const ssize_t size = read(fd, found.data(), found.size());
  if (size < 0) return false;
  found.resize(static_cast<size_t>(size));
  // A file that is empty says nothing about whose it is.
  return !found.empty() && absl::StartsWith(text, found);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Write(const std::string& path,
                                                            const PeerCredentials& credentials) {
  ASSIGN_OR_RETURN(const std::string text, Print(credentials));
  Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid() && errno == EEXIST) {
    file.reset(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file.valid() || !HoldsPartOf(file.get(), text)) {
      return absl::AlreadyExistsError(absl::StrCat(path, " exists already and is left alone"));
    }
    lseek(file.get(), 0, SEEK_SET);
  }
  if (!file.valid()) {
    return absl::InvalidArgumentError(absl::StrCat("can't create ", path, ": ", strerror(errno)));
  }
  std::unique_ptr<TokenFile> result(new TokenFile(path));
  if (!WriteAll(file.get(), text).ok()) {
    return absl::InvalidArgumentError(absl::StrCat("can't write ", path, ": ", strerror(errno)));
  }
  return result;
}

TokenFile::TokenFile(std::string path) : path_(std::move(path)) {}

TokenFile::~TokenFile() {
  if (!keep_) unlink(path_.c_str());
}

}  // namespace hvd::rendezvous::security
