// Fuzz target: requests of workers, as the daemon checks them.
#include "rendezvous/transport/request_checks.h"
#include "tests/support/fuzzing.h"

namespace hvd::rendezvous::transport {
namespace {

template <typename Request>
void TryAs(absl::string_view bytes) {
  Request request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  const absl::Status fits = Check(request);
  if (!fits.ok()) RequireOneLine(fits);
}

}  // namespace
}  // namespace hvd::rendezvous::transport

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hvd::rendezvous;
  const absl::string_view bytes = hvd::AsText(data, size);
  transport::TryAs<hvd::pb::JoinWorldRequest>(bytes);
  transport::TryAs<hvd::pb::ExchangeRequest>(bytes);
  transport::TryAs<hvd::pb::ReportRequest>(bytes);
  transport::TryAs<hvd::pb::ReportStallRequest>(bytes);
  return 0;
}
