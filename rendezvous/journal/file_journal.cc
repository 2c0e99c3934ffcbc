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
#include "base/failpoint/failpoint.h"
#include "base/fd.h"
#include "base/os/private_folder.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "proto/journal.pb.h"
#include "rendezvous/journal/batches.h"
#include "rendezvous/journal/event_codec.h"
#include "rendezvous/journal/header_check.h"
#include "rendezvous/journal/record_file.h"
#include "rendezvous/journal/spec_codec.h"

namespace hvd::rendezvous::journal {
namespace {

constexpr uint32_t kFormat = 4;
// Older formats that can be read, if the file has no snapshot.
constexpr uint32_t kFormatOfBatches = 3;
constexpr uint32_t kFormatOfRecords = 2;
constexpr char kName[] = "journal";
constexpr char kNewName[] = "journal.new";

absl::Status About(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, " ", status.message()));
}

// Checks that the journal is in a readable format and belongs to this job.
absl::Status Check(const pb::journal::Header& found, const pb::journal::Header& wanted) {
  // The format is checked first, since CheckHeader may not understand the fields of another one.
  const bool is_old = found.format() == kFormatOfBatches || found.format() == kFormatOfRecords;
  const bool readable = found.format() == kFormat || (is_old && !found.has_snapshot());
  if (!readable || found.version() != kVersion) {
    return absl::FailedPreconditionError(absl::StrCat("was written by horovod ", found.version(),
                                                      " (format ", found.format(), "), this is ",
                                                      kVersion, " (format ", kFormat, ")"));
  }
  return CheckHeader(found, wanted);
}

absl::Status Failed(const std::string& what, const std::string& path) {
  return absl::InternalError(absl::StrCat("can't ", what, " ", path, ": ", strerror(errno)));
}

// Writes and syncs a new file under a temporary name.
absl::StatusOr<Fd> WriteNew(const os::PrivateFolder& folder, const std::string& name,
                            const std::string& bytes) {
  ASSIGN_OR_RETURN(Fd file, folder.NewFile(name));
  if (!WriteAll(file.get(), bytes).ok() || fsync(file.get()) != 0) {
    return Failed("write", folder.PathOf(name));
  }
  return file;
}

// Opens the journal's file. NotFound: it is missing or empty.
absl::StatusOr<Fd> OpenFound(const os::PrivateFolder& folder) {
  ASSIGN_OR_RETURN(Fd file, folder.OpenFile(kName, O_RDWR));
  if (lseek(file.get(), 0, SEEK_END) == 0) return absl::NotFoundError(folder.PathOf(kName));
  return file;
}

class FileJournalImpl final : public FileJournal {
 public:
  FileJournalImpl(const os::PrivateFolder& folder, pb::journal::Header header)
      : folder_(folder), header_(std::move(header)) {}

  // Creates the file.
  absl::Status Begin() { return Replace(); }

  // Opens an existing file: checks all of it and truncates an incomplete last batch.
  absl::Status TakeUp(Fd file) {
    file_ = std::move(file);
    ASSIGN_OR_RETURN(const std::string bytes, Contents());
    const auto header = FirstRecord(bytes);
    // The header is never incomplete: the file was synced before it was renamed to this name.
    if (!header.ok() || !header->has_value()) {
      return About(path(), WithAdvice(absl::DataLossError("is damaged at byte 0")));
    }
    const absl::Status known = TakeHeader(**header);
    if (!known.ok()) return About(path(), known);
    events_begin_ = kRecordHeaderBytes + (*header)->size();
    return header_.format() == kFormatOfRecords ? TakeUpRecords(bytes) : TakeUpBatches(bytes);
  }

  absl::Time started() const override { return TimeFromNanoseconds(header_.started_ns()); }
  int64_t bytes_cut() const override { return bytes_cut_; }

  std::optional<Snapshot> snapshot() const override {
    if (!header_.has_snapshot()) return std::nullopt;
    return Snapshot{header_.snapshot().job(), TimeFromNanoseconds(header_.snapshot().time_ns())};
  }

