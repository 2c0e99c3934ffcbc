#include "rendezvous/journal/file_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/fd.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "proto/journal.pb.h"
#include "rendezvous/journal/event_codec.h"
#include "rendezvous/journal/record_file.h"

namespace hvd {
namespace {

constexpr uint32_t kFormat = 2;
constexpr char kNewSuffix[] = ".new";

absl::Status About(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, " ", status.message()));
}

// Whether a journal that begins so is this job's and can be understood.
absl::Status Check(const pb::journal::Header& found, const pb::journal::Header& wanted) {
  if (found.format() != kFormat || found.version() != kVersion) {
    return absl::FailedPreconditionError(absl::StrCat("was written by horovod ", found.version(),
                                                      " (format ", found.format(), "), this is ",
                                                      kVersion, " (format ", kFormat, ")"));
  }
  if (found.job_id() != wanted.job_id()) {
    return absl::FailedPreconditionError(
        absl::StrCat("belongs to the job ", found.job_id(), ", not to the job ", wanted.job_id()));
  }
  if (found.spec().SerializeAsString() != wanted.spec().SerializeAsString()) {
    return absl::FailedPreconditionError("belongs to a job with other options");
  }
  return absl::OkStatus();
}

absl::Status Failed(const std::string& what, const std::string& path) {
  return absl::InternalError(absl::StrCat("can't ", what, " ", path, ": ", strerror(errno)));
}

// A file of these bytes on disk, under no name that counts yet.
absl::StatusOr<Fd> WriteNew(const std::string& path, const std::string& bytes) {
  Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.valid()) {
    return absl::InvalidArgumentError(absl::StrCat("can't open ", path, ": ", strerror(errno)));
  }
  if (!WriteAll(file.get(), bytes).ok() || fsync(file.get()) != 0) return Failed("write", path);
  return file;
}

absl::Status SyncFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const Fd file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.valid() || fsync(file.get()) != 0) return Failed("sync", folder);
  return absl::OkStatus();
}

class FileJournalImpl final : public FileJournal {
 public:
  FileJournalImpl(std::string path, pb::journal::Header header)
      : path_(std::move(path)), header_(std::move(header)) {}

  // Begins the file.
  absl::Status Begin() { return Replace(); }

  // Takes up the file that there is: checks all of it and cuts off its torn end.
  absl::Status TakeUp(Fd file) {
    file_ = std::move(file);
    bool has_header = false;
    const absl::StatusOr<int64_t> end =
        ReadRecords(file_.get(), [&](absl::string_view payload) -> absl::Status {
          if (std::exchange(has_header, true)) return Parse(payload).status();
          events_begin_ = static_cast<int64_t>(kRecordHeaderBytes + payload.size());
          return TakeHeader(payload);
        });
    if (!end.ok()) return About(path_, end.status());
    // It was whole before it got its name.
    if (!has_header) return About(path_, absl::DataLossError("is damaged at byte 0"));
    const int64_t size = lseek(file_.get(), 0, SEEK_END);
    bytes_cut_ = size - *end;
    end_ = *end;
    if (bytes_cut_ > 0 &&
        (ftruncate(file_.get(), end_) != 0 || lseek(file_.get(), 0, SEEK_END) != end_)) {
      return Failed("shorten", path_);
    }
    return absl::OkStatus();
  }

  absl::Time started() const override { return TimeFromNanoseconds(header_.started_ns()); }
  int64_t bytes_cut() const override { return bytes_cut_; }

  std::optional<Snapshot> snapshot() const override {
    if (!header_.has_snapshot()) return std::nullopt;
    return Snapshot{header_.snapshot().state(), TimeFromNanoseconds(header_.snapshot().time_ns())};
  }

  absl::Status Replay(const Visit& visit) override {
    bool header = true;
    const absl::Status status =
        ReadRecords(file_.get(), [&](absl::string_view payload) -> absl::Status {
          if (std::exchange(header, false)) return absl::OkStatus();
          ASSIGN_OR_RETURN(const auto event, Parse(payload));
          visit(event.first, event.second);
          return absl::OkStatus();
        }).status();
    return status.ok() ? status : About(path_, status);
  }

