#include "rendezvous/etcd/etcd_journal.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "proto/journal.pb.h"
#include "rendezvous/etcd/reading.h"
#include "rendezvous/journal/event_codec.h"
#include "rendezvous/journal/header_check.h"
#include "rendezvous/journal/spec_codec.h"

namespace hvd::rendezvous::etcd {
namespace {

constexpr uint32_t kFormat = 1;

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("the journal in etcd is damaged: ", what,
                   "; restore etcd from a backup, or start the job anew with another --job: "
                   "training goes on from its checkpoint"));
}

class EtcdJournalImpl final : public EtcdJournal {
 public:
  EtcdJournalImpl(KeyValueStore& store, const Leadership& leadership, const JobKeys& keys,
                  FencedWriter& writer)

      : store_(store), leadership_(leadership), keys_(keys), writer_(writer) {}

  absl::Status Begin(pb::journal::Header header) {
    head_.set_format(kFormat);
    *head_.mutable_header() = std::move(header);
    head_.set_first(1);
    next_ = 1;
    return writer_.Write({Put(keys_.Head(), head_.SerializeAsString())});
  }

  absl::Status TakeUp(const std::string& head, const pb::journal::Header& wanted) {
    if (!head_.ParseFromString(head) || head_.first() == 0) return Damaged("its head");
    if (head_.format() != kFormat) {
      return absl::FailedPreconditionError(absl::StrCat("the journal in etcd has format ",
                                                        head_.format(),
                                                        "; this version understands ", kFormat));
    }
    if (const absl::Status same = journal::CheckHeader(head_.header(), wanted); !same.ok()) {
      return absl::Status(same.code(), absl::StrCat("the journal in etcd ", same.message()));
    }
    // All is read now, so that damage is an error of Open, before anything is served.
    RETURN_IF_ERROR(ReadSnapshot());
    RETURN_IF_ERROR(VisitEvents([](const membership::Event&, absl::Time) {}));
    // Deletes incomplete snapshots of daemons that ended during Compact.
    return writer_.Write({Delete(keys_.SnapshotsBefore(head_.snapshot())),
                          Delete(keys_.SnapshotsAfter(head_.snapshot()))});
  }

  absl::Time started() const override {
    return journal::TimeFromNanoseconds(head_.header().started_ns());
  }

  std::optional<Snapshot> snapshot() const override { return snapshot_; }

  absl::Status Replay(const Visit& visit) override { return VisitEvents(visit); }

  void Append(const membership::Event& event, absl::Time time) override {
    pb::journal::Event message = journal::ToMessage(event, time);
    const size_t size = message.ByteSizeLong();
    // Small events share a value, since each value costs a transaction. A large one gets its own.
    if (values_.empty() || last_size_ + size > kLargestValue) {
      values_.emplace_back();
      last_size_ = 0;
    }
    *values_.back().add_events() = std::move(message);
    last_size_ += size;
  }

  absl::Status Sync() override {
    // One transaction per value, since all values together may exceed etcd's limit. They are
    // written in order, so a crash in between leaves a prefix of the events.
    for (const pb::journal::EtcdEvents& value : std::exchange(values_, {})) {
      RETURN_IF_ERROR(failed_);
      const std::string bytes = value.SerializeAsString();
      failed_ = writer_.Write({Put(keys_.Events(next_), bytes)});
      ++next_;
      size_ += bytes.size();
    }
    return failed_;
  }

  bool WantsSnapshot() const override {
    return size_ >= std::max(kLeastEvents, 2 * snapshot_size_) && size_ >= retry_at_;
  }

  absl::Status Compact(const Snapshot& snapshot) override {
    RETURN_IF_ERROR(failed_);
    retry_at_ = size_ + kLeastEvents;  // if Compact fails, retry after this many further bytes
    pb::journal::EtcdHead head = head_;
    // A new number even after a failed attempt: chunks of that one may be in etcd, and a shorter
    // snapshot with the same number would be read together with them.
    head.set_snapshot(std::max(head_.snapshot(), tried_) + 1);
    tried_ = head.snapshot();
    head.set_first(next_);
    head.set_checksum(Crc32c(snapshot.state));
    head.set_chunks(
        static_cast<uint32_t>((snapshot.state.size() + kLargestValue - 1) / kLargestValue));
    head.mutable_header()->mutable_snapshot()->set_time_ns(journal::ToNanoseconds(snapshot.time));
    for (uint32_t chunk = 0; chunk < head.chunks(); ++chunk) {
      RETURN_IF_ERROR(
          writer_.Write({Put(keys_.Chunk(head.snapshot(), chunk),
                             snapshot.state.substr(chunk * kLargestValue, kLargestValue))}));
    }
    // The switch to the new snapshot is atomic. Before this transaction the old head is valid, and
    // a restarted daemon deletes the new chunks as incomplete.
    RETURN_IF_ERROR(writer_.Write({Put(keys_.Head(), head.SerializeAsString()),
                                   Delete(keys_.EventsBetween(head_.first(), head.first())),
                                   Delete(keys_.SnapshotsBefore(head.snapshot()))}));
    head_ = std::move(head);
    size_ = retry_at_ = 0;
    snapshot_size_ = snapshot.state.size();
    return absl::OkStatus();
  }

