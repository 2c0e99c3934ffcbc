#include "launcher/allocation/find_allocation.h"

#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::allocation {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::map<std::string, std::string> kFiles = {
    {"/lsf", "a\na\nb\nb\n"},
    {"/pbs", "a.site\nb.site\n"},
    {"/pbs-tasks", "a\nb\na\nb\n"},
    {"/pe", "a 2 all.q@a <NULL>\nb 1 all.q@b <NULL>\n"},
    {"/empty", ""},
};

std::optional<std::string> ReadTestFile(const std::string& path) {
  const auto found = kFiles.find(path);
  return found == kFiles.end() ? std::nullopt : std::make_optional(found->second);
}

// "LSF's job 9 by blaunch: a:2 b:2, a slot each", "nothing", or the error.
std::string Find(const Environment& environment) {
  const auto found = FindAllocation(environment, ReadTestFile);
  if (!found.ok()) return std::string(found.status().message());
  if (!found->has_value()) return "nothing";
  std::string text = absl::StrCat((*found)->job, " by ", (*found)->launcher, ":");
  for (const AllocatedHost& host : (*found)->hosts) {
    absl::StrAppend(&text, " ", host.name, ":", host.slots);
  }
  return absl::StrCat(text, ", a ", (*found)->slot, " each");
}

TEST(FindAllocationTest, OutsideOfAnyJob_FindsNothing) {
  EXPECT_EQ(Find({}), "nothing");
  EXPECT_EQ(Find({{"JOB_ID", "7"}, {"SLURM_CONF", "/etc/slurm.conf"}}), "nothing");
  // as in a session over ssh
  EXPECT_EQ(Find({{"SLURM_JOB_ID", "7"}, {"LSB_JOBID", "7"}, {"PBS_JOBID", "7"}}), "nothing");
}

TEST(FindAllocationTest, Slurm) {
  EXPECT_EQ(Find({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-2]"}}),
            "Slurm's job 7 by srun: n1:1 n2:1, a node each");
}

TEST(FindAllocationTest, Lsf_SlotsOrGpus) {
  Environment environment = {{"LSB_JOBID", "9"}, {"LSB_MCPU_HOSTS", "x 3 y 1"}};
  EXPECT_EQ(Find(environment), "LSF's job 9 by blaunch: x:3 y:1, a slot each");
  environment["LSB_DJOB_HOSTFILE"] = "";
  EXPECT_EQ(Find(environment), "LSF's job 9 by blaunch: x:3 y:1, a slot each");
  environment["LSB_DJOB_HOSTFILE"] = "/lsf";
  EXPECT_EQ(Find(environment), "LSF's job 9 by blaunch: a:2 b:2, a slot each");
  environment["CUDA_VISIBLE_DEVICES"] = "0,1,2,3";
  EXPECT_EQ(Find(environment), "LSF's job 9 by blaunch: a:4 b:4, a GPU each");
  for (const char* none : {"", "-1", "NoDevFiles"}) {
    environment["CUDA_VISIBLE_DEVICES"] = none;
    EXPECT_THAT(Find(environment), HasSubstr("a slot each")) << none;
  }
}

TEST(FindAllocationTest, Pbs_LinesOrGpus) {
  Environment environment = {{"PBS_JOBID", "5.pbs"}, {"PBS_NODEFILE", "/pbs"}};
  EXPECT_EQ(Find(environment), "PBS's job 5.pbs by pbs_tmrsh: a.site:1 b.site:1, a slot each");
  environment["CUDA_VISIBLE_DEVICES"] = "GPU-1f,GPU-2e";
  EXPECT_EQ(Find(environment), "PBS's job 5.pbs by pbs_tmrsh: a.site:2 b.site:2, a GPU each");
  environment["PBS_NODEFILE"] = "/pbs-tasks";
  EXPECT_EQ(Find(environment), "PBS's job 5.pbs by pbs_tmrsh: a:2 b:2, a slot each");
}

TEST(FindAllocationTest, GridEngine) {
  EXPECT_EQ(Find({{"JOB_ID", "3"}, {"PE_HOSTFILE", "/pe"}}),
            "Grid Engine's job 3 by qrsh: a:2 b:1, a slot each");
}

TEST(FindAllocationTest, Source_IsWhatListsTheHosts) {
  const auto source = [](const Environment& environment) {
    return FindAllocation(environment, ReadTestFile).value().value().source;
  };
  EXPECT_EQ(source({{"SLURM_JOB_NODELIST", "n[1-2]"}}), "SLURM_JOB_NODELIST='n[1-2]'");
  EXPECT_EQ(source({{"LSB_MCPU_HOSTS", "x 3 y 1"}}), "LSB_MCPU_HOSTS='x 3 y 1'");
  EXPECT_EQ(source({{"LSB_DJOB_HOSTFILE", "/lsf"}}), "LSB_DJOB_HOSTFILE (/lsf)");
  EXPECT_EQ(source({{"PBS_NODEFILE", "/pbs"}}), "PBS_NODEFILE (/pbs)");
  EXPECT_EQ(source({{"PE_HOSTFILE", "/pe"}}), "PE_HOSTFILE (/pe)");
}

TEST(FindAllocationTest, HeterogeneousJobOfSlurm_IsRefused) {
  // salloc sets no node list for the job, sbatch that of the first component
  const Environment job = {{"SLURM_HET_SIZE", "2"}, {"SLURM_JOB_NODELIST_HET_GROUP_0", "a"}};
  Environment batch = job;
  batch["SLURM_JOB_NODELIST"] = "a";
  for (const Environment& environment : {job, batch}) {
    EXPECT_THAT(Find(environment), AllOf(HasSubstr("which of its 2 components"), HasSubstr("-H"),
                                         HasSubstr("srun --het-group=0-1 python")));
  }
  EXPECT_EQ(Find({{"SLURM_HET_SIZE", "1"}, {"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "a"}}),
            "Slurm's job 7 by srun: a:1, a node each");
}

TEST(FindAllocationTest, BrokenList_IsRefusedWithPlaceAndRemedy) {
  EXPECT_THAT(
      Find({{"PBS_NODEFILE", "/gone"}}),
      AllOf(HasSubstr("PBS_NODEFILE (/gone)"), HasSubstr("can't be read"), HasSubstr("with -H")));
  EXPECT_THAT(Find({{"PE_HOSTFILE", "/lsf"}}), HasSubstr("'a' has no number of slots"));
  EXPECT_THAT(Find({{"PBS_NODEFILE", "/empty"}}), HasSubstr("lists no host"));
  EXPECT_THAT(Find({{"LSB_JOBID", "9"}, {"LSB_MCPU_HOSTS", "x"}}), HasSubstr("LSB_MCPU_HOSTS='x'"));
  EXPECT_THAT(Find({{"LSB_JOBID", "9"}, {"LSB_DJOB_HOSTFILE", "/gone"}}),
              HasSubstr("LSB_DJOB_HOSTFILE (/gone)"));
}

TEST(ReadWholeFileTest, RealFiles) {
  const std::string path = absl::StrCat(testing::TempDir(), "/hosts");
  std::ofstream(path) << "a\nb\n";
  EXPECT_EQ(ReadWholeFile(path), "a\nb\n");
  EXPECT_EQ(ReadWholeFile("/nowhere"), std::nullopt);
  EXPECT_EQ(ReadWholeFile("/"), std::nullopt);
  EXPECT_EQ(ReadWholeFile("/dev/zero"), std::nullopt);
}

}  // namespace
}  // namespace hvd::launcher::allocation