  absl::Status Replay(const Visit& visit) override {
    ASSIGN_OR_RETURN(const std::string bytes, Contents());
    const auto read =
        ReadBatches(bytes, events_begin_, [&](absl::string_view payload) -> absl::Status {
          ASSIGN_OR_RETURN(const auto event, Parse(payload));
          visit(event.first, event.second);
          return absl::OkStatus();
        });
    return read.ok() ? absl::OkStatus() : AboutEvents(read.status());
  }

  void Append(const membership::Event& event, absl::Time time) override {
    AddToBatch(ToMessage(event, time).SerializeAsString(), buffer_);
  }

  // A failed write or fdatasync is final: the kernel may have dropped the dirty pages, so a later
  // fdatasync could succeed although the data is lost.
  absl::Status Sync() override {
    // A Sync without events is free: the driver calls it for each batch of its queue.
    if (!failed_.ok() || buffer_.empty()) return failed_;
    const std::string batch = EncodeBatch(next_batch_, buffer_);
    failed_ = Write(batch);
    end_ += static_cast<int64_t>(batch.size());
    ++next_batch_;
    buffer_.clear();
    return failed_;
  }

  bool WantsSnapshot() const override {
    const auto begin = static_cast<int64_t>(events_begin_);
    return end_ - begin >= std::max(kLeastEvents, 2 * begin) && end_ >= retry_at_;
  }

  absl::Status Compact(const Snapshot& snapshot) override {
    RETURN_IF_ERROR(failed_);
    retry_at_ = end_ + kLeastEvents;  // if Compact fails, retry after this many further bytes
    pb::journal::Header before = header_;
    header_.mutable_snapshot()->set_time_ns(ToNanoseconds(snapshot.time));
    header_.mutable_snapshot()->set_job(snapshot.state);
    header_.set_format(kFormat);
    const absl::Status status = Replace();
    if (!status.ok()) header_ = std::move(before);
    return status;
  }

 private:
  std::string path() const { return folder_.PathOf(kName); }

  absl::StatusOr<std::string> Contents() const {
    std::string bytes;
    char piece[1 << 16];
    while (true) {
      const ssize_t got = TEMP_FAILURE_RETRY(
          pread(file_.get(), piece, sizeof(piece), static_cast<off_t>(bytes.size())));
      if (got < 0) return Failed("read", path());
      if (got == 0) return bytes;
      bytes.append(piece, static_cast<size_t>(got));
    }
  }

  absl::Status Write(const std::string& batch) {
    RETURN_IF_ERROR(FAILPOINT_STATUS("daemon.journal.encoded"));
    if (!WriteAll(file_.get(), batch).ok()) return Failed("write", path());
    RETURN_IF_ERROR(FAILPOINT_STATUS("daemon.journal.written"));
    if (fdatasync(file_.get()) != 0) return Failed("write", path());
    FAILPOINT("daemon.journal.synced");
    return absl::OkStatus();
  }

  // Adds the path and the remedy to an error of reading events.
  absl::Status AboutEvents(const absl::Status& status) const {
    return About(path(), WithAdvice(status));
  }

  absl::Status TakeUpBatches(absl::string_view bytes) {
    const auto read = ReadBatches(
        bytes, events_begin_, [](absl::string_view payload) { return Parse(payload).status(); });
    if (!read.ok()) return AboutEvents(read.status());
    next_batch_ = read->next;
    end_ = static_cast<int64_t>(read->end);
    bytes_cut_ = static_cast<int64_t>(bytes.size()) - end_;
    // The rest would lie behind the next batch, where it would be damage in the middle of the file.
    const bool cut = bytes_cut_ == 0 || ftruncate(file_.get(), end_) == 0;
    if (!cut || lseek(file_.get(), end_, SEEK_SET) != end_) return Failed("shorten", path());
    return absl::OkStatus();
  }

  // Opens a file of format 2 and converts it to the present format.
  absl::Status TakeUpRecords(absl::string_view bytes) {
    const auto read =
        ReadRecords(bytes, events_begin_, [this](absl::string_view payload) -> absl::Status {
          AddToBatch(payload, buffer_);
          return Parse(payload).status();
        });
    if (!read.ok()) return AboutEvents(read.status());
    bytes_cut_ = static_cast<int64_t>(bytes.size() - *read);
    header_.set_format(kFormat);
    return Replace();
  }

