// The newest checkpoint of a job, in words. Pure.
#ifndef RENDEZVOUS_REPORTING_CHECKPOINT_TEXT_H_
#define RENDEZVOUS_REPORTING_CHECKPOINT_TEXT_H_

#include <string>

#include "rendezvous/membership/membership.h"

namespace hvd::rendezvous::reporting {

// "newest checkpoint: commit 12, /c/checkpoint-12-w1.hvd", or that there is none; and why later
// ones could not be written. Empty: the job writes none, as far as is known.
std::string CheckpointText(const membership::Membership::View& view);

// The same for a job that has ended. If it has not succeeded: also how to go on, if training
// had begun, and which newer commit is lost.
std::string LastCheckpointText(const membership::Membership::View& view, bool success);

}  // namespace hvd::rendezvous::reporting

#endif  // RENDEZVOUS_REPORTING_CHECKPOINT_TEXT_H_
