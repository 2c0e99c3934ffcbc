#include "launcher/allocation/slurm_allocation.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::allocation {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A job with the variables that Slurm always sets.
Environment Job(const std::string& nodes, const Environment& more) {
  Environment environment = {{"SLURM_JOB_ID", "17"}, {"SLURM_JOB_NODELIST", nodes}};
  environment.insert(more.begin(), more.end());
  return environment;
}

// "a:2/4 b:1/0 by task": slots and GPUs.
std::string Read(const Environment& environment) {
  const auto allocation = ReadSlurmAllocation(environment);
  if (!allocation.ok()) return std::string(allocation.status().message());
  std::string text;
  for (const AllocatedHost& host : allocation->hosts) {
    absl::StrAppend(&text, host.name, ":", host.slots, "/", host.gpus, " ");
  }
  return absl::StrCat(text, "by ", allocation->slot);
}

TEST(ParseNodeCountsTest, Counts_AreRepeated) {
  EXPECT_THAT(ParseNodeCounts("2(x3),1").value(), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(ParseNodeCounts("8").value(), ElementsAre(8));
  for (const char* broken :
       {"", "0", "2(x0)", "2(x3", "2(y3)", "x", "2,,1", "-1", "2(x99999999)"}) {
    EXPECT_FALSE(ParseNodeCounts(broken).ok()) << broken;
  }
}

TEST(ReadSlurmAllocationTest, NothingAsked_OneProcessANode) {
  // sbatch -N2; --exclusive: Slurm then counts CPUs as tasks
  EXPECT_EQ(Read(Job("a,b", {{"SLURM_TASKS_PER_NODE", "8(x2)"}})), "a:1/0 b:1/0 by node");
  const auto allocation = ReadSlurmAllocation(Job("a", {}));
  EXPECT_EQ(allocation->job, "Slurm's job 17");
  EXPECT_EQ(allocation->launcher, "srun");
}

TEST(ReadSlurmAllocationTest, TasksAsked_OneProcessATask) {
  EXPECT_EQ(Read(Job("gpu[1-2],x", {{"SLURM_NTASKS", "7"}, {"SLURM_TASKS_PER_NODE", "3(x2),1"}})),
            "gpu1:3/0 gpu2:3/0 x:1/0 by task");
  EXPECT_EQ(Read(Job("a,b", {{"SLURM_NTASKS_PER_NODE", "2"}, {"SLURM_TASKS_PER_NODE", "2(x2)"}})),
            "a:2/0 b:2/0 by task");
  EXPECT_EQ(Read(Job("a", {{"SLURM_NPROCS", "4"},
                           {"SLURM_TASKS_PER_NODE", "4"},
                           {"SLURM_GPUS_ON_NODE", "4"}})),
            "a:4/4 by task");
}

TEST(ReadSlurmAllocationTest, GpusAsked_OneProcessAGpu) {
  EXPECT_EQ(Read(Job("a,b", {{"SLURM_TASKS_PER_NODE", "1(x2)"}, {"SLURM_GPUS_ON_NODE", "4"}})),
            "a:4/4 b:4/4 by GPU");
  // salloc, on a host that is not one of the nodes
  EXPECT_EQ(Read(Job("a,b", {{"SLURM_GPUS_PER_NODE", "a100:2"}})), "a:2/2 b:2/2 by GPU");
  EXPECT_EQ(Read(Job("a", {{"SLURM_GPUS", "3"}})), "a:3/3 by GPU");
  EXPECT_EQ(Read(Job("a,b", {{"SLURM_GPUS", "4"}, {"SLURM_GPUS_ON_NODE", "2"}})),
            "a:2/2 b:2/2 by GPU");
}

TEST(ReadSlurmAllocationTest, OneTaskOnANodeWithGpus_IsALauncherOfOnePerGpu) {
  EXPECT_EQ(Read(Job("a,b", {{"SLURM_NTASKS", "2"},
                             {"SLURM_TASKS_PER_NODE", "1(x2)"},
                             {"SLURM_GPUS_ON_NODE", "4"}})),
            "a:4/4 b:4/4 by GPU");
}

TEST(ReadSlurmAllocationTest, GpusPerTask_FollowTheTasksOfEachNode) {
  EXPECT_EQ(Read(Job("a,b", {{"SLURM_NTASKS", "4"},
                             {"SLURM_TASKS_PER_NODE", "3,1"},
                             {"SLURM_GPUS_PER_TASK", "a100:1"},
                             {"SLURM_GPUS_ON_NODE", "3"}})),
            "a:3/3 b:1/1 by task");
}

TEST(ReadSlurmAllocationTest, GpusThatAreUneven_AreRefusedWithTheRemedy) {
  EXPECT_THAT(Read(Job("a,b", {{"SLURM_GPUS", "3"}, {"SLURM_GPUS_ON_NODE", "2"}})),
              HasSubstr("3 GPUs are spread over its 2 nodes; ask sbatch for --gpus-per-node"));
}

TEST(ReadSlurmAllocationTest, OneOfSeveralTasks_IsRefused) {
  EXPECT_THAT(Read(Job("a,b", {{"SLURM_STEP_NUM_TASKS", "2"}})),
              HasSubstr("srun has started horovodrun 2 times"));
  EXPECT_EQ(Read(Job("a", {{"SLURM_STEP_NUM_TASKS", "1"}})), "a:1/0 by node");
  EXPECT_EQ(Read(Job("a", {{"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_PTY_PORT", "4711"}})),
            "a:1/0 by node");
}

TEST(ReadSlurmAllocationTest, BrokenVariable_IsNamed) {
  EXPECT_THAT(Read({{"SLURM_JOB_ID", "17"}}), HasSubstr("SLURM_JOB_NODELIST=''"));
  EXPECT_THAT(Read(Job("a[1-", {})), HasSubstr("SLURM_JOB_NODELIST='a[1-'"));
  EXPECT_THAT(Read(Job("a,b", {{"SLURM_NTASKS", "2"}, {"SLURM_TASKS_PER_NODE", "2"}})),
              HasSubstr("SLURM_TASKS_PER_NODE='2'"));
  EXPECT_THAT(Read(Job("a,a", {})), HasSubstr("SLURM_JOB_NODELIST='a,a'"));
  EXPECT_THAT(Read(Job("a", {{"SLURM_NTASKS", "2"}, {"SLURM_TASKS_PER_NODE", "2000000000"}})),
              HasSubstr("SLURM_TASKS_PER_NODE='2000000000'"));
}

}  // namespace
}  // namespace hvd::launcher::allocation
