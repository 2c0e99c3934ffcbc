// The table of how costs grow with the size of a job: the daemon's decisions, the ranks' agreement,
// connections, journal and parsers.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/links/neighbours.h"
#include "gtest/gtest.h"
#include "launcher/discovery/host_list.h"
#include "rendezvous/placement/elastic_ranks.h"
#include "tests/complexity/growth.h"
#include "tests/complexity/operation_count.h"
#include "tests/complexity/played_job.h"
#include "worker_runtime/negotiation/coordinator.h"
#include "worker_runtime/negotiation/known_signatures.h"
#include "worker_runtime/negotiation/message_codec.h"
#include "worker_runtime/negotiation/signature_test_util.h"

namespace hvd {
namespace {

using worker_runtime::negotiation::AnnouncedTensor;
using worker_runtime::negotiation::Announcement;
using worker_runtime::negotiation::Coordinator;
using worker_runtime::negotiation::CoordinatorOptions;
using worker_runtime::negotiation::Encode;
using worker_runtime::negotiation::KnownSignatures;
using worker_runtime::negotiation::OpKind;
using worker_runtime::negotiation::SignaturePtr;

constexpr int64_t kHosts = 256;
constexpr int64_t kMany = 256;
constexpr int64_t kFew = 8;

// ---- The daemon's decisions, for N hosts

template <typename Change>
std::function<Cost(int64_t)> InJob(Change change) {
  return [change](int64_t hosts) {
    PlayedJob job(hosts);
    return (job.*change)();
  };
}

std::vector<Row> DaemonRows() {
  const Growths linear = {Growth::kLinearithmic, Growth::kLinear, Growth::kLinear};
  // N events, each of which looks at N hosts: some 15 operations a pair, which at 1,000 hosts take
  // 10 ms in all.
  const Growths each_looks_at_all = {Growth::kQuadratic, Growth::kLinear, Growth::kLinear};
  return {
      {"first world of N hosts", kHosts, each_looks_at_all,
       [](int64_t n) { return PlayedJob(n).formed(); }},
      {"world after a failure, N hosts", kHosts, linear, InJob(&PlayedJob::FailWorker)},
      {"drain of one of N hosts", kHosts, linear, InJob(&PlayedJob::DrainHost)},
      {"one more than N hosts", kHosts, linear, InJob(&PlayedJob::AddHost)},
      {"exchange among N hosts", kHosts, linear, InJob(&PlayedJob::Exchange)},
      {"end of a job of N hosts", kHosts, linear, InJob(&PlayedJob::Finish)},
      {"stop at a commit, N hosts", kHosts, each_looks_at_all, InJob(&PlayedJob::StopAtCommit)},
      {"status while N hosts leave", kHosts, linear, InJob(&PlayedJob::Describe)},
      {"snapshot of a job of N hosts", kHosts, linear, InJob(&PlayedJob::Save)},
      {"report of progress, N hosts",
       kHosts,
       {Growth::kLogarithmic},
       InJob(&PlayedJob::ReportProgress)},
      {"watch of one worker, N hosts",
       kHosts,
       {Growth::kLogarithmic},
       InJob(&PlayedJob::WatchAgain)},
  };
}

// ---- The ranks' agreement

struct Step {
  int64_t ranks = kFew;
  int64_t tensors = kFew;
  int64_t groups = 0;  // that the tensors are submitted in; 0: alone
  OpKind kind = OpKind::kAllReduce;
  bool is_repeated = false;  // the signatures are known
};

Announcement AnnouncementOf(const Step& step, const KnownSignatures& known) {
  Announcement announcement;
  for (int64_t i = 0; i < step.tensors; ++i) {
    const SignaturePtr signature =
        worker_runtime::negotiation::Sig(absl::StrCat("gradient ", i), {16}, step.kind);
    const auto id = known.Find(*signature);
    if (announcement.groups.empty() || step.groups == 0 || i % (step.tensors / step.groups) == 0) {
      announcement.groups.emplace_back();
    }
    announcement.groups.back().push_back(AnnouncedTensor{id, id == 0 ? signature : nullptr});
  }
  return announcement;
}

// Messages and bytes are those of one rank other than 0; operations are the coordinator's.
Cost RunStep(Coordinator& coordinator, const Step& step, KnownSignatures& known) {
  Cost cost;
  const Announcement announcement = AnnouncementOf(step, known);
  cost.bytes += static_cast<int64_t>(Encode(announcement).size());
  const int64_t before = OperationCount();
  for (int64_t rank = 0; rank < step.ranks; ++rank) {
    EXPECT_TRUE(coordinator.Announce(static_cast<int>(rank), announcement, absl::UnixEpoch()).ok());
  }
  ++cost.messages;
  size_t planned = 0;
  while (const auto plan = coordinator.NextPlan(absl::UnixEpoch())) {
    ++cost.messages;
    cost.bytes += static_cast<int64_t>(Encode(*plan, 1).size());
    known.Apply(*plan);
    for (const auto& batch : plan->batches) planned += batch.size();
  }
  cost.operations = OperationCount() - before;
  EXPECT_EQ(planned, static_cast<size_t>(step.tensors));
  return cost;
}

Cost CostOf(const Step& step) {
  CoordinatorOptions options;
  options.size = static_cast<int>(step.ranks);
  options.settings.cycle_time = absl::ZeroDuration();
  options.settings.cache_capacity = 100000;
  Coordinator coordinator(options);
  KnownSignatures known;
  const Cost first = RunStep(coordinator, step, known);
  return step.is_repeated ? RunStep(coordinator, step, known) : first;
}

template <typename Number>
std::function<Cost(int64_t)> Doubled(Step step, Number Step::*number) {
  return [=](int64_t n) {
    Step own = step;
    own.*number = n;
    return CostOf(own);
  };
}

std::vector<Row> AgreementRows() {
  const Growths by_rank = {Growth::kLinear};
  const Growths by_tensor = {Growth::kLinear, Growth::kConstant, Growth::kLinear};
  const Step first, repeated = {kFew, kFew, 0, OpKind::kAllReduce, true};
  const Step gathers = {kFew, kFew, 0, OpKind::kAllGather, true};
  const Step many = {kFew, 4 * kMany, 1, OpKind::kAllReduce, true};
  return {
      {"first step of N ranks", kMany, by_rank, Doubled(first, &Step::ranks)},
      {"first step of N tensors", kMany, by_tensor, Doubled(first, &Step::tensors)},
      {"later step of N ranks", kMany, by_rank, Doubled(repeated, &Step::ranks)},
      {"later step of N tensors", kMany, by_tensor, Doubled(repeated, &Step::tensors)},
      {"allgathers of N ranks",
       kMany,
       {Growth::kLinear, Growth::kConstant, Growth::kLinear},
       Doubled(gathers, &Step::ranks)},
      {"tensors in N groups",
       kMany,
       {Growth::kLinear, Growth::kConstant, Growth::kLinear},
       Doubled(many, &Step::groups)},
  };
}

// ---- Others

Cost Connections(int64_t n) {
  const int size = static_cast<int>(n);
  size_t most = 0;
  for (int rank = 0; rank < size; ++rank) {
    most = std::max(most, collectives::links::StepNeighbours(rank, size).size());
  }
  return {0, static_cast<int64_t>(most), 0};
}

Cost Placing(int64_t n) {
  std::vector<rendezvous::placement::Candidate> candidates;
  for (int64_t i = 0; i < n; ++i) {
    // Mixed, as after many changes.
    candidates.push_back({static_cast<int>(i * 7 % (n / 4)), i, static_cast<int>(i * 5 % n), 1});
  }
  const int64_t before = OperationCount();
  rendezvous::placement::AssignElasticRanks(candidates, static_cast<int>(n));
  return {OperationCount() - before};
}

Cost ParsingHosts(int64_t n) {
  std::string list = "host-0:4";
  for (int64_t i = 1; i < n; ++i) absl::StrAppend(&list, ",host-", i, ":4");
  const int64_t before = OperationCount();
  EXPECT_TRUE(launcher::discovery::ParseHostList(list).ok());
  return {OperationCount() - before};
}

std::vector<Row> OtherRows() {
  return {
      {"connections of a rank among N",
       kMany,
       {Growth::kConstant, Growth::kLogarithmic},
       Connections},
      {"placing N workers", 4 * kMany, {Growth::kLinearithmic}, Placing},
      {"parsing N hosts", kMany, {Growth::kLinear}, ParsingHosts},
  };
}

class ComplexityTest : public testing::TestWithParam<Row> {};

TEST_P(ComplexityTest, GrowsNoFasterThanItMay) { EXPECT_EQ(TooFast(GetParam()), ""); }

INSTANTIATE_TEST_SUITE_P(Daemon, ComplexityTest, testing::ValuesIn(DaemonRows()));
INSTANTIATE_TEST_SUITE_P(Agreement, ComplexityTest, testing::ValuesIn(AgreementRows()));
INSTANTIATE_TEST_SUITE_P(Other, ComplexityTest, testing::ValuesIn(OtherRows()));

}  // namespace
}  // namespace hvd
