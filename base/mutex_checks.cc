#include "base/mutex_checks.h"

#include "absl/synchronization/mutex.h"

namespace hvd {

void SwitchOffMutexChecks() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

}  // namespace hvd
