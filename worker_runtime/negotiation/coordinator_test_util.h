// A coordinator's options, times and announcements, for its tests.
#ifndef WORKER_RUNTIME_NEGOTIATION_COORDINATOR_TEST_UTIL_H_
#define WORKER_RUNTIME_NEGOTIATION_COORDINATOR_TEST_UTIL_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "worker_runtime/negotiation/coordinator.h"
#include "worker_runtime/negotiation/signature_test_util.h"

namespace hvd::worker_runtime::negotiation {

inline absl::Time At(int milliseconds) {
  return absl::UnixEpoch() + absl::Milliseconds(milliseconds);
}

inline CoordinatorOptions Options(int size) {
  CoordinatorOptions options;
  options.size = size;
  options.settings.fusion_threshold_bytes = 1024;
  options.settings.cache_capacity = 4;
  options.deadlock_patience = absl::Seconds(5);
  options.settings.stall_warning_time = absl::Seconds(60);
  return options;
}

inline Announcement Submission(const std::vector<TensorSignature>& group, uint64_t seen = 0) {
  Announcement announcement;
  announcement.seen_sequence = seen;
  announcement.groups.emplace_back();
  for (const TensorSignature& signature : group) {
    announcement.groups[0].push_back(AnnouncedTensor{kNoSignatureId, Share(signature)});
  }
  return announcement;
}

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_COORDINATOR_TEST_UTIL_H_
