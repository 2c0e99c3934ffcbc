#include "launcher/agent/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/fd.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace hvd {
namespace {

// Far more than any credentials.
constexpr size_t kMostBytes = 1 << 20;

// What is wrong is said by ReadTokenFile; the parser would log it.
class Silence : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
};

absl::Status Wrong(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("--token-file: ", path, " ", why));
}

}  // namespace

absl::StatusOr<pb::Credentials> ReadTokenFile(const std::string& path) {
  // O_NONBLOCK: a FIFO would be waited for.
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info = {};
  if (!file.valid() || fstat(file.get(), &info) != 0) {
    return Wrong(path, absl::StrCat("can't be read: ", strerror(errno)));
  }
  if (!S_ISREG(info.st_mode)) return Wrong(path, "is not a file");
  // The group may read it: so does Kubernetes give a pod its secrets.
  if ((info.st_mode & (S_IRWXO | S_IWGRP)) != 0) {
    return Wrong(path, absl::StrFormat("is open to other users (mode %04o), and it is a secret; "
                                       "chmod 600 closes it",
                                       info.st_mode & 07777));
  }
  std::string text;
  char buffer[16 << 10];
  while (text.size() <= kMostBytes) {
    const IoResult got = ReadSome(file.get(), buffer, sizeof(buffer));
    text.append(buffer, got.bytes);
    if (got.end) break;
  }
  pb::Credentials credentials;
  google::protobuf::TextFormat::Parser parser;
  Silence silence;
  parser.RecordErrorsTo(&silence);
  if (text.size() > kMostBytes || !parser.ParseFromString(text, &credentials) ||
      credentials.token().empty() || credentials.ca_certificate().empty() ||
      credentials.certificate().empty() || credentials.private_key().empty()) {
    return Wrong(path, "does not hold what horovod-rendezvousd writes");
  }
  return credentials;
}

}  // namespace hvd