 private:
  absl::Status ReadSnapshot() {
    if (head_.snapshot() == 0) return absl::OkStatus();
    std::string state;
    uint32_t chunks = 0;
    RETURN_IF_ERROR(ReadRange(store_, leadership_, keys_.ChunksOf(head_.snapshot()),
                              [&](const etcdserverpb::KeyValue& found) -> absl::Status {
                                state += found.value();
                                ++chunks;
                                return absl::OkStatus();
                              }));
    if (chunks != head_.chunks() || Crc32c(state) != head_.checksum()) {
      return Damaged("its snapshot");
    }
    snapshot_size_ = state.size();
    snapshot_ = Snapshot{std::move(state),
                         journal::TimeFromNanoseconds(head_.header().snapshot().time_ns())};
    return absl::OkStatus();
  }

  // Visits all events. Also sets next_ and size_.
  absl::Status VisitEvents(const Visit& visit) {
    next_ = head_.first();
    size_ = 0;
    return ReadRange(store_, leadership_, keys_.EventsFrom(head_.first()),
                     [&](const etcdserverpb::KeyValue& found) -> absl::Status {
                       // The numbers have no gaps, since events are written in order and deleted
                       // only together. A gap means that somebody else has removed keys.
                       if (found.key() != keys_.Events(next_)) {
                         return Damaged(absl::StrCat(keys_.Events(next_), " is missing"));
                       }
                       ++next_;
                       size_ += found.value().size();
                       return VisitValue(found, visit);
                     });
  }

  static absl::Status VisitValue(const etcdserverpb::KeyValue& found, const Visit& visit) {
    pb::journal::EtcdEvents value;
    if (!value.ParseFromString(found.value())) return Damaged(found.key());
    for (const pb::journal::Event& message : value.events()) {
      const std::optional<membership::Event> event = journal::FromMessage(message);
      if (!event.has_value()) return Damaged(found.key());
      visit(*event, journal::TimeFromNanoseconds(message.time_ns()));
    }
    return absl::OkStatus();
  }

  KeyValueStore& store_;
  const Leadership& leadership_;
  const JobKeys& keys_;
  FencedWriter& writer_;
  pb::journal::EtcdHead head_;  // as in etcd
  std::optional<Snapshot> snapshot_;
  std::vector<pb::journal::EtcdEvents> values_;  // for the next Sync
  size_t last_size_ = 0;                         // size of the last of values_
  uint64_t next_ = 1;                            // number of the next value
  size_t size_ = 0;                              // size of the events in etcd
  size_t snapshot_size_ = 0;
  size_t retry_at_ = 0;  // WantsSnapshot is false until the events have this size
  uint64_t tried_ = 0;   // number of the newest snapshot that Compact has started
  absl::Status failed_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<EtcdJournal>> EtcdJournal::Open(
    KeyValueStore& store, const Leadership& leadership, const JobKeys& keys, FencedWriter& writer,
    const std::string& job_id, const policy::JobSpec& spec, absl::Time now, bool must_exist) {
  pb::journal::Header header;
  header.set_version(kVersion);
  header.set_job_id(job_id);
  header.set_started_ns(journal::ToNanoseconds(now));
  *header.mutable_spec() = journal::ToSpecMessage(spec);
  auto journal = std::make_unique<EtcdJournalImpl>(store, leadership, keys, writer);
  ASSIGN_OR_RETURN(const std::optional<std::string> head, ReadKey(store, leadership, keys.Head()));
  if (!head.has_value() && must_exist) return Damaged("it has gone, but its job was under way");
  RETURN_IF_ERROR(head.has_value() ? journal->TakeUp(*head, header)
                                   : journal->Begin(std::move(header)));
  return journal;
}

}  // namespace hvd::rendezvous::etcd
