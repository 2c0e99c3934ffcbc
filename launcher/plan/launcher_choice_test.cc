#include "launcher/plan/launcher_choice.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::plan {
namespace {

using ::testing::HasSubstr;

// A directory with a program `srun` in it.
class ChooseLauncherTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = absl::StrCat(testing::TempDir(), "/launcher_choice_bin");
    std::filesystem::create_directory(directory_);
    std::ofstream(directory_ + "/srun") << "#!/bin/sh\n";
    std::filesystem::permissions(directory_ + "/srun", std::filesystem::perms::owner_all);
    options_.allocation.emplace();
    options_.allocation->launcher = "srun";
    options_.allocation->hosts = {{"a", 2, 2}, {"b", 2, 2}};
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // The chosen launcher's name, or the error.
  std::string Choose(const std::string& path) {
    const auto launcher = ChooseLauncher(options_, {{"PATH", path}}, "/", absl::Seconds(30));
    return launcher.ok() ? (*launcher)->name() : std::string(launcher.status().message());
  }

  std::string directory_;
  cli::Options options_;
};

TEST_F(ChooseLauncherTest, SchedulersHosts_AreReachedByItsOwnCommandIfItIsThere) {
  EXPECT_EQ(Choose(directory_), "srun");
  EXPECT_EQ(Choose("/nowhere"), "ssh");
  const auto launcher =
      ChooseLauncher(options_, {{"PATH", directory_}}, "/", absl::Seconds(30)).value();
  EXPECT_THAT(absl::StrJoin(launcher->Command("b", "").argv, " "), HasSubstr("--gres=gpu:2"));
}

TEST_F(ChooseLauncherTest, GivenHosts_AreReachedBySsh) {
  options_.allocation.reset();
  EXPECT_EQ(Choose(directory_), "ssh");
}

TEST_F(ChooseLauncherTest, GivenHostsOfTheJob_HaveTheGpusOfTheJob) {
  options_.allocation.reset();
  options_.launcher = "srun";
  const Environment environment = {{"SLURM_JOB_ID", "17"},       {"SLURM_JOB_NODELIST", "a,b"},
                                   {"SLURM_NTASKS", "4"},        {"SLURM_TASKS_PER_NODE", "3,1"},
                                   {"SLURM_GPUS_PER_TASK", "1"}, {"SLURM_GPUS_ON_NODE", "3"}};
  const auto launcher = ChooseLauncher(options_, environment, "/", absl::Seconds(30)).value();
  EXPECT_THAT(absl::StrJoin(launcher->Command("b", "").argv, " "), HasSubstr("--gres=gpu:1 "));
}

TEST_F(ChooseLauncherTest, OptionForSsh_AsksForSsh) {
  options_.ssh_port = 22;
  EXPECT_EQ(Choose(directory_), "ssh");
  options_.launcher = "ssh";
  EXPECT_EQ(Choose(directory_), "ssh");
}

TEST_F(ChooseLauncherTest, OptionForSshWithAnotherLauncher_IsRefused) {
  options_.launcher = "srun";
  options_.ssh_identity_file = "/keys/mine";
  EXPECT_EQ(Choose(directory_),
            "--ssh-identity-file is for --launcher ssh, and --launcher srun was given");
}

TEST_F(ChooseLauncherTest, GivenLauncher_Wins) {
  options_.launcher = "ssh";
  EXPECT_EQ(Choose(directory_), "ssh");
  options_.launcher = "docker exec -i {host}";
  EXPECT_EQ(Choose(directory_), "docker");
  options_.launcher = "slurm";
  EXPECT_THAT(Choose(directory_), HasSubstr("--launcher slurm: there is ssh, srun"));
}

}  // namespace
}  // namespace hvd::launcher::plan
