#include "rendezvous/security/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "base/fd.h"
#include "base/os/protected_open.h"
#include "base/status_macros.h"
#include "base/text/duration_text.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "rendezvous/security/certificates.h"
#include "rendezvous/security/credentials_message.h"

namespace hvd::rendezvous::security {
namespace {

// The maximum size of a token file, far more than any credentials need.
constexpr size_t kMostBytes = 1 << 20;

constexpr absl::Duration kLookAgain = absl::Milliseconds(100);
constexpr absl::Duration kMoments = absl::Seconds(2);

// Discards the parser's errors, which it would log: ReadTokenFile reports them.
class Silence : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
};

constexpr absl::string_view kNotOurs = "does not hold what horovod-rendezvousd writes";

// gRPC would only report that it has no address, or that the handshake has failed.
absl::Status CheckUsable(const pb::Credentials& credentials) {
  const std::string& token = credentials.token();
  if (token.empty() || !std::all_of(token.begin(), token.end(), absl::ascii_isgraph)) {
    return absl::InvalidArgumentError("the token is damaged");
  }
  return CheckPem(credentials.ca_certificate(), credentials.certificate(),
                  credentials.private_key());
}

std::string About(const std::string& path, absl::string_view why) {
  return absl::StrCat("--token-file: ", path, " ", why);
}

absl::Status Wrong(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(About(path, why));
}

// Checks that only this user or root can have written the file.
absl::Status CheckOwner(const struct stat& info, const std::string& path) {
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return Wrong(path, absl::StrCat("belongs to another user (uid ", info.st_uid, ")"));
  }
  // Its group may read it: Kubernetes mounts a pod's secrets with such a mode.
  if ((info.st_mode & (S_IRWXO | S_IWGRP)) == 0) return absl::OkStatus();
  return Wrong(path, absl::StrFormat("is open to other users (mode %04o), and it is a secret; "
                                     "chmod 600 closes it",
                                     info.st_mode & 07777));
}

absl::Status Existing(const std::string& path, absl::string_view why) {
  return absl::AlreadyExistsError(absl::StrCat(path, " exists already and is left alone", why));
}

// Checks that it is safe to write secrets to this existing file: a regular file of this user,
// without access for others and without a second hard link.
absl::Status CheckPrivate(int fd, const std::string& path) {
  struct stat info = {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return Existing(path, ": it is not a file");
  if (info.st_uid != geteuid()) {
    return Existing(path, absl::StrCat(": it belongs to another user (uid ", info.st_uid, ")"));
  }
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Existing(path, absl::StrFormat(": it is open to other users (mode %04o), who may know "
                                          "what is in it; if it is a job's, start that job anew",
                                          info.st_mode & 07777));
  }
  // A second name may be the work of another user, who wants a certain file of this user to be
  // written.
  if (info.st_nlink != 1) return Existing(path, ": it has another name too");
  return absl::OkStatus();
}

// Whether the file contains a non-empty prefix of `text`.
bool HoldsPartOf(int fd, const std::string& text) {
  std::string found(text.size() + 1, '\0');
  const ssize_t size = read(fd, found.data(), found.size());
  if (size < 0) return false;
  found.resize(static_cast<size_t>(size));
  // An empty file gives no evidence that it belongs to this job.
  return !found.empty() && absl::StartsWith(text, found);
}

// Opens the file that an earlier daemon of the same job wrote, completely or in part.
absl::StatusOr<Fd> OpenAgain(const std::string& path, const std::string& text) {
  // O_NONBLOCK: a FIFO would be waited for.
  Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.valid()) return Existing(path, absl::StrCat(": it can't be opened: ", strerror(errno)));
  RETURN_IF_ERROR(CheckPrivate(file.get(), path));
  if (!HoldsPartOf(file.get(), text)) return Existing(path, "");
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

}  // namespace

absl::StatusOr<std::string> TokenText(const PeerCredentials& credentials) {
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(ToMessage(credentials), &text)) {
    return absl::InternalError("the credentials can't be printed");
  }
  return text;
}

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Write(const std::string& path,
                                                            const PeerCredentials& credentials) {
  ASSIGN_OR_RETURN(const std::string text, TokenText(credentials));
  Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid() && errno == EEXIST) {
    ASSIGN_OR_RETURN(file, OpenAgain(path, text));
  }
  if (!file.valid()) {
    return absl::InvalidArgumentError(absl::StrCat("can't create ", path, ": ", strerror(errno)));
  }
  // Made before the file is written, so that a failed write removes what it has begun. OpenAgain's
  // file is a prefix of the text, so writing from its start completes it.
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

absl::StatusOr<pb::Credentials> ReadTokenFile(const std::string& path) {
  // O_NONBLOCK: a FIFO would be waited for.
  const absl::StatusOr<Fd> opened = os::OpenProtected(path, O_RDONLY | O_NONBLOCK);
  if (!opened.ok()) {
    const std::string why = absl::StrCat("can't be read: ", opened.status().message());
    return absl::IsNotFound(opened.status()) ? absl::NotFoundError(About(path, why))
                                             : Wrong(path, why);
  }
  const Fd& file = *opened;
  struct stat info = {};
  if (fstat(file.get(), &info) != 0) return Wrong(path, strerror(errno));
  if (!S_ISREG(info.st_mode)) return Wrong(path, "is not a file");
  // By the descriptor, so that the file that was checked is the one that is read. Links of this
  // user or the folder's owner are followed: Kubernetes mounts secrets as such.
  RETURN_IF_ERROR(CheckOwner(info, path));
  std::string text;
  char buffer[16 << 10];
  while (text.size() <= kMostBytes) {
    const IoResult got = ReadSome(file.get(), buffer, sizeof(buffer));
    text.append(buffer, got.bytes);
    if (got.end) break;
  }
  // The daemon creates the file and then writes it with one call. A reader between the two must
  // look again.
  if (text.empty()) return absl::NotFoundError(About(path, "is empty"));
  pb::Credentials credentials;
  google::protobuf::TextFormat::Parser parser;
  Silence silence;
  parser.RecordErrorsTo(&silence);
  if (text.size() > kMostBytes || !parser.ParseFromString(text, &credentials)) {
    return Wrong(path, kNotOurs);
  }
  const absl::Status usable = CheckUsable(credentials);
  if (!usable.ok()) return Wrong(path, absl::StrCat(kNotOurs, ": ", usable.message()));
  return credentials;
}

absl::StatusOr<pb::Credentials> AwaitTokenFile(const std::string& path, absl::Duration timeout,
                                               const std::function<void()>& on_wait, Clock& clock) {
  const absl::Time start = clock.Now();
  bool told = false;
  while (true) {
    absl::StatusOr<pb::Credentials> credentials = ReadTokenFile(path);
    const absl::Duration waited = clock.Now() - start;
    if (!absl::IsNotFound(credentials.status())) return credentials;
    if (waited >= timeout) {
      return absl::NotFoundError(absl::StrCat(credentials.status().message(),
                                              "; waited for it for ", text::DurationText(timeout)));
    }
    if (waited >= kMoments && !std::exchange(told, true)) on_wait();
    // Polled: notifications of a file system (inotify) do not tell of changes that other hosts make
    // on a file server.
    absl::Mutex nobodys;
    absl::MutexLock lock(&nobodys);
    const bool never = false;
    clock.AwaitWithDeadline(nobodys, absl::Condition(&never),
                            clock.Now() + std::min(kLookAgain, timeout - waited));
  }
}

}  // namespace hvd::rendezvous::security