  void Append(const Event& event, absl::Time time) override {
    buffer_ += EncodeRecord(ToMessage(event, time).SerializeAsString());
  }

  absl::Status Sync() override {
    if (!failed_.ok() || buffer_.empty()) return failed_;
    if (!WriteAll(file_.get(), buffer_).ok() || fdatasync(file_.get()) != 0) {
      failed_ = Failed("write", path_);
    }
    end_ += static_cast<int64_t>(buffer_.size());
    buffer_.clear();
    return failed_;
  }

  bool WantsSnapshot() const override {
    return end_ - events_begin_ >= std::max(kLeastEvents, 2 * events_begin_) && end_ >= retry_at_;
  }

  absl::Status Compact(const Snapshot& snapshot) override {
    RETURN_IF_ERROR(failed_);
    retry_at_ = end_ + kLeastEvents;  // should it fail
    pb::journal::Header before = header_;
    header_.mutable_snapshot()->set_time_ns(ToNanoseconds(snapshot.time));
    header_.mutable_snapshot()->set_state(snapshot.state);
    const absl::Status status = Replace();
    if (!status.ok()) header_ = std::move(before);
    return status;
  }

 private:
  // Puts a file of the header alone in the place of what is there.
  absl::Status Replace() {
    const std::string bytes = EncodeRecord(header_.SerializeAsString());
    const std::string path = path_ + kNewSuffix;
    ASSIGN_OR_RETURN(Fd file, WriteNew(path, bytes));
    if (rename(path.c_str(), path_.c_str()) != 0) return Failed("rename", path);
    // From here on the old file may or may not be what the next daemon finds, so there is no way
    // back to it.
    file_ = std::move(file);
    events_begin_ = end_ = static_cast<int64_t>(bytes.size());
    retry_at_ = 0;
    failed_ = SyncFolderOf(path_);
    return failed_;
  }

  absl::Status TakeHeader(absl::string_view payload) {
    pb::journal::Header found;
    if (!found.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
      return absl::DataLossError("is no journal");
    }
    RETURN_IF_ERROR(Check(found, header_));
    header_ = std::move(found);
    return absl::OkStatus();
  }

  static absl::StatusOr<std::pair<Event, absl::Time>> Parse(absl::string_view payload) {
    pb::journal::Event message;
    std::optional<Event> event;
    if (message.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
      event = FromMessage(message);
    }
    if (!event.has_value()) return absl::DataLossError("has an event of an unknown kind");
    return std::make_pair(*std::move(event), TimeFromNanoseconds(message.time_ns()));
  }

  const std::string path_;
  pb::journal::Header header_;  // as in the file
  Fd file_;
  int64_t events_begin_ = 0, end_ = 0;  // in the file
  int64_t retry_at_ = 0;                // no snapshot is wanted before the file is as long
  int64_t bytes_cut_ = 0;
  std::string buffer_;  // records that are not yet written
  absl::Status failed_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FileJournal>> FileJournal::Open(const std::string& path,
                                                               const std::string& job_id,
                                                               const JobSpec& spec,
                                                               absl::Time now) {
  pb::journal::Header header;
  header.set_format(kFormat);
  header.set_version(kVersion);
  header.set_job_id(job_id);
  header.set_started_ns(ToNanoseconds(now));
  *header.mutable_spec() = ToMessage(spec);
  auto journal = std::make_unique<FileJournalImpl>(path, std::move(header));
  Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.valid() && errno != ENOENT) {
    return absl::InvalidArgumentError(absl::StrCat("can't open ", path, ": ", strerror(errno)));
  }
  (void)unlink(absl::StrCat(path, kNewSuffix).c_str());  // of a daemon that was killed
  const bool is_new = !file.valid() || lseek(file.get(), 0, SEEK_END) == 0;
  RETURN_IF_ERROR(is_new ? journal->Begin() : journal->TakeUp(std::move(file)));
  return journal;
}

}  // namespace hvd
