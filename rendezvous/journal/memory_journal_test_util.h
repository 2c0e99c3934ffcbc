// A journal in memory that outlives its "daemon", for tests.
#ifndef RENDEZVOUS_JOURNAL_MEMORY_JOURNAL_TEST_UTIL_H_
#define RENDEZVOUS_JOURNAL_MEMORY_JOURNAL_TEST_UTIL_H_

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rendezvous/journal/journal.h"

namespace hvd::rendezvous::journal {

// Thread-safe: a test may inspect it meanwhile.
class MemoryJournal final : public Journal {
 public:
  using Record = std::pair<membership::Event, absl::Time>;

  explicit MemoryJournal(absl::Time started) : started_(started) {}

  absl::Time started() const override { return started_; }

  std::optional<Snapshot> snapshot() const override {
    absl::MutexLock lock(&mu_);
    return snapshot_;
  }

  absl::Status Replay(const Visit& visit) override {
    for (const Record& record : records()) visit(record.first, record.second);
    return absl::OkStatus();
  }

  void Append(const membership::Event& event, absl::Time time) override {
    absl::MutexLock lock(&mu_);
    appended_.emplace_back(event, time);
  }

  absl::Status Sync() override {
    absl::MutexLock lock(&mu_);
    if (!error_.ok()) return error_;
    records_.insert(records_.end(), appended_.begin(), appended_.end());
    appended_.clear();
    return absl::OkStatus();
  }

  bool WantsSnapshot() const override {
    absl::MutexLock lock(&mu_);
    return records_.size() >= most_records_;
  }

  absl::Status Compact(const Snapshot& snapshot) override {
    absl::MutexLock lock(&mu_);
    if (!error_.ok()) return error_;
    snapshot_ = snapshot;
    records_.clear();
    return absl::OkStatus();
  }

  // From now on a snapshot is wanted when there are this many records.
  void CompactAfter(size_t records) {
    absl::MutexLock lock(&mu_);
    most_records_ = records;
  }

  // From now on Sync fails with this error.
  void Break(absl::Status error) {
    absl::MutexLock lock(&mu_);
    error_ = std::move(error);
  }

  std::vector<Record> records() {
    absl::MutexLock lock(&mu_);
    return records_;
  }

 private:
  const absl::Time started_;
  mutable absl::Mutex mu_;
  std::optional<Snapshot> snapshot_ ABSL_GUARDED_BY(mu_);
  size_t most_records_ ABSL_GUARDED_BY(mu_) = std::numeric_limits<size_t>::max();
  std::vector<Record> appended_ ABSL_GUARDED_BY(mu_);
  std::vector<Record> records_ ABSL_GUARDED_BY(mu_);
  absl::Status error_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_MEMORY_JOURNAL_TEST_UTIL_H_
