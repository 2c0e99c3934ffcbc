#include "launcher/plan/runtime_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "gtest/gtest.h"

namespace hvd::launcher::plan {
namespace {

class OpenRuntimeFilesTest : public ::testing::Test {
 protected:
  OpenRuntimeFilesTest() {
    std::string folder = ::testing::TempDir() + "/runtime_files.XXXXXX";
    plan_.working_directory = mkdtemp(folder.data());
    plan_.hosts = {{{"a", /*local=*/true, {}}, 2, 0}};
  }
  ~OpenRuntimeFilesTest() override { std::filesystem::remove_all(plan_.working_directory); }

  std::string In(const std::string& name) const { return plan_.working_directory + "/" + name; }

  std::string Refusal(const std::string& variable, const std::string& file) {
    plan_.environment = {{"HOROVOD_AUTOTUNE", "1"}, {variable, file}};
    return std::string(OpenRuntimeFiles(plan_).status().message());
  }

  JobPlan plan_;
};

TEST_F(OpenRuntimeFilesTest, PathThatCannotBeWritten_IsRefused) {
  ASSERT_EQ(mkfifo(In("fifo").c_str(), 0600), 0);
  ASSERT_TRUE(std::filesystem::create_directory(In("folder")));
  const std::pair<const char*, const char*> cases[] = {
      {"folder", "Is a directory"},
      {"fifo", "it is a pipe that nobody reads"},
      {"no/such/file", "No such file or directory"},
      {"/proc/none", "No such file or directory"}};
  for (const auto& [file, why] : cases) {
    const std::string end = std::string(": can't write ") + file + ": " + why;
    EXPECT_EQ(Refusal("HOROVOD_TIMELINE", file), "--timeline-filename (HOROVOD_TIMELINE)" + end);
    EXPECT_EQ(Refusal("HOROVOD_AUTOTUNE_LOG", file),
              "--autotune-log-file (HOROVOD_AUTOTUNE_LOG)" + end);
  }
}

TEST_F(OpenRuntimeFilesTest, OldFile_IsLeftAsItIs) {
  std::ofstream(In("t.json")) << "old";
  EXPECT_EQ(Refusal("HOROVOD_TIMELINE", "t.json"), "");
  std::ifstream file(In("t.json"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "old");
}

TEST_F(OpenRuntimeFilesTest, FileOfRunningJob_IsRefusedUntilItEnds) {
  plan_.environment = {{"HOROVOD_TIMELINE", "t.json"}};
  {
    const auto other = OpenRuntimeFiles(plan_);
    ASSERT_TRUE(other.ok());
    EXPECT_EQ(Refusal("HOROVOD_TIMELINE", "t.json"),
              "--timeline-filename (HOROVOD_TIMELINE): another running job writes to t.json; give "
              "each job a file of its own");
  }
  EXPECT_EQ(Refusal("HOROVOD_TIMELINE", "t.json"), "");
}

TEST_F(OpenRuntimeFilesTest, FilesThatNobodyWritesHere_AreNotLookedAt) {
  EXPECT_EQ(Refusal("HOROVOD_TIMELINE", "DYNAMIC"), "");
  EXPECT_FALSE(std::filesystem::exists(In("DYNAMIC")));
  plan_.hosts.push_back({{"b", /*local=*/false, {}}, 1, 2});
  EXPECT_EQ(Refusal("HOROVOD_TIMELINE", "/no/such/file"), "");
  plan_.hosts.clear();  // a dynamic source of hosts
  EXPECT_EQ(Refusal("HOROVOD_TIMELINE", "/no/such/file"), "");
}

}  // namespace
}  // namespace hvd::launcher::plan
