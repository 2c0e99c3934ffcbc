// The real NCCL, as far as it works without a driver. NCCL_LIBRARY names its file; tests/nccl
// fetches several versions and runs this test with each.
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/conformance/rank_group.h"
#include "collectives/inproc/inproc_backend.h"
#include "collectives/nccl/convert.h"
#include "collectives/nccl/library.h"
#include "collectives/nccl/nccl_backend.h"
#include "collectives/nccl/testing/fake_gpu.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::collectives::nccl {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

class RealLibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* const file = getenv("NCCL_LIBRARY");
    if (file == nullptr) GTEST_SKIP() << "NCCL_LIBRARY names no library";
    libraries_ = LoadGpuLibraries({file}, {"collectives/nccl/libfake_complete.so"});
    ASSERT_TRUE(libraries_.ok()) << libraries_.status();
    ASSERT_EQ(libraries_->nccl_status, absl::OkStatus());
    libraries_->cuda =
        FakeGpu::Libraries()->cuda;  // DeviceStream sees a fake device, NCCL sees none
  }
  const NcclFunctions& nccl() const { return libraries_->nccl; }

  absl::StatusOr<GpuLibraries> libraries_;
};

TEST_F(RealLibraryTest, HasAllFunctions_AndTellsItsVersion) {
  EXPECT_GE(libraries_->nccl_version, kOldestNccl);
  RecordProperty("version", NcclVersionText(libraries_->nccl_version));
  const char* const wanted = getenv("NCCL_VERSION");
  if (wanted != nullptr) {
    EXPECT_EQ(NcclVersionText(libraries_->nccl_version), wanted);
  }
}

TEST_F(RealLibraryTest, ErrorsHaveTexts) {
  const int last =
      static_cast<int>(libraries_->nccl_version >= kFirstSharingNccl ? NcclResult::kTimeout
                                                                     : NcclResult::kInProgress);
  const std::string unknown = nccl().get_error_string(static_cast<NcclResult>(99));
  for (int result = 0; result <= last; ++result) {
    EXPECT_NE(nccl().get_error_string(static_cast<NcclResult>(result)), unknown) << result;
  }
  EXPECT_EQ(nccl().get_error_string(static_cast<NcclResult>(last + 1)), unknown)
      << "there is a result that abi.h does not know";
}

TEST_F(RealLibraryTest, IdsDiffer) {
  NcclUniqueId ids[2] = {};
  for (NcclUniqueId& id : ids) EXPECT_EQ(nccl().get_unique_id(&id), NcclResult::kSuccess);
  EXPECT_NE(std::string(ids[0].internal, sizeof(ids[0].internal)),
            std::string(ids[1].internal, sizeof(ids[1].internal)));
}

TEST_F(RealLibraryTest, WrongCalls_AreRefused) {
  NcclComm* comm = nullptr;
  NcclConfig config;
  config.magic = 1;
  EXPECT_NE(nccl().comm_init_rank_config(&comm, 1, {}, 0, &config), NcclResult::kSuccess);
  EXPECT_EQ(nccl().group_start(), NcclResult::kSuccess);
  EXPECT_EQ(
      nccl().all_reduce(nullptr, nullptr, 4, NcclType::kFloat32, NcclOp::kSum, nullptr, nullptr),
      NcclResult::kInvalidArgument);
  nccl().group_end();
}

// No rank can initialise NCCL, so all are staged through host memory, in this world and in the
// next, and the reason is NCCL's error text.
TEST_F(RealLibraryTest, WithoutADriver_DevicesGoByWayOfTheHost) {
  if (InstalledGpuLibraries().ok()) GTEST_SKIP() << "there is a driver";
  const auto backend = MakeNcclBackend(libraries_, {});
  for (const uint64_t epoch : {1, 2}) {
    conformance::RankGroup hosts(inproc::MakeInprocBackend());
    hosts.Connect(2);
    std::vector<std::string> notes(2);
    hosts.Run([&](Communicator& host) {
      const int rank = host.rank();
      const auto connected = ConnectDevices(*backend, {Epoch(epoch), rank, 2, "", "secret"}, rank,
                                            host, absl::Seconds(60), &notes[rank]);
      ASSERT_TRUE(connected.ok()) << connected.status();
      float value = 1;
      EXPECT_EQ((*connected)
                    ->AllReduce(&value, &value, 1, DataType::kFloat32, ReduceOp::kSum,
                                {absl::Seconds(60)}),
                absl::OkStatus());
      EXPECT_EQ(value, 2);
    });
    EXPECT_THAT(notes, Each(AllOf(HasSubstr("making a communicator: "), HasSubstr("cuda error"),
                                  HasSubstr("driver"), Not(HasSubstr("\n")))));
  }
}

}  // namespace
}  // namespace hvd::collectives::nccl
