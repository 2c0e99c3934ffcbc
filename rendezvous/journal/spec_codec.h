// Conversion between job specs and their Protobuf messages.
#ifndef RENDEZVOUS_JOURNAL_SPEC_CODEC_H_
#define RENDEZVOUS_JOURNAL_SPEC_CODEC_H_

#include "proto/journal.pb.h"
#include "rendezvous/policy/job_spec.h"

namespace hvd::rendezvous::journal {

// Lossless, except that durations are truncated to whole nanoseconds.
pb::journal::JobSpec ToSpecMessage(const policy::JobSpec& spec);
policy::JobSpec FromSpecMessage(const pb::journal::JobSpec& message);

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_SPEC_CODEC_H_
