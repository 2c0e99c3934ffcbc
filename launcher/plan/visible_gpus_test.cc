#include "launcher/plan/visible_gpus.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace hvd::launcher::plan {
namespace {

class VisibleGpusTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/dev.XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    for (const char* name : {"null", "nvidia0", "nvidia1", "nvidia2", "nvidiactl", "nvidia-uvm",
                             "nvidia", "nvidia0x"}) {
      std::ofstream(folder_ + "/" + name) << "";
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(VisibleGpusTest, DeviceFilesAreCounted) {
  EXPECT_EQ(VisibleGpus(std::nullopt, folder_), 3);
  EXPECT_EQ(VisibleGpus(std::nullopt, folder_ + "/none"), 0);
}

TEST_F(VisibleGpusTest, CudaVisibleDevicesChooses) {
  const std::pair<const char*, int> rows[] = {
      {"0", 1},          {"2,0", 2},          {"0, 1", 2},  {"", 0},
      {"-1", 0},         {"0,-1,1", 1},       {"0,3,1", 1}, {"none", 0},
      {"NoDevFiles", 0}, {"GPU-8f,GPU-a", 2}, {"MIG-1", 1},
  };
  for (const auto& [value, gpus] : rows) EXPECT_EQ(VisibleGpus(value, folder_), gpus) << value;
  EXPECT_EQ(VisibleGpus("0,1", folder_ + "/none"), 0);
}

}  // namespace
}  // namespace hvd::launcher::plan
