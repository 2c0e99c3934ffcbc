// For tests: a journal that outlives its "daemon" in memory.
#ifndef RENDEZVOUS_JOURNAL_MEMORY_JOURNAL_TEST_UTIL_H_
#define RENDEZVOUS_JOURNAL_MEMORY_JOURNAL_TEST_UTIL_H_

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rendezvous/journal/journal.h"

namespace hvd {

// Thread-safe, so that a test may look into it meanwhile.
class MemoryJournal final : public Journal {
 public:
  using Record = std::pair<Event, absl::Time>;

  explicit MemoryJournal(absl::Time started) : started_(started) {}

  absl::Time started() const override { return started_; }

  absl::Status Replay(const Visit& visit) override {
    for (const Record& record : records()) visit(record.first, record.second);
    return absl::OkStatus();
  }

  void Append(const Event& event, absl::Time time) override {
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

  // From now on Sync fails so.
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
  absl::Mutex mu_;
  std::vector<Record> appended_ ABSL_GUARDED_BY(mu_);
  std::vector<Record> records_ ABSL_GUARDED_BY(mu_);
  absl::Status error_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hvd

#endif  // RENDEZVOUS_JOURNAL_MEMORY_JOURNAL_TEST_UTIL_H_
