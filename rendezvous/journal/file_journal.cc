#include "rendezvous/journal/file_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

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

constexpr uint32_t kFormat = 1;

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

class FileJournalImpl final : public FileJournal {
 public:
  FileJournalImpl(std::string path, Fd file, absl::Time started)
      : path_(std::move(path)), file_(std::move(file)), started_(started) {}

  // Checks the whole file, cuts off its torn end, and begins it if there is nothing.
  absl::Status Prepare(const pb::journal::Header& wanted) {
    bool has_header = false;
    const absl::StatusOr<int64_t> end =
        ReadRecords(file_.get(), [&](absl::string_view payload) -> absl::Status {
          if (std::exchange(has_header, true)) return Parse(payload).status();
          return TakeHeader(payload, wanted);
        });
    if (!end.ok()) return About(path_, end.status());
    const int64_t size = lseek(file_.get(), 0, SEEK_END);
    bytes_cut_ = size - *end;
    if (bytes_cut_ > 0 &&
        (ftruncate(file_.get(), *end) != 0 || lseek(file_.get(), 0, SEEK_END) != *end)) {
      return absl::InternalError(absl::StrCat("can't shorten ", path_, ": ", strerror(errno)));
    }
    if (has_header) return absl::OkStatus();
    buffer_ = EncodeRecord(wanted.SerializeAsString());
    return Sync();
  }

  absl::Time started() const override { return started_; }
  int64_t bytes_cut() const override { return bytes_cut_; }

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
      failed_ = absl::InternalError(absl::StrCat("can't write ", path_, ": ", strerror(errno)));
    }
    buffer_.clear();
    return failed_;
  }

 private:
  absl::Status TakeHeader(absl::string_view payload, const pb::journal::Header& wanted) {
    pb::journal::Header header;
    if (!header.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
      return absl::DataLossError("is no journal");
    }
    RETURN_IF_ERROR(Check(header, wanted));
    started_ = TimeFromNanoseconds(header.started_ns());
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
  const Fd file_;
  absl::Time started_;
  int64_t bytes_cut_ = 0;
  std::string buffer_;  // records that are not yet written
  absl::Status failed_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FileJournal>> FileJournal::Open(const std::string& path,
                                                               const std::string& job_id,
                                                               const JobSpec& spec,
                                                               absl::Time now) {
  Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid()) {
    return absl::InvalidArgumentError(absl::StrCat("can't open ", path, ": ", strerror(errno)));
  }
  pb::journal::Header header;
  header.set_format(kFormat);
  header.set_version(kVersion);
  header.set_job_id(job_id);
  header.set_started_ns(ToNanoseconds(now));
  *header.mutable_spec() = ToMessage(spec);
  auto journal = std::make_unique<FileJournalImpl>(path, std::move(file),
                                                   TimeFromNanoseconds(header.started_ns()));
  RETURN_IF_ERROR(journal->Prepare(header));
  return journal;
}

}  // namespace hvd
