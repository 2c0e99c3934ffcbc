#include "rendezvous/transport/request_checks.h"

#include <cstdint>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace hvd::rendezvous::transport {
namespace {

template <typename Request>
void ExpectRefused(const Request& request, const std::string& text) {
  const absl::Status status = Check(request);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find(text), std::string::npos) << status;
}

pb::JoinWorldRequest Join() {
  pb::JoinWorldRequest request;
  request.set_address("10.0.0.1");
  request.set_port(4000);
  return request;
}

TEST(RequestChecksTest, Join_PortsOutOfRange_AreRefused) {
  pb::JoinWorldRequest request = Join();
  for (const uint32_t port : {1u, 65535u}) {
    request.set_port(port);
    EXPECT_EQ(Check(request), absl::OkStatus());
  }
  for (const uint32_t port : {0u, 65536u, 1u << 30, (1u << 30) + 1, 1u << 31, ~0u}) {
    request.set_port(port);
    ExpectRefused(request, "the port is " + std::to_string(port) + "; from 1 to 65535");
  }
}

TEST(RequestChecksTest, Join_AddressThatIsNotNumeric_IsRefused) {
  pb::JoinWorldRequest request = Join();
  request.set_address("fd00::1");
  EXPECT_EQ(Check(request), absl::OkStatus());
  for (const char* address : {"", "node1", "10.0.0.1:80", "[fd00::1]", "10.0.0.1\n"}) {
    request.set_address(address);
    ExpectRefused(request, "the worker's address is");
  }
  request.set_address(std::string(1 << 20, 'a'));
  EXPECT_LT(Check(request).message().size(), 16u << 10);
}

TEST(RequestChecksTest, Join_SumsThatWouldOverflow_AreRefused) {
  pb::JoinWorldRequest request = Join();
  request.set_lost_time_ms(std::numeric_limits<uint64_t>::max());
  ExpectRefused(request, "the lost time in ms is 18446744073709551615");
  request.set_lost_time_ms(0);
  request.set_lost_steps(uint64_t{1} << 63);
  ExpectRefused(request, "the number of lost steps is 9223372036854775808");
}

TEST(RequestChecksTest, Exchange_KeyValueAndSelection) {
  pb::ExchangeRequest request;
  ExpectRefused(request, "an exchange needs a key");
  request.set_key("k");
  request.set_value(std::string((1 << 20) + 1, 'x'));
  ExpectRefused(request, "more than 1 MiB");
  request.set_value("v");
  for (const uint32_t rank : {2, 0, 1}) request.mutable_selection()->add_ranks(rank);
  EXPECT_EQ(Check(request), absl::OkStatus());
  request.mutable_selection()->add_ranks(0);
  ExpectRefused(request, "has rank 0 twice");
}

TEST(RequestChecksTest, Progress_AgeThatWouldOverflow_IsRefused) {
  pb::ReportRequest request;
  request.mutable_progress()->set_commit_age_ms(5000);
  EXPECT_EQ(Check(request), absl::OkStatus());
  request.mutable_progress()->set_commit_age_ms(uint64_t{1} << 63);
  ExpectRefused(request, "the commit's age in ms is 9223372036854775808");
}

TEST(RequestChecksTest, Stall_RanksThatCantBe_AreRefused) {
  pb::ReportStallRequest request;
  pb::StalledOperations& waiting = *request.add_waiting();
  waiting.add_missing(7);
  EXPECT_EQ(Check(request), absl::OkStatus());
  waiting.add_missing(-1);
  ExpectRefused(request, "a missing rank is -1");
  waiting.set_missing(1, std::numeric_limits<int32_t>::max());
  ExpectRefused(request, "a missing rank is 2147483647");
}

}  // namespace
}  // namespace hvd::rendezvous::transport
