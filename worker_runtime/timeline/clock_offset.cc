#include "worker_runtime/timeline/clock_offset.h"

#include "base/status_macros.h"

namespace hvd::worker_runtime::timeline {
namespace {

constexpr int kRounds = 8;

// Rank 0's side of a measurement: the member asks in the first exchange and receives the time in
// the second. The other bytes of the exchanges have no meaning.
absl::Status Answer(collectives::Communicator& communicator, int member, Clock& clock,
                    const collectives::CallOptions& options) {
  int64_t nothing = 0, question;
  RETURN_IF_ERROR(communicator.SendReceive(member, &nothing, &question, sizeof(question), options));
  const int64_t now = absl::ToUnixNanos(clock.Now());
  return communicator.SendReceive(member, &now, &question, sizeof(now), options);
}

absl::StatusOr<ClockOffset> Ask(collectives::Communicator& communicator, Clock& clock,
                                const collectives::CallOptions& options) {
  int64_t nothing = 0, answer = 0;
  const absl::Time asked = clock.Now();
  RETURN_IF_ERROR(communicator.SendReceive(0, &nothing, &answer, sizeof(answer), options));
  RETURN_IF_ERROR(communicator.SendReceive(0, &nothing, &answer, sizeof(answer), options));
  // Rank 0 has read its clock at some time between the question and the answer. The middle is the
  // best estimate, with an error of half the round trip at most.
  const absl::Duration half = (clock.Now() - asked) / 2;
  return ClockOffset{absl::FromUnixNanos(answer) - (asked + half), half};
}

absl::StatusOr<ClockOffset> Measure(collectives::Communicator& communicator, Clock& clock,
                                    const collectives::CallOptions& options) {
  if (communicator.rank() == 0) {
    // One member after another, so that no answer waits behind that of another member.
    for (int member = 1; member < communicator.size(); ++member) {
      for (int i = 0; i < kRounds; ++i) {
        RETURN_IF_ERROR(Answer(communicator, member, clock, options));
      }
    }
    return ClockOffset{absl::ZeroDuration(), absl::ZeroDuration()};
  }
  ClockOffset best;
  for (int i = 0; i < kRounds; ++i) {
    ASSIGN_OR_RETURN(const ClockOffset offset, Ask(communicator, clock, options));
    if (offset.uncertainty < best.uncertainty) best = offset;
  }
  return best;
}

}  // namespace

absl::StatusOr<ClockOffset> MeasureClockOffset(collectives::Communicator& communicator,
                                               Clock& clock,
                                               const collectives::CallOptions& options) {
  absl::StatusOr<ClockOffset> offset = Measure(communicator, clock, options);
  if (absl::IsUnimplemented(offset.status())) return ClockOffset();
  return offset;
}

}  // namespace hvd::worker_runtime::timeline
