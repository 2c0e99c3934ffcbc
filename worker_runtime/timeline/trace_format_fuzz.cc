// Fuzz target: chunks of a timeline, as ranks send them to rank 0.
#include "base/text/json.h"
#include "tests/support/fuzzing.h"
#include "worker_runtime/timeline/timeline_test_util.h"
#include "worker_runtime/timeline/trace_format.h"

// Chunks, each after its length.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hvd::Require;
  namespace timeline = hvd::worker_runtime::timeline;
  hvd::InputParts parts(data, size);
  timeline::TraceFormat format({"a", "b"}, absl::FromUnixSeconds(1600000000));
  std::string trace = format.Begin();
  for (int rank = 0; !parts.empty(); ++rank) {
    const auto added = format.Add(rank % 3, parts.Text());
    if (!added.ok()) hvd::RequireOneLine(added.status());
    if (added.ok()) trace += *added;
  }
  trace += format.End();
  Require(hvd::text::IsUtf8(trace), "the trace is UTF-8");
  Require(!timeline::ParseTrace(trace).empty(), "the trace is JSON");
  return 0;
}
