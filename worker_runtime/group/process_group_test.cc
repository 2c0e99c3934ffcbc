#include "worker_runtime/group/process_group.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>  // NOLINT: the ranks
#include <vector>

#include "collectives/shm/shm_backend.h"
#include "collectives/tcp/tcp_backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/group/process_groups.h"
#include "worker_runtime/group/testing/memory_store.h"

namespace hvd::worker_runtime::group {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The backends through which groups connect: with the control messages in shared memory, and over
// TCP.
class ProcessGroupTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<collectives::Backend> MakeBackend() const {
    if (GetParam() == "shm") return collectives::shm::MakeShmBackend();
    return collectives::tcp::MakeTcpBackend();
  }

  // Runs body(group) on a thread for each rank of one group.
  void OnRanks(int size, const std::function<void(ProcessGroup&, int rank)>& body,
               absl::Duration timeout = absl::Seconds(60), const std::string& name = "") const {
    MemoryStore store;
    const std::unique_ptr<collectives::Backend> backend = MakeBackend();
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < size; ++rank) {
      ranks.emplace_back([&, rank] {
        const ProcessGroupOptions options{rank, size, "127.0.0.1", name, timeout};
        auto group =
            ProcessGroup::Connect(options, {}, *backend, GetParam() == "shm" ? "host" : "", store);
        ASSERT_TRUE(group.ok()) << group.status();
        body(**group, rank);
      });
    }
    for (std::thread& rank : ranks) rank.join();
  }

  static engine::TensorRequest Sum(const std::string& name, std::vector<float>& values) {
    engine::TensorRequest request;
    request.name = name;
    request.shape = {static_cast<int64_t>(values.size())};
    request.input = request.output = values.data();
    return request;
  }

  static absl::Status Run(ProcessGroup& group, const engine::TensorRequest& request) {
    auto handle = group.engine()->Submit({request});
    return handle.ok() ? group.engine()->Wait(*handle) : handle.status();
  }
};

TEST_P(ProcessGroupTest, Operations_RunAmongTheMembers) {
  OnRanks(3, [](ProcessGroup& group, int rank) {
    std::vector<float> values = {1.0f * rank, 10};
    EXPECT_EQ(Run(group, Sum("x", values)), absl::OkStatus());
    EXPECT_EQ(values, (std::vector<float>{3, 30}));
  });
}

TEST_P(ProcessGroupTest, DifferentRequests_AreNamed) {
  OnRanks(
      2,
      [](ProcessGroup& group, int rank) {
        std::vector<float> values(1 + rank);
        EXPECT_THAT(Run(group, Sum("x", values)).message(),
                    AllOf(HasSubstr("rank 0"), HasSubstr("rank 1"), HasSubstr("[2]")));
        // The group stays usable.
        std::vector<float> equal = {1};
        EXPECT_EQ(Run(group, Sum("y", equal)), absl::OkStatus());
      },
      absl::Seconds(60), "group 7");
}

TEST_P(ProcessGroupTest, RankThatDoesNotCome_IsNamedAfterTheTimeout) {
  OnRanks(
      2,
      [](ProcessGroup& group, int rank) {
        if (rank == 1) {
          // Has nothing to say until the group is broken.
          std::vector<float> values(1);
          while (Run(group, Sum("other", values)).ok()) {
          }
          return;
        }
        std::vector<float> values(1);
        EXPECT_THAT(Run(group, Sum("x", values)).message(),
                    AllOf(HasSubstr("timeout of 1s is over"), HasSubstr("waiting for rank 1"),
                          HasSubstr("group 7")));
      },
      absl::Seconds(1), "group 7");
}

TEST_P(ProcessGroupTest, Abort_ReachesAllRanks) {
  OnRanks(2, [](ProcessGroup& group, int rank) {
    if (rank == 1) group.Abort(absl::AbortedError("rank 1 has had enough"));
    std::vector<float> values(1);
    EXPECT_THAT(Run(group, Sum("x", values)).message(), HasSubstr("rank 1 has had enough"));
  });
}

TEST_P(ProcessGroupTest, AloneRank_NeedsNobody) {
  OnRanks(1, [](ProcessGroup& group, int) {
    std::vector<float> values = {5};
    EXPECT_EQ(Run(group, Sum("x", values)), absl::OkStatus());
    EXPECT_EQ(values[0], 5);
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, ProcessGroupTest, testing::Values("shm", "tcp"));

TEST(ProcessGroupsTest, NumbersAreNeverUsedAgain) {
  ProcessGroups groups;
  const int32_t first = groups.Add(nullptr);
  EXPECT_TRUE(ProcessGroups::IsGroup(first));
  EXPECT_EQ(groups.Remove(first), absl::OkStatus());
  EXPECT_EQ(groups.Remove(first).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(groups.Find(first).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(groups.Add(nullptr), first);
}

}  // namespace
}  // namespace hvd::worker_runtime::group