  // Replaces the file atomically with a new one that has the header and the buffered events. Only
  // TakeUpRecords has such events: see Journal::Compact.
  absl::Status Replace() {
    const std::string header = EncodeRecord(header_.SerializeAsString());
    const std::string events = buffer_.empty() ? "" : EncodeBatch(1, buffer_);
    // Synced before the rename. Otherwise a power cut could leave the final name with an empty
    // file.
    ASSIGN_OR_RETURN(Fd file, WriteNew(folder_, kNewName, header + events));
    RETURN_IF_ERROR(FAILPOINT_STATUS("daemon.snapshot.written"));
    RETURN_IF_ERROR(folder_.Rename(kNewName, kName));
    // The rename is not durable before folder_.Sync(): after a crash the next daemon may find
    // either file. So the old file must not be used any more, and if Sync fails the journal fails.
    file_ = std::move(file);
    events_begin_ = header.size();
    end_ = static_cast<int64_t>(header.size() + events.size());
    next_batch_ = events.empty() ? 1 : 2;
    buffer_.clear();
    retry_at_ = 0;
    failed_ = FAILPOINT_STATUS("daemon.snapshot.renamed");
    failed_.Update(folder_.Sync());
    FAILPOINT("daemon.snapshot.durable");
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

  // Adds the remedy to a DataLoss error.
  absl::Status WithAdvice(const absl::Status& status) const {
    if (!absl::IsDataLoss(status)) return status;
    return absl::DataLossError(
        absl::StrCat(status.message(),
                     ", and no crash does that; put back a copy of the folder, or start the "
                     "job anew, with another one: training goes on from its checkpoint"));
  }

  static absl::StatusOr<std::pair<membership::Event, absl::Time>> Parse(absl::string_view payload) {
    pb::journal::Event message;
    std::optional<membership::Event> event;
    if (message.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
      event = FromMessage(message);
    }
    if (!event.has_value()) return absl::DataLossError("has an event of an unknown kind");
    return std::make_pair(*std::move(event), TimeFromNanoseconds(message.time_ns()));
  }

  const os::PrivateFolder& folder_;
  pb::journal::Header header_;  // as in the file
  Fd file_;
  size_t events_begin_ = 0;  // offset in the file, like end_
  int64_t end_ = 0;
  int64_t retry_at_ = 0;  // WantsSnapshot is false until the file has this size
  int64_t bytes_cut_ = 0;
  uint64_t next_batch_ = 1;
  std::string buffer_;  // contents of the batch for the next Sync
  absl::Status failed_;
};

}  // namespace

absl::StatusOr<bool> FileJournal::IsIn(const os::PrivateFolder& folder) {
  const absl::Status found = OpenFound(folder).status();
  if (absl::IsNotFound(found)) return false;
  RETURN_IF_ERROR(found);
  return true;
}

absl::StatusOr<std::unique_ptr<FileJournal>> FileJournal::Open(const os::PrivateFolder& folder,
                                                               const std::string& job_id,
                                                               const policy::JobSpec& spec,
                                                               absl::Time now) {
  pb::journal::Header header;
  header.set_format(kFormat);
  header.set_version(kVersion);
  header.set_job_id(job_id);
  header.set_started_ns(ToNanoseconds(now));
  *header.mutable_spec() = ToSpecMessage(spec);
  auto journal = std::make_unique<FileJournalImpl>(folder, std::move(header));
  absl::StatusOr<Fd> file = OpenFound(folder);
  // An unreadable journal must not be taken for a missing one: Begin would replace it.
  if (!file.ok() && !absl::IsNotFound(file.status())) return file.status();
  folder.Remove(kNewName);  // left by a daemon that was killed during Replace
  RETURN_IF_ERROR(file.ok() ? journal->TakeUp(*std::move(file)) : journal->Begin());
  return journal;
}

}  // namespace hvd::rendezvous::journal
