#include "launcher/spawn/command_launcher.h"

#include <string>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::spawn {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

CommandLauncher Make(const std::string& text, std::map<std::string, int> gpus = {}) {
  return CommandLauncher(FindCommandTemplate(text).value(), "/bin", std::move(gpus));
}

std::vector<std::string> Words(const std::string& text) {
  return Make(text).Command("node7", "/opt").argv;
}

std::string Error(const std::string& text) {
  const auto command = FindCommandTemplate(text);
  EXPECT_EQ(command.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(command.status().message());
}

TEST(CommandLauncherTest, Srun_OneAgentWithAllThatTheJobHasOnTheNode) {
  const AgentInvocation command = Make("srun", {{"node7", 4}}).Command("node7", "/opt");
  EXPECT_EQ(command.file, "srun");
  const std::string words = absl::StrJoin(command.argv, " ");
  EXPECT_THAT(
      words,
      AllOf(HasSubstr("srun --overlap --nodes=1 --ntasks=1"), HasSubstr("--nodelist=node7 "),
            HasSubstr("--gres=gpu:4 "), HasSubstr(" --mem=0 "),
            HasSubstr(" sh -c PATH=/opt:\"$PATH\"; export PATH; exec horovod-agent --stdio")));
  // Settings for the job's own tasks do not apply to the agent.
  EXPECT_THAT(command.without, AllOf(Contains("SLURM_GPUS_PER_TASK"), Contains("SLURM_GPUS"),
                                     Contains("SLURM_MEM_PER_CPU"), Contains("SLURM_LABELIO")));
  EXPECT_THAT(command.without, Not(Contains("SLURM_JOB_ID")));
}

TEST(CommandLauncherTest, Srun_GpusUnknown_LeavesTheChoiceToSlurm) {
  for (const auto& gpus : {std::map<std::string, int>{}, {{"node7", 0}}, {{"other", 4}}}) {
    const AgentInvocation command = Make("srun", gpus).Command("node7", "");
    EXPECT_THAT(absl::StrJoin(command.argv, " "), Not(HasSubstr("gres")));
  }
}

TEST(CommandLauncherTest, OtherSchedulers_GetPlainWordsSinceAShellMayReadThem) {
  EXPECT_THAT(Words("blaunch"),
              ElementsAre("blaunch", "node7", "env", "PATH=/opt:/bin", "horovod-agent", "--stdio"));
  EXPECT_THAT(Words("pbs_tmrsh"), ElementsAre("pbs_tmrsh", "node7", "env", "PATH=/opt:/bin",
                                              "horovod-agent", "--stdio"));
  EXPECT_THAT(Words("qrsh"), ElementsAre("qrsh", "-inherit", "node7", "env", "PATH=/opt:/bin",
                                         "horovod-agent", "--stdio"));
}

TEST(CommandLauncherTest, Kubectl_ExecutesTheArgumentsUnquoted) {
  EXPECT_THAT(Words("kubectl"),
              ElementsAre("kubectl", "exec", "-i", "node7", "--", "sh", "-c",
                          "PATH=/opt:\"$PATH\"; export PATH; exec horovod-agent --stdio"));
}

TEST(CommandLauncherTest, Template_IsSplitAsAShellSplitsIt) {
  const CommandLauncher launcher =
      Make(R"(/opt/bin/run  -m 'a b' "c \" d" e\ f me@{host}:{host} '')");
  EXPECT_EQ(launcher.name(), "run");
  const AgentInvocation command = launcher.Command("node7", "");
  EXPECT_EQ(command.file, "/opt/bin/run");
  EXPECT_THAT(command.argv,
              ElementsAre("/opt/bin/run", "-m", "a b", "c \" d", "e f", "me@node7:node7", "", "env",
                          "PATH=/bin", "horovod-agent", "--stdio"));
}

TEST(CommandLauncherTest, NoTemplate_IsRefusedInOneLine) {
  EXPECT_THAT(Error("slurm"),
              AllOf(HasSubstr("--launcher slurm: "), HasSubstr("pbs_tmrsh"), HasSubstr("{host}")));
  EXPECT_THAT(Error("docker exec -i host"), HasSubstr("{host}"));
  EXPECT_THAT(Error("run 'x {host}"), HasSubstr("a quote is not closed"));
  EXPECT_THAT(Error("{host} run"), HasSubstr("first word"));
}

TEST(CommandLauncherTest, Explain_KnowsWhatSrunAndKubectlSay) {
  const auto srun =
      Make("srun").Explain({"srun: error: Unable to create step for job 3: Requested node "
                            "configuration is not available"});
  ASSERT_TRUE(srun.has_value());
  EXPECT_EQ(srun->meaning, "this Slurm job has no such node");
  EXPECT_EQ(
      srun->line,
      "error: Unable to create step for job 3: Requested node configuration is not available");
  EXPECT_TRUE(Make("kubectl")
                  .Explain({"Error from server (NotFound): pods \"node7\" not found"})
                  .has_value());
  EXPECT_FALSE(Make("blaunch").Explain({"anything"}).has_value());
}

TEST(FindCommandTemplate, NamesMayHaveBlanksAround_AndOnlyTheHostIsReplaced) {
  EXPECT_EQ(FindCommandTemplate(" kubectl ")->words[0], "kubectl");
  EXPECT_EQ(FindCommandTemplate("run {gpus} {host}").status().message(),
            "--launcher run {gpus} {host}: only {host} is replaced, not {gpus}");
}

}  // namespace
}  // namespace hvd::launcher::spawn
